/* training_delays.c - how late a lockstep group is, and why.
 *
 * Beside the step, the undisturbed step is followed: the same work in the same order, but nothing is slowed by a
 * scenario and the network takes no time. Each lockstep group keeps how far it is behind that step, by cause. The
 * rules:
 *
 *     work     adds what slowdown and jitter have added to it, as straggler
 *     network  adds the seconds that a collective or a message takes, under its own cause. One of ranks in lockstep, or
 *              a copy, is part of an item: it adds only what it takes longer than it would alone
 *     waiting  whoever waits takes over the delays of the partner that comes last. In the undisturbed step it waits for
 *              the latest one there, who may be another; what that leaves of the delays is divided in proportion
 *
 * Undisturbed dates are dates less delays, so that without delays they are the same bits. */
#include <math.h>

#include "sim/engine/training_parts.h"

static bool is_on_network(enum dl_cause cause) { return cause >= DL_CAUSE_TENSOR && cause <= DL_CAUSE_OFFLOAD; }

static int delay_of(enum dl_cause cause)
{
    return is_on_network(cause) ? (int)(cause - DL_CAUSE_TENSOR) : DELAY_STRAGGLER;
}

static void add_delay(struct delays *d, int by, double seconds)
{
    d->by[by] += seconds;
    d->total_s += seconds;
}

/* So that they sum to total_s. Their sign changes where jitter has made somebody early, or by rounding alone. */
static struct delays scaled(const struct dl_training *t, const struct delays *d, double total_s)
{
    if (total_s == d->total_s) return *d;
    struct delays out = {0};
    if (total_s * d->total_s > 0) {
        const double factor = total_s / d->total_s;
        for (int i = 0; i < N_DELAYS; i++) out.by[i] = d->by[i] * factor;
        out.total_s = total_s;
    } else if (t->slows_work) {
        out.by[DELAY_STRAGGLER] = out.total_s = total_s;
    }
    return out;
}

void dl_start_join(struct start *s, const struct delays *delays, double at_s)
{
    const double undisturbed_s = at_s - delays->total_s;
    s->undisturbed_s = s->n_joined ? fmax(s->undisturbed_s, undisturbed_s) : undisturbed_s;
    s->begun_s = at_s;
    s->delays = *delays;
    s->n_joined++;
}

struct start dl_start_now(const struct dl_training *t, const struct lockstep_group *partner)
{
    struct start s = {0};
    dl_start_join(&s, &partner->delays, now_s(t));
    return s;
}

struct start dl_start_own(const struct lockstep_group *c)
{
    struct start s = {0};
    dl_start_join(&s, &c->delays, c->waits_since_s);
    return s;
}

void dl_training_delay_work(struct dl_training *t, struct lockstep_group *c, double seconds)
{
    if (t->slows_work) add_delay(&c->delays, DELAY_STRAGGLER, seconds);
}

/* ---- waiting ---- */

static double own_undisturbed_s(const struct lockstep_group *c) { return c->waits_since_s - c->delays.total_s; }

double dl_training_undisturbed_wait_s(const struct lockstep_group *c, const struct start *s)
{
    return fmax(s->undisturbed_s - own_undisturbed_s(c), 0);
}

struct delays dl_training_delays_at_start(const struct dl_training *t, const struct lockstep_group *c,
                                          const struct start *s)
{
    const double undisturbed_s = fmax(own_undisturbed_s(c), s->undisturbed_s);
    return scaled(t, &s->delays, s->begun_s - undisturbed_s);
}

/* What came last is what the lockstep group has waited for at least. */
void dl_training_take_over(struct dl_training *t, struct lockstep_group *c, const struct start *s, enum dl_cause cause,
                           double undisturbed_s)
{
    const double end_s = fmax(own_undisturbed_s(c), s->undisturbed_s + undisturbed_s), now = now_s(t);
    const double total_s = now - end_s, network_s = fmax(now - s->begun_s - undisturbed_s, 0);
    const double kept_s = fmax(fmin(network_s, total_s), 0);
    c->delays = scaled(t, &s->delays, total_s - kept_s);
    add_delay(&c->delays, delay_of(cause), kept_s);
}

void dl_training_pass(struct dl_training *t, struct lockstep_group *c, const struct start *s)
{
    c->waits_since_s = now_s(t);
    const double wait_s = dl_training_undisturbed_wait_s(c, s);
    if (wait_s <= 0) return;
    c->owed_s += wait_s;
    c->delays = scaled(t, &c->delays, c->delays.total_s - wait_s);
}
