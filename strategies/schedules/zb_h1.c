/* zb_h1.c - zero bubble within the memory of 1F1B (ZB-H1 of Qi et al., ICLR 2024, section 2; ZB-1P where greedy).
 *
 * 1F1B's order with W split off and put s backwards late on stage s: all stages hold p micro-batches, and what was the
 * bubble of the weights' gradients is filled. */
#include "strategies/schedules/zero_bubble.h"

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return request->stages < request->micros ? request->stages : request->micros;
}

static void hand_made(struct dl_schedule *s, uint32_t stage)
{
    dl_zero_bubble_append(s, stage, s->stages - stage, stage);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    static const struct dl_zero_bubble order = {.hand_made = hand_made, .live = live};
    dl_zero_bubble_make(&order, request, arena, out);
}

static double bubble(const struct dl_schedule_request *request)
{
    if (!dl_schedule_times_are_equal(request) || request->micros < request->stages) return -1;
    return (request->stages - 1.0) / (3.0 * request->micros); /* (p - 1) (F + B - W) over m (F + B + W) */
}

const struct dl_schedule_kind dl_schedule_zb_h1 = {
    .name = "zb-h1",
    .doc = "zero bubble with 1f1b's memory: a third of its bubble",
    .splits_backward = true,
    .uses_times = true,
    .min_chunks = 1,
    .max_chunks = 1,
    .make = make,
    .bubble = bubble,
    .live = live,
};
