/* training_ahead_work.h - work beside messages whose arrival is known: at one rate until they have come, at another
 * after that. In a header, as it is in the innermost loop.
 *
 * Work is at its own pace here, and all of it is booked. What a block takes by itself has causes that are known before:
 * they are booked for all of a sequence at once, and only what the host and messages add is booked here. */
#ifndef DL_ENGINE_TRAINING_AHEAD_WORK_H
#define DL_ENGINE_TRAINING_AHEAD_WORK_H

#include <math.h>

#include "sim/engine/training_ahead_parts.h"

static inline double left_at(const struct runner *r, double at_s)
{
    return fmax(r->left_s - (at_s - r->timed_s) * r->rate, 0);
}

static inline void change_rate(struct runner *r, double at_s, double rate)
{
    if (rate == r->rate) return;
    r->left_s = left_at(r, at_s);
    r->timed_s = at_s;
    r->rate = rate;
    r->slowed |= rate < 1;
}

/* As far as it is known what it is beside. */
static inline double end_of_work(const struct runner *r)
{
    const double end_s = r->timed_s + r->left_s / r->rate;
    if (!r->is_beside || end_s <= r->in_flight_until_s || r->rate == 1) return end_s;
    return r->in_flight_until_s + left_at(r, r->in_flight_until_s);
}

/* Of its work beside messages. */
static inline double slow_rate(const struct ahead *a, const struct runner *r)
{
    return r->planned_s > 0 ? dl_work_rate(r->work, 1, &a->left, r->planned_s) : 1;
}

/* Until when, as far as that is known. */
static inline double begin_work(const struct ahead *a, struct runner *r, const struct dl_part *part, double now)
{
    const double seconds = part->segment.seconds, planned_s = fmax(seconds, r->host_s + part->behind_host_s - now);
    r->work = part;
    r->since_s = r->timed_s = now;
    r->planned_s = r->left_s = planned_s;
    r->host_s += part->host_s;
    r->books.host_s += planned_s - seconds;
    r->rate = 1;
    r->slowed = false;
    r->is_beside = r->in_flight_until_s > now;
    if (!r->is_beside) return r->until_s = now + planned_s;
    r->rate = slow_rate(a, r);
    r->slowed = r->rate < 1;
    return r->until_s = end_of_work(r);
}

/* What was under way has come by then. */
static inline void pass_messages(struct runner *r, double now)
{
    if (!r->is_beside || r->in_flight_until_s > now) return;
    change_rate(r, r->in_flight_until_s, 1);
    r->is_beside = false;
}

/* A message from or to its devices leaves now. The lockstep group may be ahead: its work begins later than now, and so
 * does what the message takes of it. */
static inline void meet_message(const struct ahead *a, struct runner *r, double until_s, double now)
{
    if (until_s <= r->in_flight_until_s) return;
    if (r->work) pass_messages(r, now);
    r->in_flight_until_s = until_s;
    const double at_s = fmax(now, r->timed_s);
    if (!r->work || until_s <= at_s) return;
    change_rate(r, at_s, slow_rate(a, r));
    r->is_beside = true;
    r->until_s = end_of_work(r);
}

static inline void end_work(struct runner *r, double now)
{
    const double whole_s = r->until_s - r->since_s;
    pass_messages(r, now);
    r->posted_s = r->timed_s;
    if (r->slowed) r->books.interference_s += fmax(whole_s - r->planned_s, 0);
    r->books.elapsed_s[r->phase] += whole_s;
    r->item_s += whole_s;
    r->work = NULL;
}

#endif
