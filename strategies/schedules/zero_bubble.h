/* zero_bubble.h - what the zero-bubble schedules share: a hand-made order for F = B = W, and the best of greedy ones
 * where times or memory are otherwise (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024). */
#ifndef DL_STRATEGIES_SCHEDULES_ZERO_BUBBLE_H
#define DL_STRATEGIES_SCHEDULES_ZERO_BUBBLE_H

#include "strategies/schedules/schedules.h"

struct dl_zero_bubble {
    void (*place)(struct dl_schedule *s); /* OPTIONAL. NULL: the model goes round the stages once per chunk */
    void (*hand_made)(struct dl_schedule *s, uint32_t stage);
    uint32_t (*live)(const struct dl_schedule_request *request, uint32_t stage); /* what the order may hold */
};

/* The shortest of the hand-made and the greedy orders within the memory: what the schedule allows itself, and max_live.
 */
void dl_zero_bubble_make(const struct dl_zero_bubble *z, const struct dl_schedule_request *request,
                         struct dl_arena *arena, struct dl_schedule *out);

/* `warm_up` forwards, then B, W, F; each W comes `delay` backwards late. */
void dl_zero_bubble_append(struct dl_schedule *s, uint32_t stage, uint32_t warm_up, uint32_t delay);

/* Positions go down the stages and up again: the first and the last of the model are on stage 0. */
void dl_schedule_place_v(struct dl_schedule *s);

#endif
