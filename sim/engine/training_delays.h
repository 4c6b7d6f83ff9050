/* training_delays.h - how late a lockstep group is, and why. In a header, as it is in the innermost loops.
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
#ifndef DL_ENGINE_TRAINING_DELAYS_H
#define DL_ENGINE_TRAINING_DELAYS_H

#include <math.h>

#include "sim/engine/training_parts.h"

static inline bool is_on_network(enum dl_cause cause) { return cause >= DL_CAUSE_TENSOR && cause <= DL_CAUSE_OFFLOAD; }

static inline int delay_of(enum dl_cause cause)
{
    return is_on_network(cause) ? (int)(cause - DL_CAUSE_TENSOR) : DELAY_STRAGGLER;
}

static inline void add_delay(struct delays *d, int by, double seconds)
{
    d->by[by] += seconds;
    d->total_s += seconds;
}

/* So that they sum to total_s. Their sign changes where jitter has made somebody early, or by rounding alone. */
static inline struct delays scaled(const struct dl_training *t, const struct delays *d, double total_s)
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

/* A lockstep group comes to something that begins when all have come. */
static inline void dl_start_join(struct start *s, const struct delays *delays, double at_s)
{
    const double undisturbed_s = at_s - delays->total_s;
    s->undisturbed_s = s->n_joined ? fmax(s->undisturbed_s, undisturbed_s) : undisturbed_s;
    s->begun_s = at_s;
    s->delays = *delays;
    s->n_joined++;
}

/* Of what has not begun: as if the partner that a lockstep group waits for came now. */
static inline struct start dl_start_now(const struct dl_training *t, const struct lockstep_group *partner)
{
    struct start s = {0};
    dl_start_join(&s, &partner->delays, now_s(t));
    return s;
}

/* Of what concerns the lockstep group alone: it began when the lockstep group began to wait. */
static inline struct start dl_start_own(const struct lockstep_group *c)
{
    struct start s = {0};
    dl_start_join(&s, &c->delays, c->waits_since_s);
    return s;
}

/* A scenario has made the lockstep group's work so much longer. */
static inline void dl_training_delay_work(struct dl_training *t, struct lockstep_group *c, double seconds)
{
    if (t->slows_work) add_delay(&c->delays, DELAY_STRAGGLER, seconds);
}

/* ---- waiting ---- */

static inline double own_undisturbed_s(const struct lockstep_group *c) { return c->waits_since_s - c->delays.total_s; }

/* Of a lockstep group that waits: how long it waits in the undisturbed step for what begins then there. */
static inline double dl_training_undisturbed_wait_s(const struct lockstep_group *c, double undisturbed_s)
{
    return fmax(undisturbed_s - own_undisturbed_s(c), 0);
}

/* How late the start is by that. */
static inline struct delays dl_training_delays_at_start(const struct dl_training *t, const struct lockstep_group *c,
                                                        const struct start *s)
{
    const double undisturbed_s = fmax(own_undisturbed_s(c), s->undisturbed_s);
    return scaled(t, &s->delays, s->begun_s - undisturbed_s);
}

/* The lockstep group has waited for what began then; that takes undisturbed_s in the undisturbed step. What came last
 * is what it has waited for at least. */
static inline void dl_training_take_over(struct dl_training *t, struct lockstep_group *c, const struct start *s,
                                         enum dl_cause cause, double undisturbed_s)
{
    const double end_s = fmax(own_undisturbed_s(c), s->undisturbed_s + undisturbed_s), now = now_s(t);
    const double total_s = now - end_s, network_s = fmax(now - s->begun_s - undisturbed_s, 0);
    const double kept_s = fmax(fmin(network_s, total_s), 0);
    c->delays = scaled(t, &s->delays, total_s - kept_s);
    add_delay(&c->delays, delay_of(cause), kept_s);
}

/* What the lockstep group needs had come before it was wanted; in the undisturbed step it comes then. */
static inline void dl_training_pass(struct dl_training *t, struct lockstep_group *c, double undisturbed_s)
{
    c->waits_since_s = now_s(t);
    const double wait_s = dl_training_undisturbed_wait_s(c, undisturbed_s);
    if (wait_s <= 0) return;
    c->owed_s += wait_s;
    c->delays = scaled(t, &c->delays, c->delays.total_s - wait_s);
}

#endif
