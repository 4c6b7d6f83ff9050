/* gpipe.c - all forwards, then all backwards, newest first (Huang et al., "GPipe", NeurIPS 2019). */
#include "strategies/schedules/schedules.h"

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, false, arena);
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        for (uint32_t k = 0; k < request->micros; k++) dl_schedule_append(out, stage, DL_ITEM_F, k, 0);
        for (uint32_t k = request->micros; k-- > 0;) dl_schedule_append(out, stage, DL_ITEM_B, k, 0);
    }
}

static double bubble(const struct dl_schedule_request *request) { return (request->stages - 1.0) / request->micros; }

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return request->micros;
}

const struct dl_schedule_kind dl_schedule_gpipe = {
    .name = "gpipe",
    .doc = "all forwards, then all backwards; holds every micro-batch",
    .min_chunks = 1,
    .max_chunks = 1,
    .make = make,
    .bubble = bubble,
    .live = live,
};
