#include "sim/collective/forest.h"

#include <assert.h>

static struct dl_place *place(const struct dl_forest *f, uint32_t tree, uint32_t rank)
{
    return &f->places[(size_t)tree * f->n_ranks + rank];
}

struct dl_forest *dl_forest_new(uint32_t n_ranks, uint32_t n_trees, struct dl_arena *arena)
{
    struct dl_forest *const f = dl_arena_alloc(arena, sizeof *f);
    const size_t n_places = (size_t)n_ranks * n_trees;
    *f = (struct dl_forest){.n_ranks = n_ranks, .n_trees = n_trees};
    f->places = dl_arena_alloc(arena, n_places * sizeof *f->places);
    f->depth = dl_arena_alloc(arena, n_trees * sizeof *f->depth);
    for (size_t i = 0; i < n_places; i++)
        f->places[i] = (struct dl_place){DL_NOBODY, {DL_NOBODY, DL_NOBODY, DL_NOBODY}, 0, 1};
    for (uint32_t tree = 0; tree < n_trees; tree++) f->depth[tree] = 0;
    return f;
}

void dl_forest_hang(struct dl_forest *f, uint32_t tree, uint32_t rank, uint32_t parent)
{
    struct dl_place *const above = place(f, tree, parent);
    uint32_t side = 0;
    while (above->child[side] != DL_NOBODY) side++;
    assert(side < DL_MAX_CHILDREN);
    above->child[side] = rank;
    place(f, tree, rank)->parent = parent;
}

static void measure(struct dl_forest *f, uint32_t tree, uint32_t root)
{
    uint32_t *const order = dl_alloc(f->n_ranks * sizeof *order); /* parents before their children */
    uint32_t n = 0;
    order[n++] = root;
    for (uint32_t i = 0; i < n; i++) {
        const struct dl_place *const p = place(f, tree, order[i]);
        for (uint32_t side = 0; side < DL_MAX_CHILDREN && p->child[side] != DL_NOBODY; side++) {
            place(f, tree, p->child[side])->depth = p->depth + 1;
            order[n++] = p->child[side];
        }
    }
    assert(n == f->n_ranks);
    f->depth[tree] = place(f, tree, order[n - 1])->depth;
    while (--n > 0) place(f, tree, place(f, tree, order[n])->parent)->below += place(f, tree, order[n])->below;
    dl_free(order);
}

void dl_forest_finish(struct dl_forest *f)
{
    for (uint32_t tree = 0; tree < f->n_trees; tree++) {
        uint32_t root = 0;
        while (place(f, tree, root)->parent != DL_NOBODY) root++;
        measure(f, tree, root);
    }
}

uint32_t dl_forest_lanes(const struct dl_collective *c)
{
    const struct dl_forest *const f = c->plan;
    return f->n_trees;
}

/* Receive from the children, send to the parent, receive from the parent, send to the children. */
bool dl_forest_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    const struct dl_forest *const f = c->plan;
    const struct dl_place *const p = place(f, lane, rank);
    const uint32_t n = f->n_ranks, has_parent = p->parent != DL_NOBODY;
    uint32_t n_children = 0;
    while (n_children < DL_MAX_CHILDREN && p->child[n_children] != DL_NOBODY) n_children++;
    *out = (struct dl_action){.blocks = {0, 1, 1}, .merged = n};
    if (step < n_children) {
        out->kind = DL_RECV;
        out->reduce = true;
        out->peer = p->child[step];
        out->merged = place(f, lane, out->peer)->below;
        return true;
    }
    step -= n_children;
    if (step < 2 * has_parent) {
        out->kind = step ? DL_RECV : DL_SEND;
        out->reduce = !step;
        out->peer = p->parent;
        if (!step) out->merged = p->below;
        return true;
    }
    step -= 2 * has_parent;
    if (step >= n_children) return false;
    out->kind = DL_SEND;
    out->peer = p->child[step];
    return true;
}

/* Up, the deepest ranks first; then down, level by level, child by child. */
bool dl_forest_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    const struct dl_forest *const f = c->plan;
    const uint32_t depth = f->depth[lane], n = f->n_ranks;
    if (k >= (1 + DL_MAX_CHILDREN) * depth) return false;
    const bool up = k < depth;
    /* At depth d of a binary tree about n / 2^d ranks are below one. */
    const uint32_t merged = !up ? n : depth - k < 32 ? n >> (depth - k) : 0;
    *out = (struct dl_round){.repeat = 1,
                             .blocks = 1,
                             .merged = merged ? merged : 1,
                             .reduce = up,
                             .together = !up && (k - depth) % DL_MAX_CHILDREN > 0};
    return true;
}

uint32_t dl_forest_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const struct dl_forest *const f = c->plan;
    const struct dl_place *const p = place(f, lane, rank);
    const uint32_t depth = f->depth[lane];
    if (k < depth) return p->depth == depth - k ? p->parent : DL_NOBODY;
    const uint32_t level = (k - depth) / DL_MAX_CHILDREN, side = (k - depth) % DL_MAX_CHILDREN;
    return p->depth == level ? p->child[side] : DL_NOBODY;
}
