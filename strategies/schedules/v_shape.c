/* v_shape.c - half or a third of 1F1B's activations, by two chunks per stage in a V (V-Half and V-Min of Qi et al.,
 * "Pipeline Parallelism with Controllable Memory", NeurIPS 2024, arXiv 2405.15362).
 *
 * A block says when a micro-batch passes each stage, in passes of equal length, and repeats every six of them: two
 * forwards, two backwards and two weight gradients. W fill what the block leaves free. Squeezed, stages keep the order
 * and drop the gaps. The memory is the block's: how long it holds a chunk, over six, rounded up to whole micro-batches.
 */
#include "strategies/schedules/zero_bubble.h"

enum { n_passes = 4, period = 6 };

/* Passes of a micro-batch over a stage in their order: F and F of chunk 1, B of chunk 1, B. */
static const struct dl_item passes[n_passes] = {{.kind = DL_ITEM_F, .chunk = 0},
                                                {.kind = DL_ITEM_F, .chunk = 1},
                                                {.kind = DL_ITEM_B, .chunk = 1},
                                                {.kind = DL_ITEM_B, .chunk = 0}};

struct block {
    uint32_t start[n_passes];
};

/* Stages follow each other at once, all four ways. With p a multiple of three two passes would meet: backwards wait. */
static struct block block_of_min(uint32_t p, uint32_t stage)
{
    const uint32_t wait = p % 3 ? 0 : 2;
    return (struct block){{stage, 2 * p - 1 - stage, 2 * p + wait + stage, 4 * p + wait - 1 - stage}};
}

/* Down the stages every other pass, up again at once; with p even backwards wait. */
static struct block block_of_half(uint32_t p, uint32_t stage)
{
    const uint32_t wait = p % 2 ? 0 : 3;
    return (struct block){{2 * stage, 3 * p - 2 - stage, 3 * p + wait + 2 * stage - 1, 6 * p + wait - stage - 2}};
}

static bool append_pass(struct dl_schedule *s, uint32_t stage, const struct block *b, uint32_t time)
{
    for (uint32_t i = 0; i < n_passes; i++) {
        const uint32_t since = time - b->start[i];
        if (time < b->start[i] || since % period || since / period >= s->micros) continue;
        dl_schedule_append(s, stage, passes[i].kind, since / period, passes[i].chunk);
        return true;
    }
    return false;
}

/* The weight gradient of the first backward that still owes it; `next` is the first item that may. */
static void append_weight(struct dl_schedule *s, uint32_t stage, uint32_t *next)
{
    const struct dl_item *const items = s->items[stage];
    while (*next < s->n_items[stage] && items[*next].kind != DL_ITEM_B) ++*next;
    if (*next == s->n_items[stage]) return;
    dl_schedule_append(s, stage, DL_ITEM_W, items[*next].micro, items[*next].chunk);
    ++*next;
}

static void repeat(struct dl_schedule *s, uint32_t stage, struct block b)
{
    const uint32_t end = b.start[n_passes - 1] + period * (s->micros - 1) + 1;
    uint32_t next = 0;
    for (uint32_t time = 0; time < end; time++)
        if (!append_pass(s, stage, &b, time)) append_weight(s, stage, &next);
    while (s->n_items[stage] < period * s->micros) append_weight(s, stage, &next);
}

static void hand_made_min(struct dl_schedule *s, uint32_t stage) { repeat(s, stage, block_of_min(s->stages, stage)); }
static void hand_made_half(struct dl_schedule *s, uint32_t stage) { repeat(s, stage, block_of_half(s->stages, stage)); }

static uint32_t chunks_of(uint32_t in_flight, uint32_t micros) { return 2 * (in_flight < micros ? in_flight : micros); }

static uint32_t live_min(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return chunks_of((request->stages + 4) / 3, request->micros);
}

static uint32_t live_half(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    return chunks_of((request->stages + 2) / 2, request->micros);
}

static void make_min(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    static const struct dl_zero_bubble order = {
        .place = dl_schedule_place_v, .hand_made = hand_made_min, .live = live_min};
    dl_zero_bubble_make(&order, request, arena, out);
}

static void make_half(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    static const struct dl_zero_bubble order = {
        .place = dl_schedule_place_v, .hand_made = hand_made_half, .live = live_half};
    dl_zero_bubble_make(&order, request, arena, out);
}

/* What the blocks leave idle in a pipeline that they fill, over the work of a step. With few stages greedy orders leave
 * less, of which no formula is known. The paper says p / 2 m and 2 p / 3 m roughly. */
static double idle(const struct dl_schedule_request *request, uint32_t least_stages, double passes_idle)
{
    const bool known = request->stages >= least_stages && request->micros >= 2 * request->stages &&
                       dl_schedule_times_are_equal(request);
    return known ? passes_idle / (period * request->micros) : -1;
}

static double bubble_half(const struct dl_schedule_request *request)
{
    const uint32_t p = request->stages;
    return p % 2 ? idle(request, 3, 3.5 * (p - 1)) : idle(request, 8, 3.5 * p - 2);
}

static double bubble_min(const struct dl_schedule_request *request)
{
    const uint32_t p = request->stages;
    return p % 3 ? idle(request, 4, 4.0 * p - 5) : idle(request, 6, 4.0 * p - 3);
}

const struct dl_schedule_kind dl_schedule_v_half = {
    .name = "v-half",
    .doc = "half of 1f1b's activations by two chunks in a V: first and last layers on stage 0",
    .splits_backward = true,
    .uses_times = true,
    .min_chunks = 2,
    .max_chunks = 2,
    .make = make_half,
    .bubble = bubble_half,
    .live = live_half,
};

const struct dl_schedule_kind dl_schedule_v_min = {
    .name = "v-min",
    .doc = "a third of 1f1b's activations by two chunks in a V, with more bubble than v-half",
    .splits_backward = true,
    .uses_times = true,
    .min_chunks = 2,
    .max_chunks = 2,
    .make = make_min,
    .bubble = bubble_min,
    .live = live_min,
};
