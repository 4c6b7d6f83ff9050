/* zb_2p.c - no bubble with twice the memory of 1F1B (ZB-H2 of Qi et al., ICLR 2024, section 2; ZB-2P where greedy).
 *
 * Stage s fills the time until its first backward comes, 2 (p - s) - 1 forwards, and does each W 2 s backwards late. So
 * it works without a pause, s forwards later than stage 0: the stages must not wait for each other between steps, as
 * software with a step_barrier makes them do (the paper's validates the gradient norm after the update instead). With
 * a barrier the step takes 3 m F + (p - 1) F, as long as with zb-h1, and longer with fewer than 2 p - 1 micro-batches.
 */
#include "strategies/schedules/zero_bubble.h"

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    const uint32_t in_flight = 2 * request->stages - 1;
    return in_flight < request->micros ? in_flight : request->micros;
}

static void hand_made(struct dl_schedule *s, uint32_t stage)
{
    dl_zero_bubble_append(s, stage, 2 * (s->stages - stage) - 1, 2 * stage);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    static const struct dl_zero_bubble order = {.hand_made = hand_made, .live = live};
    dl_zero_bubble_make(&order, request, arena, out);
}

static double bubble(const struct dl_schedule_request *request)
{
    const bool filled = request->micros >= 2 * request->stages - 1;
    return filled && dl_schedule_times_are_equal(request) ? 0 : -1; /* (p - 1) (F + B - 2 W) */
}

const struct dl_schedule_kind dl_schedule_zb_2p = {
    .name = "zb-2p",
    .doc =
        "zero bubble with twice 1f1b's memory: none is left when F, B and W take the same time, there are 2 p - 1 "
        "micro-batches, and steps follow each other without a barrier; with one it takes as long as zb-h1, or longer",
    .splits_backward = true,
    .uses_times = true,
    .ends_skewed = true,
    .min_chunks = 1,
    .max_chunks = 1,
    .make = make,
    .bubble = bubble,
    .live = live,
};
