/* double_binary_tree.c - two trees, each with half the bytes; no rank is inside both.
 *
 * Sanders, Speck, Traff (Parallel Computing 2009). A tree alone leaves half of the bandwidth unused, since leaves only
 * send up and receive down. Here the ranks inside the first tree are even and those inside the second are odd: an
 * interval of ranks hangs below the one of that parity nearest to its middle, and an interval of one is a leaf, which
 * has the other parity because its neighbour is inside. */
#include "sim/collective/algorithms.h"
#include "sim/collective/forest.h"
#include "sim/collective/phase.h"

enum { n_trees = 2 };

static uint32_t root_of(uint32_t first, uint32_t end, uint32_t parity)
{
    const uint32_t middle = first + (end - first) / 2;
    if (end - first == 1 || middle % 2 == parity) return middle;
    return middle - 1; /* not before first: there are at least two, so that middle > first */
}

/* Hang first .. end - 1 below `parent`. */
static void hang_interval(uint32_t first, uint32_t end, uint32_t parity, uint32_t parent, dl_hang_fn hang, void *user)
{
    if (first == end) return;
    const uint32_t top = root_of(first, end, parity);
    hang(user, top, parent);
    hang_interval(first, top, parity, top, hang, user);
    hang_interval(top + 1, end, parity, top, hang, user);
}

uint32_t dl_half_tree(uint32_t n, uint32_t which, dl_hang_fn hang, void *user)
{
    const uint32_t root = root_of(0, n, which);
    hang_interval(0, root, which, root, hang, user);
    hang_interval(root + 1, n, which, root, hang, user);
    return root;
}

struct hanging {
    struct dl_forest *forest;
    uint32_t tree;
};

static void hang_rank(void *user, uint32_t rank, uint32_t parent)
{
    const struct hanging *const h = user;
    dl_forest_hang(h->forest, h->tree, rank, parent);
}

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)err;
    struct dl_forest *const forest = dl_forest_new(c->group->n, n_trees, arena);
    for (uint32_t tree = 0; tree < n_trees; tree++)
        dl_half_tree(c->group->n, tree, hang_rank, &(struct hanging){forest, tree});
    dl_forest_finish(forest);
    c->plan = forest;
    return DL_OK;
}

const struct dl_algorithm dl_allreduce_double_binary_tree = {
    .name = "double_binary_tree",
    .doc = "two trees with half the bytes each, up and down; give it many chunks",
    .op = DL_ALLREDUCE,
    .prepare = prepare,
    .lanes = dl_forest_lanes,
    .blocks = dl_one_block,
    .next = dl_forest_next,
    .round = dl_forest_round,
    .peer = dl_forest_peer,
    .queue = DL_QUEUE_PEER,
    .fold = DL_FOLD_TREE,
    .family = DL_FAMILY_TREE,
    .automatic = true,
};
