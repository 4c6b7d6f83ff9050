#include "sim/draw/blocks.h"

#include "sim/draw/svg.h"

static const struct dl_block_look looks[DL_N_BLOCKS] = {
    [DL_BLOCK_FORWARD] = {"forward", 'F', '>', DL_SKY, 74, 6},
    [DL_BLOCK_BACKWARD] = {"backward", 'B', '<', DL_ORANGE, 178, 3},
    [DL_BLOCK_WEIGHT] = {"weight gradient", 'W', '=', DL_GREEN, 36, 2},
    [DL_BLOCK_UPDATE] = {"end of step", 'U', 'u', DL_PURPLE, 175, 5},
    [DL_BLOCK_BUBBLE] = {"bubble", '.', '.', "#f2f2f2", 0, 0},
    [DL_BLOCK_WAIT] = {"other waiting", '~', '~', "#b5b5b5", 250, 7},
    [DL_BLOCK_SEND] = {"send", 's', 's', DL_YELLOW, 227, 3},
    [DL_BLOCK_COLLECTIVE] = {"collective", 'x', 'x', DL_VERMILION, 166, 1},
};

const struct dl_block_look *dl_block_look(enum dl_block_kind block) { return &looks[block]; }

enum dl_block_kind dl_block_of(const struct dl_slice *s)
{
    static const enum dl_block_kind of_item[] = {
        [DL_ITEM_F] = DL_BLOCK_FORWARD, [DL_ITEM_B] = DL_BLOCK_BACKWARD, [DL_ITEM_W] = DL_BLOCK_WEIGHT};
    switch (s->kind) {
    case DL_SLICE_WORK: return s->item ? of_item[s->item->kind] : DL_BLOCK_UPDATE;
    case DL_SLICE_WAIT: return s->cause == DL_CAUSE_BUBBLE ? DL_BLOCK_BUBBLE : DL_BLOCK_WAIT;
    case DL_SLICE_SEND: return DL_BLOCK_SEND;
    default: return DL_BLOCK_COLLECTIVE;
    }
}

bool dl_same_block(const struct dl_slice *a, const struct dl_slice *b)
{
    if (a == b) return true;
    if (a->kind != b->kind) return false;
    if (a->kind == DL_SLICE_WAIT) return a->cause == b->cause;
    return a->kind == DL_SLICE_WORK && a->item == b->item;
}

static bool is_of(const struct dl_slice *s, uint32_t stage, enum dl_track_group group)
{
    return s->stage == stage && s->replica == 0 && dl_slice_group(s) == group;
}

static bool is_before(const struct dl_slice *s, uint32_t stage, enum dl_track_group group)
{
    return s->stage < stage || (s->stage == stage && s->replica == 0 && dl_slice_group(s) < group);
}

struct dl_row dl_row_of(const struct dl_timeline *t, uint32_t stage, enum dl_track_group group)
{
    size_t first = 0, behind = t->n_slices;
    while (first < behind) {
        const size_t middle = first + (behind - first) / 2;
        if (is_before(&t->slices[middle], stage, group))
            first = middle + 1;
        else
            behind = middle;
    }
    size_t end = first;
    while (end < t->n_slices && is_of(&t->slices[end], stage, group)) end++;
    return (struct dl_row){t->slices + first, t->track + first, end - first};
}

uint32_t dl_stage_stride(uint32_t n_stages, uint32_t most) { return (n_stages + most - 1) / most; }
