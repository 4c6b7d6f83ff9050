/* interleaved.c - 1F1B over several chunks per stage, in Megatron-LM's order (Narayanan et al., SC21, section 2.2).
 *
 * Micro-batches go in groups of p: a group passes all chunks before the next one starts. The warm-up is
 * 2 (p - stage - 1) + (v - 1) p forwards; the bubble shrinks v times. */
#include "strategies/schedules/schedules.h"

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    const uint32_t p = request->stages, all = request->micros * request->chunks;
    const uint32_t in_flight = 2 * (p - stage - 1) + (request->chunks - 1) * p + 1;
    return in_flight < all ? in_flight : all;
}

/* The k-th forward of a stage; its k-th backward takes the chunks the other way round. */
static void append(struct dl_schedule *s, uint32_t stage, enum dl_item_kind kind, uint32_t k)
{
    const uint32_t group = s->stages * s->chunks;
    const uint32_t micro = k / group * s->stages + k % s->stages;
    const uint32_t chunk = k % group / s->stages;
    dl_schedule_append(s, stage, kind, micro, kind == DL_ITEM_F ? chunk : s->chunks - 1 - chunk);
}

static enum dl_status check(const struct dl_schedule_request *request, struct dl_error *err)
{
    const uint32_t p = request->stages, below = request->micros / p * p;
    if (below == request->micros) return DL_OK;
    return dl_schedule_refuse(
        request, "global_batch", err,
        "interleaved needs micro-batches in whole groups of the %u stages (pipeline/ways), got %u; "
        "nearest: %u",
        p, request->micros, below && request->micros - below < p - p / 2 ? below : below + p);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, false, arena);
    const uint32_t all = request->micros * request->chunks;
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        const uint32_t warm_up = live(request, stage) - 1;
        for (uint32_t k = 0; k < warm_up; k++) append(out, stage, DL_ITEM_F, k);
        for (uint32_t k = 0; k < all; k++) {
            if (k + warm_up < all) append(out, stage, DL_ITEM_F, k + warm_up);
            append(out, stage, DL_ITEM_B, k);
        }
    }
}

static double bubble(const struct dl_schedule_request *request)
{
    return (request->stages - 1.0) / request->micros / request->chunks;
}

const struct dl_schedule_kind dl_schedule_interleaved = {
    .name = "interleaved",
    .doc = "1f1b over `chunks` parts per stage: a bubble `chunks` times smaller, more transfers and activations",
    .min_chunks = 2,
    .max_chunks = UINT32_MAX,
    .check = check,
    .make = make,
    .bubble = bubble,
    .live = live,
};
