/* training_causes.c - where the time of a lockstep group goes: every instant has one cause.
 *
 * Only what happens from t->from_s on is booked, so that the causes of the last iteration sum to its time. */
#include <math.h>
#include <string.h>

#include "sim/engine/training_steady.h"
#include "sim/engine/training_waits.h"
#include "sim/program/segments.h"

static void record(const struct dl_training *t, const struct lockstep_group *c, struct dl_slice slice)
{
    if (slice.to_s <= slice.from_s) return;
    slice.stage = c->stage;
    slice.replica = c->replica;
    slice.item = item_of(t, c);
    slice.number = c->item;
    t->request.recorder->add(t->request.recorder->user, &slice);
}

/* ---- work ---- */

/* How much of it was from the beginning of the books up to now. */
static double booked_s(const struct dl_training *t, const struct work *w)
{
    return fmax(fmin(now_s(t), w->until_s) - fmax(t->from_s, w->since_s), 0);
}

/* What packs or unpacks gradients after the last item is not the optimizer's. */
static double packing_s(const struct dl_training *t, const struct lockstep_group *c)
{
    return item_of(t, c) ? 0 : dl_segment_slowed_s(&c->work.part->segment, DL_CAUSE_DATA, c->work.pace);
}

/* So much of it. */
static void book_segment(struct lockstep_group *c, const struct dl_segment *segment, double share)
{
    const double pace = c->work.pace;
    if (pace == 1)
        for (int cause = 0; cause < DL_N_CAUSES; cause++) c->causes_s[cause] += segment->by_cause[cause] * share;
    else
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            c->causes_s[cause] += dl_segment_slowed_s(segment, (enum dl_cause)cause, pace) * share;
}

void dl_training_end_work(struct dl_training *t, struct lockstep_group *c)
{
    const struct work *const w = &c->work;
    const struct dl_segment *const segment = &w->part->segment;
    const double whole_s = w->until_s - w->since_s, seen_s = booked_s(t, w), share = whole_s > 0 ? seen_s / whole_s : 0;
    const double host_s = fmax(w->planned_s - dl_slowed_s(segment->seconds, segment->network_s, w->pace), 0);
    const double interference_s = w->slowed ? fmax(whole_s - w->planned_s, 0) : 0;
    book_segment(c, segment, share);
    c->causes_s[DL_CAUSE_HOST] += host_s * share;
    c->causes_s[DL_CAUSE_INTERFERENCE] += interference_s * share;
    book_elapsed(t, c, seen_s - packing_s(t, c) * share);
    const double slowed_s = fmax(w->planned_s - w->network_s, 0), added_s = slowed_s - slowed_s / w->pace;
    dl_training_delay_work(t, c, added_s);
    c->item_s += whole_s - added_s;
    if (t->request.recorder)
        record(t, c,
               (struct dl_slice){.kind = DL_SLICE_WORK,
                                 .from_s = w->since_s,
                                 .to_s = now_s(t),
                                 .running = c->running,
                                 .part = w->part,
                                 .pace = w->pace,
                                 .host_from_s = w->host_from_s,
                                 .host_s = host_s,
                                 .interference_s = interference_s});
    c->work.part = NULL;
}

/* ---- waiting ---- */

void dl_training_record_wait(const struct dl_training *t, const struct lockstep_group *c, double from_s, double to_s,
                             enum dl_cause cause)
{
    record(t, c, (struct dl_slice){.kind = DL_SLICE_WAIT, .from_s = from_s, .to_s = to_s, .cause = cause});
}

void dl_training_end_wait(struct dl_training *t, struct lockstep_group *c, const struct start *start,
                          enum dl_cause cause, double undisturbed_s)
{
    end_wait(t, c, start, cause, undisturbed_s);
}

/* Launches that a scenario has slowed would have come earlier. */
void dl_training_end_wait_for_host(struct dl_training *t, struct lockstep_group *c)
{
    const struct start own = dl_start_own(c);
    dl_training_end_wait(t, c, &own, DL_CAUSE_HOST, (now_s(t) - c->waits_since_s) / c->slowdown);
}

/* ---- the last iteration ---- */

void dl_training_open_books(struct dl_training *t)
{
    t->from_s = now_s(t);
    if (t->steady) dl_steady_open_books(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        memset(t->lockstep_groups[i].causes_s, 0, sizeof t->lockstep_groups[i].causes_s);
        memset(t->lockstep_groups[i].elapsed_s, 0, sizeof t->lockstep_groups[i].elapsed_s);
    }
    struct busy *const all[] = {&t->sending, &t->exchanging};
    for (size_t i = 0; i < DL_COUNT(all); i++) *all[i] = (struct busy){.n = all[i]->n, .since_s = t->from_s};
}

/* Inputs on their way: waiting for them is the network's fault since they were sent. */
static void end_waits_for_messages(struct dl_training *t)
{
    for (size_t i = 0; i < t->n_messages; i++) {
        const struct message *const p = &t->messages[i];
        struct lockstep_group *const c = &t->lockstep_groups[p->receiver];
        if (p->item && c->waits_for_input && dl_training_lacks(t, c, p->tag))
            dl_training_end_wait(t, c, &p->sent, DL_CAUSE_PIPELINE, 0);
    }
}

static void end_wait_for_collective(struct dl_training *t, struct lockstep_group *c)
{
    const struct rendezvous *const x = dl_training_awaited(c);
    const struct start start = dl_training_awaited_start(t, c);
    dl_training_end_wait(t, c, &start, x->comm->cause, dl_training_undisturbed_s(t, c->waits_at, x));
}

static void end_any_wait(struct dl_training *t, struct lockstep_group *c)
{
    if (c->waits_for_host) {
        dl_training_end_wait_for_host(t, c);
    } else if (c->waits_for_sends) {
        end_own_wait(t, c, DL_CAUSE_PIPELINE);
    } else if (c->waits_at) {
        end_wait_for_collective(t, c);
    } else if (c->waits_for_others) {
        dl_training_end_wait(t, c, &t->next, DL_CAUSE_BUBBLE, 0);
    } else if (c->waits_for_input) {
        const struct start start = dl_start_now(t, dl_training_source(t, c));
        dl_training_end_wait(t, c, &start, DL_CAUSE_PIPELINE, 0);
    }
}

void dl_training_close_books(struct dl_training *t)
{
    end_waits_for_messages(t);
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) {
        struct lockstep_group *const c = &t->lockstep_groups[i];
        if (c->work.part)
            dl_training_end_work(t, c);
        else
            end_any_wait(t, c);
    }
    struct busy *const all[] = {&t->sending, &t->exchanging};
    for (size_t i = 0; i < DL_COUNT(all); i++)
        if (all[i]->n) all[i]->total_s += now_s(t) - all[i]->since_s;
}
