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
    uint8_t *worked; /* by kind, position and micro-batch: it is done, and its result has been handed on */
    uint32_t *next;  /* by stage: the item that it stands at */
};

static size_t index_of(const struct walk *w, int kind, uint32_t position, uint32_t micro)
{
    return ((size_t)kind * w->s->n_positions + position) * w->s->micros + micro;
}

static uint32_t holder_of(const struct walk *w, uint32_t position, uint32_t micro)
{
    const uint32_t path = w->s->n_paths > 1 ? micro % w->s->n_paths : 0;
    return w->s->stage_of[path * w->s->n_positions + position];
}

/* What is asked of every item of a stage, at hand: there may be millions. */
struct stage {
    const struct dl_item *items;
    uint32_t n_items, last_position;
    const uint32_t *position_of; /* by chunk */
    size_t micros, of_kind;      /* in `worked`: from a position, or a kind, to the next */
    uint8_t *worked;
};

static struct stage stage_of(const struct walk *w, uint32_t stage)
{
    const struct dl_schedule *const s = w->s;
    return (struct stage){.items = s->items[stage],
                          .n_items = s->n_items[stage],
                          .last_position = s->n_positions - 1,
                          .position_of = &s->position_of[stage * s->chunks],
                          .micros = s->micros,
                          .of_kind = (size_t)s->n_positions * s->micros,
                          .worked = w->worked};
}

/* In `worked`. */
static inline size_t place_of(const struct stage *s, const struct dl_item *item)
{
    return item->kind * s->of_kind + s->position_of[item->chunk] * s->micros + item->micro;
}

/* ---- who does what ---- */

static inline bool is_held(const struct walk *w, uint32_t stage, const struct dl_item *item)
{
    return item->chunk < w->s->chunks && item->micro < w->s->micros &&
           holder_of(w, w->s->position_of[stage * w->s->chunks + item->chunk], item->micro) == stage;
}

static enum dl_status refuse_item(struct walk *w, uint32_t stage, uint32_t index)
{
    const struct stage at = stage_of(w, stage);
    const struct dl_item *const item = &at.items[index];
    if (!is_held(w, stage, item))
        return dl_fail(w->err, DL_STALLED, "run",
                       "item %u of stage %u is the %s of micro-batch %u through chunk %u, which it does not hold",
                       index, stage, kinds[item->kind], item->micro, item->chunk);
    if (at.worked[place_of(&at, item)] > 1)
        return dl_fail(w->err, DL_STALLED, "run",
                       "item %u of stage %u is the %s of micro-batch %u through chunk %u once more", index, stage,
                       kinds[item->kind], item->micro, item->chunk);
    return dl_fail(w->err, DL_STALLED, "run", "the last item of stage %u, %u, goes with one after it", stage, index);
}

static enum dl_status find_missing(struct walk *w)
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

static int kinds_needed(const struct walk *w) { return w->s->splits_backward ? n_kinds : DL_ITEM_W; }

/* The first item that must not be there, or how many items there are; those that are needed are counted. */
static uint32_t find_bad(const struct walk *w, uint32_t stage, size_t *n_needed)
{
    const struct stage at = stage_of(w, stage);
    const int needed = kinds_needed(w);
    size_t n = 0;
    uint32_t i = 0;
    for (; i < at.n_items; i++) {
        const struct dl_item *const item = &at.items[i];
        if (!is_held(w, stage, item) || at.worked[place_of(&at, item)]++ || (item->with_next && i + 1 == at.n_items))
            break;
        n += (int)item->kind < needed;
    }
    *n_needed += n;
    return i;
}

/* None is there twice, so all are there if they are as many. */
static enum dl_status check_items(struct walk *w)
{
    const struct dl_schedule *const s = w->s;
    size_t n = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        const uint32_t bad = find_bad(w, stage, &n);
        if (bad < s->n_items[stage]) return refuse_item(w, stage, bad);
    }
    return n == (size_t)kinds_needed(w) * s->n_positions * s->micros ? DL_OK : find_missing(w);
}

/* ---- in which order ---- */

