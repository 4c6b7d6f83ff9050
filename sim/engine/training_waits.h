/* training_waits.h - where the time goes that a lockstep group waits. In a header, as it is in the innermost loops.
 *
 * Only what happens from t->from_s on is booked. */
#ifndef DL_ENGINE_TRAINING_WAITS_H
#define DL_ENGINE_TRAINING_WAITS_H

#include "sim/engine/training_delays.h"

static inline const struct dl_item *item_of(const struct dl_training *t, const struct lockstep_group *c)
{
    return is_at_end(t, c) ? NULL : &program_of(t, c)->sequence[c->item].item;
}

/* Tell the recorder of a wait. */
void dl_training_record_wait(const struct dl_training *t, const struct lockstep_group *c, double from_s, double to_s,
                             enum dl_cause cause);

static inline void book_elapsed(struct dl_training *t, struct lockstep_group *c, double seconds)
{
    const struct dl_item *const item = item_of(t, c);
    c->elapsed_s[!item ? DL_PHASE_END : item->kind == DL_ITEM_F ? DL_PHASE_FORWARD : DL_PHASE_BACKWARD] += seconds;
}

static inline void book_wait(struct dl_training *t, struct lockstep_group *c, double from_s, double to_s,
                             enum dl_cause cause)
{
    const double seconds = fmax(to_s - fmax(from_s, t->from_s), 0);
    c->causes_s[cause] += seconds;
    if (cause == DL_CAUSE_HOST || (c->waits_at && is_within_items(c->waits_at))) book_elapsed(t, c, seconds);
    if (t->request.recorder) dl_training_record_wait(t, c, from_s, to_s, cause);
}

/* Waiting that is not in the undisturbed step is divided like the delays that the lockstep group does not have itself;
 * but for rounding there is one. */
static inline void book_delays(struct dl_training *t, struct lockstep_group *c, const struct start *start,
                               double from_s)
{
    const struct delays late = dl_training_delays_at_start(t, c, start);
    double more_s[N_DELAYS], sum_s = 0;
    for (int i = 0; i < N_DELAYS; i++) {
        more_s[i] = late.by[i] > c->delays.by[i] ? late.by[i] - c->delays.by[i] : 0;
        sum_s += more_s[i];
    }
    if (sum_s <= 0) book_wait(t, c, from_s, start->begun_s, DL_CAUSE_BUBBLE);
    const double share = (start->begun_s - from_s) / sum_s;
    for (int i = 0; i < N_DELAYS; i++) {
        if (more_s[i] <= 0) continue;
        const enum dl_cause cause = i == DELAY_STRAGGLER ? DL_CAUSE_STRAGGLER : DL_CAUSE_TENSOR + (enum dl_cause)i;
        book_wait(t, c, from_s, from_s + more_s[i] * share, cause);
        from_s += more_s[i] * share;
    }
}

/* As far as the lockstep group would by now have waited in the undisturbed step too, it is a bubble. */
static inline void book_wait_for_partner(struct dl_training *t, struct lockstep_group *c, const struct start *start)
{
    const double bubble_s = fmin(c->owed_s, start->begun_s - c->waits_since_s);
    const double end_s = fmin(c->waits_since_s + bubble_s, start->begun_s);
    book_wait(t, c, c->waits_since_s, end_s, DL_CAUSE_BUBBLE);
    if (end_s < start->begun_s) book_delays(t, c, start, end_s);
    c->owed_s -= bubble_s;
}

static inline void stop_waiting(struct lockstep_group *c)
{
    c->waits_for_input = c->waits_for_others = c->waits_for_sends = false;
    c->waits_for_host = NULL;
    c->waits_at = NULL;
}

/* Waiting before the start was for a partner, waiting since then for `cause`, which in the undisturbed step takes
 * undisturbed_s. */
static inline void end_wait(struct dl_training *t, struct lockstep_group *c, const struct start *start,
                            enum dl_cause cause, double undisturbed_s)
{
    const double since_s = fmax(start->begun_s, c->waits_since_s);
    c->owed_s += dl_training_undisturbed_wait_s(c, start->undisturbed_s);
    if (since_s > c->waits_since_s) book_wait_for_partner(t, c, start);
    book_wait(t, c, since_s, now_s(t), cause);
    if (c->waits_for_host || (c->waits_at && is_within_items(c->waits_at)))
        c->item_s += fmin(now_s(t) - since_s, undisturbed_s);
    dl_training_take_over(t, c, start, cause, undisturbed_s);
    stop_waiting(c);
}

/* Of what the lockstep group has on the network by itself: it is as much later. */
static inline void end_own_wait(struct dl_training *t, struct lockstep_group *c, enum dl_cause cause)
{
    const double now = now_s(t);
    book_wait(t, c, c->waits_since_s, now, cause);
    add_delay(&c->delays, delay_of(cause), now - c->waits_since_s);
    stop_waiting(c);
}

#endif
