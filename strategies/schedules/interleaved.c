/* interleaved.c - 1F1B over several chunks per stage, in Megatron-LM's order (Narayanan et al., SC21, section 2.2).
 *
 * Micro-batches go in groups of g, which is p unless it is said: a group passes all chunks before the next one starts.
 * The warm-up is 2 (p - stage - 1) + (v - 1) g forwards; the bubble shrinks v times. What is left for the last group
 * may be fewer, but not fewer than p: between chunks the first stage would wait for the last, or all for each other in
 * a circle (5 micro-batches with p 4, v 3, g 4). Megatron-Core has the same order and refuses the same
 * (megatron/core/pipeline_parallel/schedules.py: get_schedule_table, get_pp_rank_microbatches and the head of
 * forward_backward_pipelining_with_interleaving). */
#include "strategies/schedules/schedules.h"

static uint32_t group_of(const struct dl_schedule_request *request)
{
    return request->group ? request->group : request->stages;
}

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    const uint32_t all = request->micros * request->chunks;
    const uint32_t in_flight = 2 * (request->stages - stage - 1) + (request->chunks - 1) * group_of(request) + 1;
    return in_flight < all ? in_flight : all;
}

/* The k-th forward of a stage; its k-th backward takes the chunks the other way round. */
static void append(struct dl_schedule *s, uint32_t group, uint32_t stage, enum dl_item_kind kind, uint32_t k)
{
    const uint32_t first = k / (group * s->chunks) * group, rest = s->micros - first;
    const uint32_t size = rest < group ? rest : group, within = k - first * s->chunks;
    const uint32_t chunk = within / size;
    dl_schedule_append(s, stage, kind, first + within % size, kind == DL_ITEM_F ? chunk : s->chunks - 1 - chunk);
}

uint32_t dl_schedule_nearest_in_groups(uint32_t group, uint32_t stages, uint32_t micros)
{
    const uint32_t rest = micros % group, below = micros - rest;
    if (!below) return group;
    if (!rest || rest >= stages) return micros;
    return rest < stages - rest ? below : below + stages;
}

static enum dl_status check(const struct dl_schedule_request *request, struct dl_error *err)
{
    const uint32_t p = request->stages, group = group_of(request);
    if (group < p)
        return dl_schedule_refuse(request, "group", err,
                                  "must be at least the %u stages (pipeline/ways), got %u; nearest: %u", p, group, p);
    const uint32_t nearest = dl_schedule_nearest_in_groups(group, p, request->micros);
    if (nearest == request->micros) return DL_OK;
    if (!request->group)
        return dl_schedule_refuse(request, "global_batch", err,
                                  "interleaved needs micro-batches in whole groups of the %u stages (pipeline/ways), "
                                  "or groups of another size (pipeline/group), got %u; nearest: %u",
                                  p, request->micros, nearest);
    return dl_schedule_refuse(request, "global_batch", err,
                              "interleaved needs micro-batches in whole groups of %u (pipeline/group), of which the "
                              "last may have as few as the %u stages (pipeline/ways), got %u; nearest: %u",
                              group, p, request->micros, nearest);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, false, arena);
    const uint32_t all = request->micros * request->chunks, group = group_of(request);
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        const uint32_t warm_up = live(request, stage) - 1;
        for (uint32_t k = 0; k < warm_up; k++) append(out, group, stage, DL_ITEM_F, k);
        for (uint32_t k = 0; k < all; k++) {
            if (k + warm_up < all) append(out, group, stage, DL_ITEM_F, k + warm_up);
            append(out, group, stage, DL_ITEM_B, k);
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
    .has_groups = true,
    .check = check,
    .make = make,
    .bubble = bubble,
    .live = live,
};
