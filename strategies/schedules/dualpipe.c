/* dualpipe.c - micro-batches enter at both ends (DeepSeek-V3 technical report, 2024, section 3.2.1).
 *
 * The model is held twice: stage s has position s of path 0 as chunk 0 and position p - 1 - s of path 1 as chunk 1.
 * Even micro-batches take path 0, odd ones path 1. Phase 0 of a stage is the path that enters nearer to it. The forward
 * of one phase is interleaved with the whole backward of the other, so that each hides the other's communication. */
#include "strategies/schedules/schedules.h"

struct stage_order {
    struct dl_schedule *s;
    uint32_t stage, near; /* near: the path of phase 0 */
    uint32_t next[DL_ITEM_W + 1][2];
    uint32_t owed; /* among its items: the first B that may still owe its W */
};

static void append(struct stage_order *o, enum dl_item_kind kind, uint32_t phase, bool with_next)
{
    const uint32_t path = phase ^ o->near, micro = 2 * o->next[kind][phase]++ + path;
    dl_schedule_append(o->s, o->stage, kind, micro, path);
    o->s->items[o->stage][o->s->n_items[o->stage] - 1].with_next = with_next;
}

static void forward(struct stage_order *o, uint32_t phase) { append(o, DL_ITEM_F, phase, false); }

static void whole_backward(struct stage_order *o, uint32_t phase)
{
    append(o, DL_ITEM_B, phase, true);
    append(o, DL_ITEM_W, phase, false);
}

static void interleave(struct stage_order *o, uint32_t forward_phase)
{
    append(o, DL_ITEM_F, forward_phase, true);
    whole_backward(o, 1 - forward_phase);
}

static void input_backward(struct stage_order *o, uint32_t phase) { append(o, DL_ITEM_B, phase, false); }

static void oldest_weight(struct stage_order *o)
{
    const struct dl_item *const items = o->s->items[o->stage];
    while (items[o->owed].kind != DL_ITEM_B || items[o->owed].with_next) o->owed++;
    append(o, DL_ITEM_W, items[o->owed++].chunk ^ o->near, false);
}

/* Until both directions are under way. `depth`: stages between this one and its end of the pipeline; `inner`: between
 * it and the middle. */
static void fill(struct stage_order *o, uint32_t depth, uint32_t inner)
{
    for (uint32_t k = 0; k < 2 * inner; k++) forward(o, 0);
    for (uint32_t k = 0; k <= depth; k++) {
        forward(o, 0);
        forward(o, 1);
    }
    for (uint32_t k = 0; k < inner; k++) {
        input_backward(o, 1);
        oldest_weight(o);
        forward(o, 1);
    }
}

static void both_ways(struct stage_order *o, uint32_t rounds, uint32_t inner)
{
    for (uint32_t k = 0; k < rounds; k++) {
        if (k == 0 && inner == 0) { /* in the middle the backward would hold up the first forward */
            forward(o, 0);
            whole_backward(o, 1);
        } else {
            interleave(o, 0);
        }
        interleave(o, 1);
    }
    for (uint32_t k = 0; k < inner; k++) {
        whole_backward(o, 1);
        interleave(o, 1);
    }
}

/* The later half of the backwards leave their W for the time in which nothing else is there to do. */
static void drain(struct stage_order *o, uint32_t depth, uint32_t inner)
{
    const uint32_t n_backwards = 2 * (depth + 1), n_whole = depth + 1;
    for (uint32_t k = 0; k < n_backwards; k++) {
        if (k < n_whole)
            whole_backward(o, 1 - k % 2);
        else
            input_backward(o, 1 - k % 2);
    }
    for (uint32_t k = 0; k < inner; k++) {
        oldest_weight(o);
        input_backward(o, 0);
    }
    for (uint32_t k = 0; k <= depth; k++) oldest_weight(o);
}

static void order_stage(struct dl_schedule *s, uint32_t stage)
{
    const uint32_t p = s->stages, near = stage < p / 2 ? 0 : 1;
    const uint32_t depth = near ? p - 1 - stage : stage, inner = p / 2 - 1 - depth;
    struct stage_order o = {.s = s, .stage = stage, .near = near};
    fill(&o, depth, inner);
    both_ways(&o, s->micros / 2 - p + depth + 1, inner);
    drain(&o, depth, inner);
}

static enum dl_status check(const struct dl_schedule_request *request, struct dl_error *err)
{
    const uint32_t p = request->stages, m = request->micros;
    if (p % 2)
        return dl_schedule_refuse(request, "ways", err, "dualpipe needs an even number, got %u; nearest: %u", p, p + 1);
    if (m >= 2 * p && m % 2 == 0) return DL_OK;
    return dl_schedule_refuse(
        request, "global_batch", err,
        "dualpipe needs an even number of micro-batches, at least twice the %u stages (pipeline/ways), got %u; "
        "nearest: %u",
        p, m, m < 2 * p ? 2 * p : m + 1);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, true, arena);
    out->n_paths = 2;
    out->n_positions = request->stages;
    for (uint32_t stage = 0; stage < request->stages; stage++) {
        dl_schedule_place(out, 0, stage, stage, 0);
        dl_schedule_place(out, 1, request->stages - 1 - stage, stage, 1);
    }
    for (uint32_t stage = 0; stage < request->stages; stage++) order_stage(out, stage);
}

/* (p/2 - 1) (F&B + B - 3 W) of the report, where B is the whole backward; exact for F = B = W. */
static double bubble(const struct dl_schedule_request *request)
{
    if (!dl_schedule_times_are_equal(request) || request->pair_s > 0) return -1;
    return (request->stages - 2.0) / (3.0 * request->micros);
}

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return request->stages + 1;
}

const struct dl_schedule_kind dl_schedule_dualpipe = {
    .name = "dualpipe",
    .doc = "micro-batches from both ends, forward interleaved with backward; holds the model twice",
    .splits_backward = true,
    .min_chunks = 2,
    .max_chunks = 2,
    .check = check,
    .make = make,
    .bubble = bubble,
    .live = live,
};
