/* training_ahead_waits.h - how late a lockstep group is while it goes through its items, and where the time goes that
 * it waits. In a header, as it is in the innermost loop.
 *
 * These are the rules of training_delays.h and training_waits.h. No scenario slows work here, so that only messages
 * make anybody later. All other delays are from iterations before: a barrier has made them the same for all, and they
 * are only ever scaled. So their sum stands for them until the items are done, and is divided again then. */
#ifndef DL_ENGINE_TRAINING_AHEAD_WAITS_H
#define DL_ENGINE_TRAINING_AHEAD_WAITS_H

#include <math.h>

#include "sim/engine/training_parts.h"

/* Nobody is a straggler: its place is free for the sum, and for waits because of it. */
enum {
    BY_MESSAGES = DL_CAUSE_PIPELINE - DL_CAUSE_TENSOR,
    BY_OTHERS = DELAY_STRAGGLER,
    CAUSE_OTHERS = DL_CAUSE_STRAGGLER
};

/* training_ahead_delays.c: put the sum of those from before in the place of them; and divide it again. */
void dl_ahead_sum_delays(struct delays *d);
void dl_ahead_divide_delays(struct lockstep_group *c, const struct delays *before);

/* So that they sum to total_s. */
static inline void scale_delays(struct delays *d, double total_s)
{
    if (total_s == d->total_s) return;
    const bool keeps_sign = total_s * d->total_s > 0;
    const double factor = keeps_sign ? total_s / d->total_s : 0;
    d->by[BY_MESSAGES] *= factor;
    d->by[BY_OTHERS] *= factor;
    d->total_s = keeps_sign ? total_s : 0;
}

static inline void copy_delays(struct delays *to, const struct delays *from)
{
    to->by[BY_MESSAGES] = from->by[BY_MESSAGES];
    to->by[BY_OTHERS] = from->by[BY_OTHERS];
    to->total_s = from->total_s;
}

static inline void delay_by_messages(struct delays *d, double seconds)
{
    d->by[BY_MESSAGES] += seconds;
    d->total_s += seconds;
}

/* What the lockstep group needs had come before it was wanted; in the undisturbed step it comes then. */
static inline void pass_input(struct lockstep_group *c, double undisturbed_s)
{
    const double wait_s = undisturbed_s - (c->waits_since_s - c->delays.total_s);
    if (!(wait_s > 0)) return;
    c->owed_s += wait_s;
    scale_delays(&c->delays, c->delays.total_s - wait_s);
}

/* The sender was late by so much more than the lockstep group. */
static inline void book_delays_of_sender(struct lockstep_group *c, const struct start *sent, double late_s,
                                         double wait_s)
{
    struct delays late;
    copy_delays(&late, &sent->delays);
    scale_delays(&late, late_s);
    const double by_messages_s = fmax(late.by[BY_MESSAGES] - c->delays.by[BY_MESSAGES], 0);
    const double by_others_s = fmax(late.by[BY_OTHERS] - c->delays.by[BY_OTHERS], 0);
    const double sum_s = by_messages_s + by_others_s;
    if (sum_s <= 0) {
        c->causes_s[DL_CAUSE_BUBBLE] += wait_s;
        return;
    }
    c->causes_s[DL_CAUSE_PIPELINE] += by_messages_s * (wait_s / sum_s);
    c->causes_s[CAUSE_OTHERS] += by_others_s * (wait_s / sum_s);
}

/* Before the message was sent, as far as the lockstep group would by now have waited in the undisturbed step too, it is
 * a bubble. */
static inline void book_wait_for_sender(struct lockstep_group *c, const struct start *sent, double late_s)
{
    const double wait_s = sent->begun_s - c->waits_since_s;
    const double bubble_s = fmin(c->owed_s, wait_s);
    c->causes_s[DL_CAUSE_BUBBLE] += bubble_s;
    c->owed_s -= bubble_s;
    if (bubble_s < wait_s) book_delays_of_sender(c, sent, late_s, wait_s - bubble_s);
}

/* The lockstep group has waited for a message that comes now; in the undisturbed step the last that it needs comes
 * then. */
static inline void end_wait_for_message(struct lockstep_group *c, const struct start *sent, double undisturbed_s,
                                        double now)
{
    const double own_s = c->waits_since_s - c->delays.total_s, both_s = fmax(own_s, undisturbed_s);
    c->owed_s += both_s - own_s;
    if (sent->begun_s > c->waits_since_s) book_wait_for_sender(c, sent, sent->begun_s - both_s);
    c->causes_s[DL_CAUSE_PIPELINE] += now - fmax(sent->begun_s, c->waits_since_s);
    const double total_s = now - both_s, by_it_s = fmax(fmin(now - sent->begun_s, total_s), 0);
    copy_delays(&c->delays, &sent->delays);
    scale_delays(&c->delays, total_s - by_it_s);
    delay_by_messages(&c->delays, by_it_s);
}

#endif
