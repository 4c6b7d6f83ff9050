/* training_ahead_work.h - work beside messages whose arrival is known: at one rate until they have come, at another
 * after that. In a header, as it is in the innermost loop.
 *
 * Work is at its own pace here, and all of it is booked. What a block takes by itself has causes that are known before:
 * they are booked for all of a sequence at once, and only what the host and messages add is booked when it ends. */
#ifndef DL_ENGINE_TRAINING_AHEAD_WORK_H
#define DL_ENGINE_TRAINING_AHEAD_WORK_H

#include <assert.h>
#include <math.h>

#include "sim/engine/training_ahead_parts.h"

static inline enum dl_step_phase phase_of(const struct dl_sequenced *item)
{
    return item->item.kind == DL_ITEM_F ? DL_PHASE_FORWARD : DL_PHASE_BACKWARD;
}

static inline double left_at(const struct work *w, double at_s)
{
    return fmax(w->left_s - (at_s - w->timed_s) * w->rate, 0);
}

static inline void change_rate(struct work *w, double at_s, double rate)
{
    if (rate == w->rate) return;
    w->left_s = left_at(w, at_s);
    w->timed_s = at_s;
    w->rate = rate;
    w->slowed |= rate < 1;
}

/* As far as it is known what it is beside. */
static inline double end_of(const struct work *w, const struct runner *r)
{
    const double end_s = w->timed_s + w->left_s / w->rate;
    if (!r->is_beside || end_s <= r->in_flight_until_s || w->rate == 1) return end_s;
    return r->in_flight_until_s + left_at(w, r->in_flight_until_s);
}

/* Of its work beside messages. */
static inline double slow_rate(const struct ahead *a, const struct work *w)
{
    return w->planned_s > 0 ? dl_work_rate(w->part, 1, a->slowing, w->planned_s) : 1;
}

/* Until when, as far as that is known. */
static inline double begin_work(const struct ahead *a, struct runner *r, const struct dl_part *part, double now)
{
    struct lockstep_group *const c = r->group;
    struct work *const w = &c->work;
    w->part = part;
    w->since_s = w->timed_s = now;
    w->planned_s = w->left_s = fmax(part->segment.seconds, c->host_s + part->behind_host_s - now);
    c->host_s += part->host_s;
    r->is_beside = r->in_flight_until_s > now;
    w->rate = r->is_beside ? slow_rate(a, w) : 1;
    w->slowed = w->rate < 1;
    return w->until_s = end_of(w, r);
}

/* What was under way has come by then. */
static inline void pass_messages(struct runner *r, double now)
{
    if (!r->is_beside || r->in_flight_until_s > now) return;
    change_rate(&r->group->work, r->in_flight_until_s, 1);
    r->is_beside = false;
}

/* A message from or to its devices leaves now. The lockstep group may be ahead: its work begins later than now, and so
 * does what the message takes of it. */
static inline void meet_message(const struct ahead *a, struct runner *r, double until_s, double now)
{
    struct work *const w = &r->group->work;
    if (until_s <= r->in_flight_until_s) return;
    if (w->part) pass_messages(r, now);
    r->in_flight_until_s = until_s;
    const double at_s = fmax(now, w->timed_s);
    if (!w->part || until_s <= at_s) return;
    change_rate(w, at_s, slow_rate(a, w));
    r->is_beside = true;
    w->until_s = end_of(w, r);
}

static inline void end_work(struct runner *r, double now)
{
    struct lockstep_group *const c = r->group;
    struct work *const w = &c->work;
    pass_messages(r, now);
    r->posted_s = w->timed_s;
    const double whole_s = w->until_s - w->since_s;
    c->causes_s[DL_CAUSE_HOST] += w->planned_s - w->part->segment.seconds; /* or 0: it is planned for at least that */
    if (w->slowed) c->causes_s[DL_CAUSE_INTERFERENCE] += fmax(whole_s - w->planned_s, 0);
    c->elapsed_s[phase_of(r->item)] += whole_s;
    c->item_s += whole_s;
    w->part = NULL;
}

#endif
