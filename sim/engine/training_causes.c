/* training_causes.c - where the time of a crew goes: every instant has one cause.
 *
 * Only what happens from t->from_s on is booked, so that the causes of the last iteration sum to its time. */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "sim/engine/training_parts.h"

static const struct dl_item *item_of(const struct dl_training *t, const struct crew *c)
{
    const struct dl_schedule *const s = &t->request.lowered->schedule;
    return c->item < s->n_items[c->stage] ? &s->items[c->stage][c->item] : NULL;
}

static void record(const struct dl_training *t, const struct crew *c, struct dl_slice slice)
{
    if (!t->request.recorder || slice.to_s <= slice.from_s) return;
    slice.stage = c->stage;
    slice.replica = c->replica;
    slice.item = item_of(t, c);
    t->request.recorder->add(t->request.recorder->user, &slice);
}

/* ---- work ---- */

/* A factor of mean 1; its standard deviation is the scenario's fraction. */
static double draw_jitter(const struct dl_training *t, const struct crew *c)
{
    const double fraction = t->request.scenario->jitter_fraction, variance = log1p(fraction * fraction);
    return gsl_ran_lognormal(c->jitter, -variance / 2, sqrt(variance));
}

void dl_training_begin_work(struct dl_training *t, struct crew *c, const struct dl_segment *segment)
{
    const double pace = c->jitter ? c->slowdown * draw_jitter(t, c) : c->slowdown;
    c->doing = segment;
    c->doing_since_s = now_s(t);
    c->doing_until_s = c->doing_since_s + segment->seconds * pace;
}

/* The part of it that is booked, as a share of the whole segment's seconds. */
static double share_booked(const struct dl_training *t, const struct crew *c)
{
    const double whole_s = c->doing_until_s - c->doing_since_s;
    const double booked_s = fmin(now_s(t), c->doing_until_s) - fmax(t->from_s, c->doing_since_s);
    return whole_s > 0 ? fmax(booked_s, 0) / whole_s : 0;
}

static double pace_of(const struct crew *c)
{
    return c->doing->seconds > 0 ? (c->doing_until_s - c->doing_since_s) / c->doing->seconds : 1;
}

void dl_training_end_work(struct dl_training *t, struct crew *c)
{
    const double pace = pace_of(c), share = pace * share_booked(t, c);
    for (int cause = 0; cause < DL_N_CAUSES; cause++) c->causes_s[cause] += c->doing->by_cause[cause] * share;
    record(t, c,
           (struct dl_slice){.kind = DL_SLICE_WORK,
                             .from_s = c->doing_since_s,
                             .to_s = now_s(t),
                             .running = c->running,
                             .part = c->part - 1,
                             .pace = pace});
    c->doing = NULL;
}

/* ---- waiting ---- */

static void book_wait(struct dl_training *t, struct crew *c, double from_s, double to_s, enum dl_cause cause)
{
    c->causes_s[cause] += fmax(to_s - fmax(from_s, t->from_s), 0);
    record(t, c, (struct dl_slice){.kind = DL_SLICE_WAIT, .from_s = from_s, .to_s = to_s, .cause = cause});
}

void dl_training_end_wait(struct dl_training *t, struct crew *c, double begun_s, enum dl_cause cause)
{
    const double since_s = fmax(begun_s, c->waits_since_s);
    book_wait(t, c, c->waits_since_s, since_s, DL_CAUSE_BUBBLE);
    book_wait(t, c, since_s, now_s(t), cause);
    c->waits_for_input = c->waits_for_others = false;
    c->waits_for = 0;
    c->meets = NULL;
}

/* ---- the last iteration ---- */

void dl_training_open_books(struct dl_training *t)
{
    t->from_s = now_s(t);
    for (uint32_t i = 0; i < t->n_crews; i++)
        for (int cause = 0; cause < DL_N_CAUSES; cause++) t->crews[i].causes_s[cause] = 0;
    struct busy *const all[] = {&t->sending, &t->exchanging};
    for (size_t i = 0; i < DL_COUNT(all); i++) *all[i] = (struct busy){.n = all[i]->n, .since_s = t->from_s};
}

/* Inputs on their way: waiting for them is the network's fault since they were sent. */
static void end_waits_for_parcels(struct dl_training *t)
{
    for (size_t i = 0; i < t->n_parcels; i++) {
        const struct parcel *const p = &t->parcels[i];
        struct crew *const c = &t->crews[p->crew];
        if (p->item && c->waits_for_input && dl_training_lacks(t, c, p->place))
            dl_training_end_wait(t, c, p->sent_s, DL_CAUSE_PIPELINE);
    }
}

static void end_wait_for_exchange(struct dl_training *t, struct crew *c)
{
    const struct queue *const q = &t->queues[c->stage];
    const struct exchange *const x = &q->exchanges[c->waits_for - 1];
    const double since_s = q->busy ? q->exchanges[q->next].unbroken_s : now_s(t);
    dl_training_end_wait(t, c, since_s, t->request.lowered->calls[x->call].cause);
}

void dl_training_close_books(struct dl_training *t)
{
    end_waits_for_parcels(t);
    for (uint32_t i = 0; i < t->n_crews; i++) {
        struct crew *const c = &t->crews[i];
        if (c->doing)
            dl_training_end_work(t, c);
        else if (c->waits_for)
            end_wait_for_exchange(t, c);
        else if (c->meets)
            dl_training_end_wait(t, c, c->meets->n_running ? c->meets->begun_s : now_s(t), DL_CAUSE_PIPELINE);
        else if (c->waits_for_input || c->waits_for_others)
            dl_training_end_wait(t, c, now_s(t), DL_CAUSE_BUBBLE);
    }
    struct busy *const all[] = {&t->sending, &t->exchanging};
    for (size_t i = 0; i < DL_COUNT(all); i++)
        if (all[i]->n) all[i]->total_s += now_s(t) - all[i]->since_s;
}
