/* forest.h - all-reduce over trees, one a lane: sums come up, the total goes down.
 *
 * An algorithm hangs every rank below its parent, tree by tree, and takes its slots from here. */
#ifndef DL_COLLECTIVE_FOREST_H
#define DL_COLLECTIVE_FOREST_H

#include "sim/collective/collective.h"

enum { DL_MAX_CHILDREN = 3 };

struct dl_place {
    uint32_t parent, child[DL_MAX_CHILDREN]; /* DL_NOBODY where there is none; children stand first */
    uint32_t depth;
    uint32_t below; /* ranks of the subtree, itself included */
};

struct dl_forest {
    uint32_t n_ranks, n_trees;
    struct dl_place *places; /* by tree, then rank */
    uint32_t *depth;         /* by tree: of the deepest rank */
};

/* To be c->plan. Every rank but the root of each tree must be hung below another before dl_forest_finish. */
struct dl_forest *dl_forest_new(uint32_t n_ranks, uint32_t n_trees, struct dl_arena *arena);
void dl_forest_hang(struct dl_forest *f, uint32_t tree, uint32_t rank, uint32_t parent);
void dl_forest_finish(struct dl_forest *f);

/* For the slots of the algorithm; its blocks slot is dl_one_block. */
uint32_t dl_forest_lanes(const struct dl_collective *c);
bool dl_forest_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out);
bool dl_forest_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out);
uint32_t dl_forest_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank);

/* The trees of Sanders, Speck and Traff over 0..n-1 (double_binary_tree.c): hang(user, node, parent) for every node but
 * the root of the tree, which is returned. */
typedef void (*dl_hang_fn)(void *user, uint32_t node, uint32_t parent);
uint32_t dl_half_tree(uint32_t n, uint32_t which, dl_hang_fn hang, void *user);

#endif
