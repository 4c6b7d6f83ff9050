/* training_ahead_work.c - work beside messages whose arrival is known: at one rate until they have come, at another
 * after that. */
#include <assert.h>
#include <math.h>

#include "sim/engine/training_ahead_parts.h"

/* Beside messages and nothing else. */
static double slow_rate(const struct dl_training *t, const struct work *w)
{
    const struct dl_device *const d = t->request.device;
    return d && w->planned_s > 0 ? dl_work_rate(w, 1 - d->taken_by_sends_fraction) : 1;
}

static double left_at(const struct work *w, double at_s) { return fmax(w->left_s - (at_s - w->timed_s) * w->rate, 0); }

static void change_rate(struct work *w, double at_s, double rate)
{
    if (rate == w->rate) return;
    w->left_s = left_at(w, at_s);
    w->timed_s = at_s;
    w->rate = rate;
    w->slowed |= rate < 1;
}

/* As far as it is known what it is beside. */
static double end_of(const struct work *w, const struct runner *r)
{
    const double end_s = w->timed_s + w->left_s / w->rate;
    if (!r->is_beside || end_s <= r->in_flight_until_s || w->rate == 1) return end_s;
    return r->in_flight_until_s + left_at(w, r->in_flight_until_s);
}

void dl_ahead_begin_work(struct dl_training *t, struct lockstep_group *c, const struct dl_part *part)
{
    struct runner *const r = runner_of(t, c);
    struct work *const w = &c->work;
    const double since_s = now_s(t), pace = c->slowdown;
    assert(pace == 1); /* what of its seconds is of the network is not slowed */
    w->part = part;
    w->pace = pace;
    w->host_from_s = c->host_s;
    w->since_s = w->timed_s = since_s;
    w->planned_s = w->left_s = fmax(part->segment.seconds * pace, c->host_s + part->behind_host_s * pace - since_s);
    c->host_s += part->host_s * pace;
    r->slow_rate = slow_rate(t, w);
    r->is_beside = r->in_flight_until_s > since_s;
    w->rate = r->is_beside ? r->slow_rate : 1;
    w->slowed = w->rate < 1;
    w->until_s = end_of(w, r);
}

/* What was under way has come by then. */
static void pass_messages(struct lockstep_group *c, struct runner *r, double now)
{
    if (!r->is_beside || r->in_flight_until_s > now) return;
    change_rate(&c->work, r->in_flight_until_s, 1);
    r->is_beside = false;
}

/* The lockstep group may be ahead: its work begins later than now, and so does what the message takes of it. */
void dl_ahead_meet_message(struct dl_training *t, struct lockstep_group *c, double until_s)
{
    struct runner *const r = runner_of(t, c);
    const double at_s = fmax(now_s(t), c->work.timed_s);
    if (until_s <= r->in_flight_until_s) return;
    if (c->work.part) pass_messages(c, r, now_s(t));
    r->in_flight_until_s = until_s;
    if (!c->work.part || until_s <= at_s) return;
    change_rate(&c->work, at_s, r->slow_rate);
    r->is_beside = true;
    c->work.until_s = end_of(&c->work, r);
}

bool dl_ahead_end_work(struct dl_training *t, struct lockstep_group *c)
{
    struct runner *const r = runner_of(t, c);
    if (c->work.until_s > now_s(t)) return false;
    pass_messages(c, r, now_s(t));
    r->posted_s = c->work.timed_s;
    dl_training_end_work(t, c);
    return true;
}
