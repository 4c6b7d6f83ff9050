/* training_work.c - a lockstep group's work as stretches of time: host and device side by side, and what goes on beside
 * them.
 *
 * Exchanges and messages of a lockstep group's devices take a share of what its kernels compute with. A part that is
 * worked on when they begin or end goes on at another rate; where its device waits for the host now and then, the share
 * of its time that kernels compute is taken as the same all through the part. */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "sim/engine/training_parts.h"
#include "sim/program/segments.h"

/* A factor of mean 1; its standard deviation is the scenario's fraction. */
static double draw_jitter(const struct dl_training *t, const struct lockstep_group *c)
{
    const double fraction = t->request.scenario->jitter_fraction, variance = log1p(fraction * fraction);
    return gsl_ran_lognormal(c->jitter, -variance / 2, sqrt(variance));
}

void dl_training_part_ends(void *user, uint32_t alarm)
{
    struct lockstep_group *const c = user;
    struct dl_training *const t = c->training;
    if (t->over || alarm != c->work.alarm) return;
    dl_training_end_work(t, c);
    dl_training_go_on(t, c);
}

static void set_alarm(struct dl_training *t, struct lockstep_group *c)
{
    c->work.slowed |= c->work.rate < 1;
    c->work.until_s = c->work.timed_s + c->work.left_s / c->work.rate;
    t->request.engine->kind->timer(t->request.engine, c->work.until_s, dl_training_part_ends, c, ++c->work.alarm);
}

/* ---- beside exchanges and messages ---- */

static double rate_of(const struct dl_training *t, const struct lockstep_group *c)
{
    const struct dl_device *const d = t->request.device;
    if (!d || c->work.planned_s <= 0) return 1;
    struct left left = ALL_LEFT;
    if (is_exchanging(c)) dl_take(&left, &d->taken_by_exchanges);
    if (c->is_in && c->is_in->busy) dl_take(&left, &d->taken_by_exchanges);
    if (c->beside && c->beside->busy) dl_take(&left, &d->taken_by_exchanges);
    if (c->n_in_flight) dl_take(&left, &d->taken_by_sends);
    return dl_work_rate(c->work.part, c->work.pace, &left, c->work.planned_s);
}

void dl_training_retime(struct dl_training *t, struct lockstep_group *c)
{
    struct work *const w = &c->work;
    if (!w->part) return;
    const double rate = rate_of(t, c);
    if (rate == w->rate) return;
    w->left_s = fmax(w->left_s - (now_s(t) - w->timed_s) * w->rate, 0);
    w->timed_s = now_s(t);
    w->rate = rate;
    set_alarm(t, c);
}

/* ---- host and device ---- */

void dl_training_begin_work(struct dl_training *t, struct lockstep_group *c, const struct dl_part *part)
{
    const double pace = c->jitter ? c->slowdown * draw_jitter(t, c) : c->slowdown, since_s = now_s(t);
    const double device_s = dl_slowed_s(part->segment.seconds, part->segment.network_s, pace),
                 behind_s = c->host_s + dl_slowed_s(part->behind_host_s, part->behind_network_s, pace) - since_s,
                 planned_s = fmax(device_s, behind_s);
    c->work = (struct work){.part = part,
                            .pace = pace,
                            .network_s = device_s >= behind_s ? part->segment.network_s : part->behind_network_s,
                            .host_from_s = c->host_s,
                            .since_s = since_s,
                            .planned_s = planned_s,
                            .left_s = planned_s,
                            .timed_s = since_s,
                            .alarm = c->work.alarm};
    c->work.rate = rate_of(t, c);
    c->host_s += part->host_s * pace;
    set_alarm(t, c);
}

static void host_comes(void *user, uint32_t tag)
{
    (void)tag;
    struct lockstep_group *const c = user;
    const lockstep_fn then = c->waits_for_host;
    if (c->training->over) return;
    dl_training_end_wait_for_host(c->training, c);
    then(c->training, c);
}

bool dl_training_awaits_host(struct dl_training *t, struct lockstep_group *c, lockstep_fn then)
{
    if (c->host_s <= now_s(t)) return false;
    c->waits_for_host = then;
    c->waits_since_s = now_s(t);
    t->request.engine->kind->timer(t->request.engine, c->host_s, host_comes, c, 0);
    return true;
}
