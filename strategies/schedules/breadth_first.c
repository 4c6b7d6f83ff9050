/* breadth_first.c - all micro-batches through a chunk before the next chunk (Lamy-Poirier, "Breadth-First Pipeline
 * Parallelism", MLSys 2023): interleaved's bubble, and a chunk's gradients are complete early. */
#include "strategies/schedules/schedules.h"

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, false, arena);
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        for (uint32_t chunk = 0; chunk < request->chunks; chunk++)
            for (uint32_t k = 0; k < request->micros; k++) dl_schedule_append(out, stage, DL_ITEM_F, k, chunk);
        for (uint32_t chunk = request->chunks; chunk-- > 0;)
            for (uint32_t k = 0; k < request->micros; k++) dl_schedule_append(out, stage, DL_ITEM_B, k, chunk);
    }
}

/* With fewer micro-batches than stages a stage also waits, between chunks, for the first to come round again. */
static double bubble(const struct dl_schedule_request *request)
{
    const double p = request->stages, m = request->micros, v = request->chunks;
    return (p - 1 + (v - 1) * (m < p ? p - m : 0)) / (v * m);
}

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return request->micros * request->chunks;
}

const struct dl_schedule_kind dl_schedule_breadth_first = {
    .name = "breadth-first",
    .doc = "all micro-batches through one chunk, then the next: interleaved's bubble, gradients of a chunk ready early",
    .min_chunks = 1,
    .max_chunks = UINT32_MAX,
    .make = make,
    .bubble = bubble,
    .live = live,
};
