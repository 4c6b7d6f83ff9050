/* zbv.c - zero bubble, and 1F1B's memory, by two chunks per stage in a V (ZB-V of Qi et al., ICLR 2024, section 6).
 *
 * The last position is on stage 0, so its first backward comes early. Per stage: forwards of chunk 0 until the first
 * micro-batch is back, both chunks in turn, then F B W of each; in the end the W fill what would be idle. */
#include "strategies/schedules/zero_bubble.h"

static uint32_t live(const struct dl_schedule_request *request, uint32_t stage)
{
    (void)stage;
    const uint32_t p = request->stages;
    return 2 * (p < request->micros ? p : request->micros);
}

/* Next micro-batch by kind and chunk; those above the schedule's are simulated but not written down. */
struct counts {
    struct dl_schedule *s;
    uint32_t stage;
    uint32_t next[DL_ITEM_W + 1][2];
};

static void append(struct counts *c, enum dl_item_kind kind, uint32_t chunk)
{
    const uint32_t micro = c->next[kind][chunk]++;
    if (micro < c->s->micros) dl_schedule_append(c->s, c->stage, kind, micro, chunk);
}

static void append_backward(struct counts *c, uint32_t chunk)
{
    append(c, DL_ITEM_B, chunk);
    append(c, DL_ITEM_W, chunk);
}

static void warm_up(struct counts *c)
{
    const uint32_t p = c->s->stages;
    for (uint32_t k = 0; k < 2 * (p - c->stage) - 1; k++) append(c, DL_ITEM_F, 0);
    for (uint32_t k = 0; k < c->stage; k++) {
        append(c, DL_ITEM_F, 1);
        append(c, DL_ITEM_F, 0);
    }
    for (uint32_t k = 0; k < p - c->stage; k++) {
        append(c, DL_ITEM_F, 1);
        append_backward(c, 1);
    }
}

static void steady(struct counts *c, uint32_t micros)
{
    while (c->next[DL_ITEM_F][1] < micros) {
        if (c->next[DL_ITEM_F][0] < micros) append(c, DL_ITEM_F, 0);
        append_backward(c, 0);
        append(c, DL_ITEM_F, 1);
        append_backward(c, 1);
    }
}

static void cool_down(struct counts *c, uint32_t micros)
{
    for (uint32_t k = 0; k < c->stage; k++) {
        append(c, DL_ITEM_B, 0);
        append(c, DL_ITEM_B, 1);
    }
    for (uint32_t k = 0; k < c->s->stages - c->stage; k++) append_backward(c, 0);
    for (uint32_t i = 0; i < 2; i++)
        while (c->next[DL_ITEM_W][1 - i] < micros) append(c, DL_ITEM_W, 1 - i);
}

static void hand_made(struct dl_schedule *s, uint32_t stage)
{
    const uint32_t least = 2 * s->stages - 1; /* to fill the pipeline */
    const uint32_t micros = s->micros < least ? least : s->micros;
    struct counts c = {.s = s, .stage = stage};
    warm_up(&c);
    steady(&c, micros);
    cool_down(&c, micros);
}

static void make(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out)
{
    static const struct dl_zero_bubble order = {.place = dl_schedule_place_v, .hand_made = hand_made, .live = live};
    dl_zero_bubble_make(&order, request, arena, out);
}

static double bubble(const struct dl_schedule_request *request)
{
    const bool filled = request->micros >= 2 * request->stages - 1;
    return filled && dl_schedule_times_are_equal(request) ? 0 : -1;
}

const struct dl_schedule_kind dl_schedule_zbv = {
    .name = "zbv",
    .doc = "zero bubble with 1f1b's memory by two chunks in a V: first and last layers on stage 0; none only if steps "
           "follow each other without a barrier",
    .splits_backward = true,
    .uses_times = true,
    .ends_skewed = true,
    .min_chunks = 2,
    .max_chunks = 2,
    .make = make,
    .bubble = bubble,
    .live = live,
};
