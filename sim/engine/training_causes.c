/* training_causes.c - where the time of a crew goes: every instant has one cause.
 *
 * Only what happens from t->from_s on is booked, so that the causes of the last iteration sum to its time. */
#include <math.h>
#include <string.h>

#include "sim/engine/training_parts.h"

static const struct dl_item *item_of(const struct dl_training *t, const struct crew *c)
{
    const struct dl_schedule *const s = &t->request.lowered->schedule;
    return c->item < s->n_items[c->stage] ? &s->items[c->stage][c->item] : NULL;
}

static void record(const struct dl_training *t, const struct crew *c, struct dl_slice slice)
{
    if (slice.to_s <= slice.from_s) return;
    slice.stage = c->stage;
    slice.replica = c->replica;
    slice.item = item_of(t, c);
    t->request.recorder->add(t->request.recorder->user, &slice);
}

/* ---- work ---- */

static void book_elapsed(struct dl_training *t, struct crew *c, double seconds)
{
    const struct dl_item *const item = item_of(t, c);
    c->elapsed_s[!item ? DL_PHASE_END : item->kind == DL_ITEM_F ? DL_PHASE_FORWARD : DL_PHASE_BACKWARD] += seconds;
}

/* How much of it was from the beginning of the books up to now. */
static double booked_s(const struct dl_training *t, const struct work *w)
{
    return fmax(fmin(now_s(t), w->until_s) - fmax(t->from_s, w->since_s), 0);
}

/* What packs or unpacks gradients after the last item is not the optimizer's. */
static double packing_s(const struct dl_training *t, const struct crew *c)
{
    return item_of(t, c) ? 0 : c->work.part->segment.by_cause[DL_CAUSE_DATA] * c->work.pace;
}

void dl_training_end_work(struct dl_training *t, struct crew *c)
{
    const struct work *const w = &c->work;
    const struct dl_segment *const segment = &w->part->segment;
    const double whole_s = w->until_s - w->since_s, share = whole_s > 0 ? booked_s(t, w) / whole_s : 0;
    const double host_s = fmax(w->planned_s - segment->seconds * w->pace, 0);
    const double interference_s = w->slowed ? fmax(whole_s - w->planned_s, 0) : 0;
    for (int cause = 0; cause < DL_N_CAUSES; cause++) c->causes_s[cause] += segment->by_cause[cause] * w->pace * share;
    c->causes_s[DL_CAUSE_HOST] += host_s * share;
    c->causes_s[DL_CAUSE_INTERFERENCE] += interference_s * share;
    book_elapsed(t, c, booked_s(t, w) - packing_s(t, c) * share);
    if (t->request.recorder)
        record(t, c,
               (struct dl_slice){.kind = DL_SLICE_WORK,
                                 .from_s = w->since_s,
                                 .to_s = now_s(t),
                                 .running = c->running,
                                 .part = c->part - 1,
                                 .pace = w->pace,
                                 .host_from_s = w->host_from_s,
                                 .host_s = host_s,
                                 .interference_s = interference_s});
    c->work.part = NULL;
}

/* ---- waiting ---- */

static void book_wait(struct dl_training *t, struct crew *c, double from_s, double to_s, enum dl_cause cause)
{
    const double seconds = fmax(to_s - fmax(from_s, t->from_s), 0);
    c->causes_s[cause] += seconds;
    if (cause == DL_CAUSE_HOST || c->waits_for_circle) book_elapsed(t, c, seconds);
    if (t->request.recorder)
        record(t, c, (struct dl_slice){.kind = DL_SLICE_WAIT, .from_s = from_s, .to_s = to_s, .cause = cause});
}

void dl_training_end_wait(struct dl_training *t, struct crew *c, double begun_s, enum dl_cause cause)
{
    const double since_s = fmax(begun_s, c->waits_since_s);
    book_wait(t, c, c->waits_since_s, since_s, DL_CAUSE_BUBBLE);
    book_wait(t, c, since_s, now_s(t), cause);
    c->waits_for_input = c->waits_for_others = c->waits_for_sends = c->waits_for_circle = false;
    c->waits_for_host = NULL;
    c->waits_for = 0;
    c->meets = NULL;
}

/* ---- the last iteration ---- */

void dl_training_open_books(struct dl_training *t)
{
    t->from_s = now_s(t);
    for (uint32_t i = 0; i < t->n_crews; i++) {
        memset(t->crews[i].causes_s, 0, sizeof t->crews[i].causes_s);
        memset(t->crews[i].elapsed_s, 0, sizeof t->crews[i].elapsed_s);
    }
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
        if (c->work.part)
            dl_training_end_work(t, c);
        else if (c->waits_for_host || c->waits_for_sends)
            dl_training_end_wait(t, c, c->waits_since_s, c->waits_for_host ? DL_CAUSE_HOST : DL_CAUSE_PIPELINE);
        else if (c->waits_for)
            end_wait_for_exchange(t, c);
        else if (c->waits_for_circle)
            dl_training_end_wait(t, c, c->is_in->n_running ? c->is_in->begun_s : now_s(t), c->is_in->what->cause);
        else if (c->meets)
            dl_training_end_wait(t, c, c->meets->n_running ? c->meets->begun_s : now_s(t), DL_CAUSE_PIPELINE);
        else if (c->waits_for_input || c->waits_for_others)
            dl_training_end_wait(t, c, now_s(t), DL_CAUSE_BUBBLE);
    }
    struct busy *const all[] = {&t->sending, &t->exchanging};
    for (size_t i = 0; i < DL_COUNT(all); i++)
        if (all[i]->n) all[i]->total_s += now_s(t) - all[i]->since_s;
}
