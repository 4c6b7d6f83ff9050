/* 1f1b.c - one forward, one backward: GPipe's bubble with the activations of p - stage micro-batches
 * (Narayanan et al., "PipeDream", SOSP 2019; the flushing form of "Memory-Efficient Pipeline-Parallel DNN Training").
 */
#include "strategies/schedules/schedules.h"

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    const uint32_t in_flight = request->stages - stage;
    return in_flight < request->micros ? in_flight : request->micros;
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, false, arena);
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        const uint32_t warm_up = live(request, stage) - 1;
        for (uint32_t k = 0; k < warm_up; k++) dl_schedule_append(out, stage, DL_ITEM_F, k, 0);
        for (uint32_t k = 0; k < request->micros; k++) {
            if (k + warm_up < request->micros) dl_schedule_append(out, stage, DL_ITEM_F, k + warm_up, 0);
            dl_schedule_append(out, stage, DL_ITEM_B, k, 0);
        }
    }
}

static double bubble(const struct dl_schedule_request *request) { return (request->stages - 1.0) / request->micros; }

const struct dl_schedule_kind dl_schedule_1f1b = {
    .name = "1f1b",
    .doc = "one forward, one backward after a warm-up; stage s of p holds p - s micro-batches",
    .min_chunks = 1,
    .max_chunks = 1,
    .make = make,
    .bubble = bubble,
    .live = live,
};
