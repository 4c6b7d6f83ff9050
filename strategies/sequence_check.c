/* sequence_check.c - what must hold for the items of a schedule, found by going through them once.
 *
 * Every item is there once, on the stage that holds its part of the model, so that every message has its receiver, and
 * the order of the items lets all of them be worked on. */
#include <string.h>

#include "strategies/sequence.h"

enum { n_kinds = 3 };
static const char *const kinds[n_kinds] = {"forward", "backward", "weight gradient"};

struct walk {
    const struct dl_schedule *s;
    struct dl_error *err;
    uint8_t *worked, *handed; /* by kind, position and micro-batch: it is done, and its result has been handed on */
    uint32_t *next;           /* by stage: the item that it stands at */
};

static uint32_t position_of(const struct walk *w, uint32_t stage, const struct dl_item *item)
{
    return w->s->position_of[stage * w->s->chunks + item->chunk];
}

static size_t index_of(const struct walk *w, int kind, uint32_t position, uint32_t micro)
{
    return ((size_t)kind * w->s->n_positions + position) * w->s->micros + micro;
}

static uint32_t holder_of(const struct walk *w, uint32_t position, uint32_t micro)
{
    return w->s->stage_of[micro % w->s->n_paths * w->s->n_positions + position];
}

/* ---- who does what ---- */

static enum dl_status check_item(struct walk *w, uint32_t stage, uint32_t index)
{
    const struct dl_schedule *const s = w->s;
    const struct dl_item *const item = &s->items[stage][index];
    if (item->chunk >= s->chunks || item->micro >= s->micros ||
        holder_of(w, position_of(w, stage, item), item->micro) != stage)
        return dl_fail(w->err, DL_STALLED, "run",
                       "item %u of stage %u is the %s of micro-batch %u through chunk %u, which it does not hold",
                       index, stage, kinds[item->kind], item->micro, item->chunk);
    if (w->worked[index_of(w, item->kind, position_of(w, stage, item), item->micro)]++)
        return dl_fail(w->err, DL_STALLED, "run",
                       "item %u of stage %u is the %s of micro-batch %u through chunk %u once more", index, stage,
                       kinds[item->kind], item->micro, item->chunk);
    if (item->with_next && index + 1 == s->n_items[stage])
        return dl_fail(w->err, DL_STALLED, "run", "the last item of stage %u, %u, goes with one after it", stage,
                       index);
    return DL_OK;
}

static enum dl_status check_all_are_there(struct walk *w)
{
    const struct dl_schedule *const s = w->s;
    for (int kind = 0; kind < n_kinds; kind++) {
        if (kind == DL_ITEM_W && !s->splits_backward) continue;
        for (uint32_t position = 0; position < s->n_positions; position++)
            for (uint32_t micro = 0; micro < s->micros; micro++)
                if (!w->worked[index_of(w, kind, position, micro)])
                    return dl_fail(w->err, DL_STALLED, "run",
                                   "stage %u has no item for the %s of micro-batch %u through position %u of the model",
                                   holder_of(w, position, micro), kinds[kind], micro, position);
    }
    return DL_OK;
}

static enum dl_status check_items(struct walk *w)
{
    for (uint32_t stage = 0; stage < w->s->stages; stage++)
        for (uint32_t i = 0; i < w->s->n_items[stage]; i++)
            if (check_item(w, stage, i)) return w->err->status;
    return check_all_are_there(w);
}

/* ---- in which order ---- */

/* Where the input is made: the next position, or the one before; its own: none is needed. */
static uint32_t source_of(const struct walk *w, uint32_t stage, const struct dl_item *item)
{
    const uint32_t position = position_of(w, stage, item);
    if (item->kind == DL_ITEM_F && position > 0) return position - 1;
    if (item->kind == DL_ITEM_B && position + 1 < w->s->n_positions) return position + 1;
    return position;
}

static bool has_input(const struct walk *w, uint32_t stage, const struct dl_item *item)
{
    const uint32_t source = source_of(w, stage, item);
    return source == position_of(w, stage, item) || w->handed[index_of(w, item->kind, source, item->micro)];
}

/* A backward needs its own forward, a weight gradient its backward. */
static bool follows_its_own(const struct walk *w, uint32_t stage, const struct dl_item *item)
{
    return item->kind == DL_ITEM_F || w->worked[index_of(w, item->kind - 1, position_of(w, stage, item), item->micro)];
}

/* The last item of the current group, or the first that lacks its input. */
static const struct dl_item *end_of_step(const struct walk *w, uint32_t stage)
{
    const struct dl_item *item = &w->s->items[stage][w->next[stage]];
    while (item->with_next && has_input(w, stage, item)) item++;
    return item;
}

static void hand_on(struct walk *w, uint32_t stage, const struct dl_item *last)
{
    for (const struct dl_item *item = &w->s->items[stage][w->next[stage]]; item <= last; item++) {
        if (!follows_its_own(w, stage, item)) {
            dl_fail(w->err, DL_STALLED, "run", "stage %u does the %s of micro-batch %u through chunk %u before its %s",
                    stage, kinds[item->kind], item->micro, item->chunk, kinds[item->kind - 1]);
            return;
        }
        const size_t index = index_of(w, item->kind, position_of(w, stage, item), item->micro);
        w->worked[index] = w->handed[index] = true;
    }
}

/* As far as the stage gets; whether it got any further. */
static bool advance(struct walk *w, uint32_t stage)
{
    const uint32_t before = w->next[stage];
    while (w->next[stage] < w->s->n_items[stage] && !w->err->status) {
        const struct dl_item *const last = end_of_step(w, stage);
        if (!has_input(w, stage, last)) break;
        hand_on(w, stage, last);
        w->next[stage] = (uint32_t)(last + 1 - w->s->items[stage]);
    }
    return w->next[stage] > before;
}

static enum dl_status tell_who_waits(struct walk *w, uint32_t stage)
{
    const struct dl_item *const item = end_of_step(w, stage);
    const uint32_t from = holder_of(w, source_of(w, stage, item), item->micro);
    return dl_fail(
        w->err, DL_STALLED, "run",
        "stage %u waits at its item %u for the %s of micro-batch %u from stage %u, which waits at its item %u", stage,
        w->next[stage], kinds[item->kind], item->micro, from, w->next[from]);
}

static enum dl_status check_order(struct walk *w)
{
    const struct dl_schedule *const s = w->s;
    memset(w->worked, 0, n_kinds * (size_t)s->n_positions * s->micros);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t stage = 0; stage < s->stages; stage++) moved |= advance(w, stage);
    }
    for (uint32_t stage = 0; stage < s->stages && !w->err->status; stage++)
        if (w->next[stage] < s->n_items[stage]) tell_who_waits(w, stage);
    return w->err->status;
}

enum dl_status dl_check_items(const struct dl_schedule *s, struct dl_error *err)
{
    const size_t n = n_kinds * (size_t)s->n_positions * s->micros;
    struct walk w = {.s = s, .err = err, .worked = dl_alloc(n), .handed = dl_alloc(n)};
    w.next = dl_alloc(s->stages * sizeof *w.next);
    if (!check_items(&w)) check_order(&w);
    dl_free(w.worked);
    dl_free(w.handed);
    dl_free(w.next);
    return err->status;
}