/* Where the input is made: the next position, or the one before; its own: none is needed. */
static inline uint32_t source_of(const struct stage *s, const struct dl_item *item)
{
    const uint32_t position = s->position_of[item->chunk];
    if (item->kind == DL_ITEM_F && position > 0) return position - 1;
    if (item->kind == DL_ITEM_B && position < s->last_position) return position + 1;
    return position;
}

static inline bool has_input(const struct stage *s, const struct dl_item *item)
{
    const uint32_t position = s->position_of[item->chunk], source = source_of(s, item);
    return source == position || s->worked[item->kind * s->of_kind + source * s->micros + item->micro];
}

/* A backward needs its own forward, a weight gradient its backward. */
static inline bool follows_its_own(const struct stage *s, const struct dl_item *item)
{
    return item->kind == DL_ITEM_F || s->worked[place_of(s, item) - s->of_kind];
}

/* The last item of the current group, or the first that lacks its input. */
static inline const struct dl_item *end_of_step(const struct stage *s, const struct dl_item *item)
{
    while (item->with_next && has_input(s, item)) item++;
    return item;
}

/* From the first to the last of them; the one that cannot be, or the one after the last. */
static inline const struct dl_item *hand_on(const struct stage *s, const struct dl_item *first,
                                            const struct dl_item *last)
{
    const struct dl_item *item = first;
    for (; item <= last && follows_its_own(s, item); item++) s->worked[place_of(s, item)] = true;
    return item;
}

static enum dl_status refuse_order(struct walk *w, uint32_t stage, const struct dl_item *item)
{
    return dl_fail(w->err, DL_STALLED, "run", "stage %u does the %s of micro-batch %u through chunk %u before its %s",
                   stage, kinds[item->kind], item->micro, item->chunk, kinds[item->kind - 1]);
}

/* As far as the stage gets; whether it got any further. */
static bool advance(struct walk *w, uint32_t stage)
{
    const struct stage s = stage_of(w, stage);
    const struct dl_item *const end = s.items + s.n_items, *const before = s.items + w->next[stage], *at = before;
    while (at < end) {
        const struct dl_item *const last = end_of_step(&s, at);
        if (!has_input(&s, last)) break;
        const struct dl_item *const next = hand_on(&s, at, last);
        if (next <= last) {
            refuse_order(w, stage, next);
            return false;
        }
        at = next;
    }
    w->next[stage] = (uint32_t)(at - s.items);
    return at > before;
}

static enum dl_status tell_who_waits(struct walk *w, uint32_t stage)
{
    const struct stage s = stage_of(w, stage);
    const struct dl_item *const item = end_of_step(&s, &s.items[w->next[stage]]);
    const uint32_t from = holder_of(w, source_of(&s, item), item->micro);
    return dl_fail(
        w->err, DL_STALLED, "run",
        "stage %u waits at its item %u for the %s of micro-batch %u from stage %u, which waits at its item %u", stage,
        w->next[stage], kinds[item->kind], item->micro, from, w->next[from]);
}

static enum dl_status check_order(struct walk *w)
{
    const struct dl_schedule *const s = w->s;
    memset(w->worked, 0, n_kinds * (size_t)s->n_positions * s->micros);
    for (bool moved = true; moved && !w->err->status;) {
        moved = false;
        for (uint32_t stage = 0; stage < s->stages && !w->err->status; stage++) moved |= advance(w, stage);
    }
    for (uint32_t stage = 0; stage < s->stages && !w->err->status; stage++)
        if (w->next[stage] < s->n_items[stage]) tell_who_waits(w, stage);
    return w->err->status;
}

enum dl_status dl_check_items(const struct dl_schedule *s, struct dl_error *err)
{
    const size_t n = n_kinds * (size_t)s->n_positions * s->micros;
    struct walk w = {.s = s, .err = err, .worked = dl_alloc(n)};
    w.next = dl_alloc(s->stages * sizeof *w.next);
    if (!check_items(&w)) check_order(&w);
    dl_free(w.worked);
    dl_free(w.next);
    return err->status;
}
