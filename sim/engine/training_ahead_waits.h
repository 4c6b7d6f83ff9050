/* training_ahead_waits.h - how late a lockstep group is while it goes through its items, and where the time goes that
 * it waits. In a header, as it is in the innermost loop.
 *
 * These are the rules of training_delays.h and training_waits.h. No scenario slows work here, so that only messages
 * make anybody later. All other delays are from iterations before: a barrier has made them the same for all, and they
 * are only ever scaled. So their sum stands for them until the items are done, and is divided again then. */
#ifndef DL_ENGINE_TRAINING_AHEAD_WAITS_H
#define DL_ENGINE_TRAINING_AHEAD_WAITS_H

#include <math.h>

#include "sim/engine/training_ahead_parts.h"

/* In the delays of lockstep groups and messages meanwhile: nobody is a straggler, so its place is free for the sum, and
 * for waits because of it. */
enum {
    BY_MESSAGES = DL_CAUSE_PIPELINE - DL_CAUSE_TENSOR,
    BY_OTHERS = DELAY_STRAGGLER,
    CAUSE_OTHERS = DL_CAUSE_STRAGGLER
};

static inline struct late late_of(const struct delays *d)
{
    return (struct late){d->by[BY_MESSAGES], d->by[BY_OTHERS], d->total_s};
}

static inline void put_late(struct delays *d, const struct late *late)
{
    d->by[BY_MESSAGES] = late->by_messages_s;
    d->by[BY_OTHERS] = late->by_others_s;
    d->total_s = late->total_s;
}

/* So that they sum to total_s. */
static inline void scale_late(struct late *l, double total_s)
{
    if (total_s == l->total_s) return;
    const bool keeps_sign = total_s * l->total_s > 0;
    const double factor = keeps_sign ? total_s / l->total_s : 0;
    l->by_messages_s *= factor;
    l->by_others_s *= factor;
    l->total_s = keeps_sign ? total_s : 0;
}

static inline void delay_by_messages(struct late *l, double seconds)
{
    l->by_messages_s += seconds;
    l->total_s += seconds;
}

/* What the lockstep group needs had come before it was wanted; in the undisturbed step it comes then. */
static inline void pass_input(struct runner *r, double undisturbed_s)
{
    const double wait_s = undisturbed_s - (r->waits_since_s - r->late.total_s);
    if (!(wait_s > 0)) return;
    r->owed_s += wait_s;
    scale_late(&r->late, r->late.total_s - wait_s);
}

/* The sender was late by so much more than the lockstep group. */
static inline void book_delays_of_sender(struct runner *r, const struct start *sent, double late_s, double wait_s)
{
    struct late late = late_of(&sent->delays);
    scale_late(&late, late_s);
    const double by_messages_s = fmax(late.by_messages_s - r->late.by_messages_s, 0);
    const double by_others_s = fmax(late.by_others_s - r->late.by_others_s, 0);
    const double sum_s = by_messages_s + by_others_s;
    if (sum_s <= 0) {
        r->books.bubble_s += wait_s;
        return;
    }
    r->books.messages_s += by_messages_s * (wait_s / sum_s);
    r->books.others_s += by_others_s * (wait_s / sum_s);
}

/* Before the message was sent, as far as the lockstep group would by now have waited in the undisturbed step too, it is
 * a bubble. */
static inline void book_wait_for_sender(struct runner *r, const struct start *sent, double late_s)
{
    const double wait_s = sent->begun_s - r->waits_since_s;
    const double bubble_s = fmin(r->owed_s, wait_s);
    r->books.bubble_s += bubble_s;
    r->owed_s -= bubble_s;
    if (bubble_s < wait_s) book_delays_of_sender(r, sent, late_s, wait_s - bubble_s);
}

/* The lockstep group has waited for a message that comes now; in the undisturbed step the last that it needs comes
 * then. */
static inline void end_wait_for_message(struct runner *r, const struct start *sent, double undisturbed_s, double now)
{
    const double own_s = r->waits_since_s - r->late.total_s, both_s = fmax(own_s, undisturbed_s);
    r->owed_s += both_s - own_s;
    if (sent->begun_s > r->waits_since_s) book_wait_for_sender(r, sent, sent->begun_s - both_s);
    r->books.messages_s += now - fmax(sent->begun_s, r->waits_since_s);
    const double total_s = now - both_s, by_it_s = fmax(fmin(now - sent->begun_s, total_s), 0);
    r->late = late_of(&sent->delays);
    scale_late(&r->late, total_s - by_it_s);
    delay_by_messages(&r->late, by_it_s);
}

#endif
