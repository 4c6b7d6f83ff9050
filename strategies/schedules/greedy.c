/* greedy.c - an order of F, B and W for any times and any limit of memory, by playing the step through.
 *
 * Stages decide in the order of time. A stage that is free takes a B or an F whose input is there, else a W, else
 * waits. No circle can come up: with several chunks a forward leaves one place for each later chunk, so the oldest
 * micro-batch can always go on, and its W gives its places back. */
#include "strategies/schedules/greedy.h"

#include <assert.h>
#include <math.h>

#include "strategies/schedules/times.h"

enum { most_chunks = 2 };

struct worker {
    uint32_t next[DL_ITEM_W + 1][most_chunks]; /* micro-batch, by kind and chunk */
    uint32_t next_weight;                      /* from which of its items on a B may still owe its W */
    uint32_t live;
    double free_at_s, looks_at_s;
    enum dl_item_kind last;
};

struct play {
    struct dl_schedule *s;
    const struct dl_schedule_request *request;
    const struct dl_greedy *policy;
    struct dl_item_times times;
    struct worker *workers;
};

struct choice {
    bool exists;
    struct dl_item item;
    double ready_s; /* now, or when its input will be there; INFINITY if there is none */
};

static bool has_room(const struct play *p, const struct worker *w, struct dl_item item)
{
    return item.kind != DL_ITEM_F || w->live + (p->s->chunks - 1 - item.chunk) < p->policy->limit;
}

/* The later chunk goes first on the way in, the earlier one on the way out. */
static struct choice first_ready(const struct play *p, uint32_t stage, enum dl_item_kind kind)
{
    const struct worker *const w = &p->workers[stage];
    struct choice best = {.ready_s = INFINITY};
    for (uint32_t i = 0; i < p->s->chunks; i++) {
        const uint32_t chunk = kind == DL_ITEM_F ? p->s->chunks - 1 - i : i;
        const struct dl_item item = {.kind = kind, .micro = w->next[kind][chunk], .chunk = chunk};
        if (item.micro == p->s->micros || !has_room(p, w, item)) continue;
        const double ready_s = dl_item_ready_s(&p->times, stage, item);
        if (isnan(ready_s) || fmax(ready_s, w->looks_at_s) >= best.ready_s) continue;
        best = (struct choice){.exists = true, .item = item, .ready_s = fmax(ready_s, w->looks_at_s)};
    }
    return best;
}

static struct choice oldest_weight(const struct play *p, uint32_t stage)
{
    struct worker *const w = &p->workers[stage];
    const struct dl_item *const items = p->s->items[stage];
    while (w->next_weight < p->s->n_items[stage] && items[w->next_weight].kind != DL_ITEM_B) w->next_weight++;
    if (w->next_weight == p->s->n_items[stage]) return (struct choice){.ready_s = INFINITY};
    struct dl_item item = items[w->next_weight];
    item.kind = DL_ITEM_W;
    return (struct choice){.exists = true, .item = item, .ready_s = w->looks_at_s};
}

static bool forward_goes_first(const struct play *p, const struct worker *w)
{
    switch (p->policy->prefer) {
    case DL_GREEDY_FORWARD: return true;
    case DL_GREEDY_BACKWARD: return false;
    case DL_GREEDY_OTHER: return w->last != DL_ITEM_F;
    }
    return false;
}

/* What the stage does next, and when. */
static struct choice decide(const struct play *p, uint32_t stage)
{
    const struct worker *const w = &p->workers[stage];
    const struct choice forward = first_ready(p, stage, DL_ITEM_F), backward = first_ready(p, stage, DL_ITEM_B);
    const bool forward_first =
        forward.ready_s == backward.ready_s ? forward_goes_first(p, w) : forward.ready_s < backward.ready_s;
    const struct choice soonest = forward_first ? forward : backward, weight = oldest_weight(p, stage);
    const double worth_waiting_s = p->policy->patience * p->request->weight_s;
    const bool waits = soonest.ready_s == w->looks_at_s || soonest.ready_s < w->looks_at_s + worth_waiting_s;
    return waits || !weight.exists ? soonest : weight;
}

static void take(struct play *p, uint32_t stage, struct dl_item item)
{
    struct worker *const w = &p->workers[stage];
    const double end_s = w->looks_at_s + dl_item_seconds(p->request, item.kind);
    *dl_item_end_s(&p->times, stage, item) = end_s;
    dl_schedule_append(p->s, stage, item.kind, item.micro, item.chunk);
    w->next[item.kind][item.chunk]++;
    w->live += item.kind == DL_ITEM_F;
    w->live -= item.kind == DL_ITEM_W;
    w->next_weight += item.kind == DL_ITEM_W;
    if (item.kind != DL_ITEM_W) w->last = item.kind;
    w->free_at_s = w->looks_at_s = end_s;
    const uint32_t next = dl_item_next_stage(p->s, stage, item);
    if (next == UINT32_MAX || next == stage) return;
    struct worker *const other = &p->workers[next];
    other->looks_at_s = fmin(other->looks_at_s, fmax(end_s + p->request->transfer_s, other->free_at_s));
}

static uint32_t earliest(const struct play *p)
{
    uint32_t best = 0;
    for (uint32_t stage = 1; stage < p->s->stages; stage++)
        if (p->workers[stage].looks_at_s < p->workers[best].looks_at_s) best = stage;
    return best;
}

void dl_schedule_greedy(struct dl_schedule *s, const struct dl_schedule_request *request,
                        const struct dl_greedy *policy)
{
    assert(s->chunks <= most_chunks && s->n_paths == 1 && policy->limit >= s->chunks);
    struct play p = {.s = s, .request = request, .policy = policy, .workers = dl_alloc(s->stages * sizeof *p.workers)};
    dl_item_times_init(&p.times, s, request);
    for (uint64_t left = UINT64_C(3) * s->micros * s->chunks * s->stages; left;) {
        const uint32_t stage = earliest(&p);
        struct worker *const w = &p.workers[stage];
        assert(w->looks_at_s < INFINITY);
        const struct choice next = decide(&p, stage);
        if (next.exists && next.ready_s <= w->looks_at_s) {
            take(&p, stage, next.item);
            left--;
        } else {
            w->looks_at_s = next.ready_s;
        }
    }
    dl_item_times_release(&p.times);
    dl_free(p.workers);
}
