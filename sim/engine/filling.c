/* filling.c - the link with the lowest level (what remains of it over the weight that still wants it) fixes its flows,
 * then the next one, until all are fixed; a flow with a limit of its own is fixed when the level reaches it. */
#include "sim/engine/filling.h"

#include <math.h>

static void heap_down(struct dl_sharing *s, size_t i)
{
    const struct rung rung = s->heap[i];
    for (size_t c; (c = 2 * i + 1) < s->n_heap; i = c) {
        if (c + 1 < s->n_heap && s->heap[c + 1].level < s->heap[c].level) c++;
        if (s->heap[c].level >= rung.level) break;
        s->heap[i] = s->heap[c];
    }
    s->heap[i] = rung;
}

static void heap_drop(struct dl_sharing *s)
{
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap) heap_down(s, 0);
}

static void begin_link(struct link *l)
{
    l->remaining = l->capacity;
    l->weight_left = 0;
    l->n_open = 0;
}

static void put_on_heap(struct dl_sharing *s, uint32_t link)
{
    const struct link *const l = &s->links[link];
    if (l->weight_left <= 0) return;
    s->heap[s->n_heap++] = (struct rung){.level = l->remaining / l->weight_left, .link = link};
}

static void prepare_link(struct dl_sharing *s, uint32_t link)
{
    struct link *const l = &s->links[link];
    begin_link(l);
    for (uint32_t m = l->first; m != nobody; m = s->members[m].next) {
        const struct flow *const f = &s->flows[s->members[m].flow];
        if (in_set(s, f)) {
            l->weight_left += s->members[m].weight;
            l->n_open++;
        } else {
            l->remaining -= s->members[m].weight * f->rate;
        }
    }
    l->remaining = fmax(l->remaining, 0);
    put_on_heap(s, link);
}

/* The same where nobody is outside of the set. Hops of a flow lie together, flows of a link do not. */
static void prepare_all_links(struct dl_sharing *s)
{
    for (size_t i = 0; i < s->n_part; i++) begin_link(&s->links[s->part[i]]);
    for (size_t i = 0; i < s->n_set; i++) {
        const struct flow *const f = &s->flows[s->set[i]];
        for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
            struct link *const l = &s->links[s->members[m].link];
            l->weight_left += s->members[m].weight;
            l->n_open++;
        }
    }
    for (size_t i = 0; i < s->n_part; i++) put_on_heap(s, s->part[i]);
}

/* ---- flows with limits of their own: a heap, as not all of them may come to theirs ---- */

static inline bool has_lower_limit(const struct capped *a, const struct capped *b)
{
    return a->limit < b->limit || (a->limit == b->limit && a->flow < b->flow);
}

static void capped_down(struct dl_sharing *s, size_t i)
{
    const struct capped capped = s->capped[i];
    for (size_t c; (c = 2 * i + 1) < s->n_capped; i = c) {
        if (c + 1 < s->n_capped && has_lower_limit(&s->capped[c + 1], &s->capped[c])) c++;
        if (!has_lower_limit(&s->capped[c], &capped)) break;
        s->capped[i] = s->capped[c];
    }
    s->capped[i] = capped;
}

static void drop_capped(struct dl_sharing *s)
{
    s->capped[0] = s->capped[--s->n_capped];
    if (s->n_capped) capped_down(s, 0);
}

static void prepare_filling(struct dl_sharing *s)
{
    s->n_heap = s->n_capped = 0;
    s->n_open = s->n_set;
    s->heap = dl_reserve(s->heap, s->n_part, &s->heap_capacity, sizeof *s->heap);
    if (s->has_all) prepare_all_links(s);
    for (size_t i = 0; !s->has_all && i < s->n_part; i++) prepare_link(s, s->part[i]);
    for (size_t i = s->n_heap / 2; i-- > 0;) heap_down(s, i);
    for (size_t i = 0; i < s->n_set; i++) {
        s->flows[s->set[i]].solved_rate = -1; /* not yet known */
        if (s->flows[s->set[i]].limit == INFINITY) continue;
        DL_GROW(s->capped, s->n_capped, s->capped_capacity);
        s->capped[s->n_capped++] = (struct capped){.limit = s->flows[s->set[i]].limit, .flow = s->set[i]};
    }
    for (size_t i = s->n_capped / 2; i-- > 0;) capped_down(s, i);
}

static void fix(struct dl_sharing *s, struct flow *f, double rate)
{
    f->solved_rate = rate;
    s->n_open--;
    for (uint32_t m = f->first_member; m < f->first_member + f->n_members; m++) {
        struct link *const l = &s->links[s->members[m].link];
        l->remaining = fmax(l->remaining - rate * s->members[m].weight, 0);
        l->weight_left -= s->members[m].weight;
        l->n_open--;
    }
}

static bool is_open(const struct dl_sharing *s, const struct flow *f) { return in_set(s, f) && f->solved_rate < 0; }

/* The top of the heap with its true level; levels only grow while others are fixed, so a stale top sinks. */
static const struct rung *lowest_rung(struct dl_sharing *s)
{
    while (s->n_heap) {
        const uint32_t link = s->heap[0].link;
        const struct link *const l = &s->links[link];
        if (!l->n_open) {
            heap_drop(s);
            continue;
        }
        const double level = l->remaining / l->weight_left;
        if (level > s->heap[0].level) {
            s->heap[0].level = level;
            heap_down(s, 0);
        }
        if (s->heap[0].link == link) return s->heap;
    }
    return NULL;
}

void dl_fill(struct dl_sharing *s)
{
    prepare_filling(s);
    while (s->n_open) {
        const struct rung *const lowest = lowest_rung(s);
        const double level = lowest ? lowest->level : INFINITY;
        while (s->n_capped && s->flows[s->capped[0].flow].solved_rate >= 0) drop_capped(s);
        if (s->n_capped && s->capped[0].limit <= level) {
            struct flow *const f = &s->flows[s->capped[0].flow];
            drop_capped(s);
            fix(s, f, f->limit);
            continue;
        }
        if (!lowest) return; /* flows that cross nothing and have no limit */
        for (uint32_t m = s->links[lowest->link].first; m != nobody; m = s->members[m].next) {
            struct flow *const f = &s->flows[s->members[m].flow];
            if (is_open(s, f)) fix(s, f, level);
        }
        heap_drop(s);
    }
}
