/* node_tree.c - chains inside the nodes, double binary trees between them, as NCCL's "tree" is.
 *
 * There is a pair of trees for each slot of a node: in the trees of slot j the nodes talk to each other through the
 * rank in that slot, so that every NIC carries its part. */
#include "sim/collective/algorithms.h"
#include "sim/collective/channels.h"
#include "sim/collective/forest.h"
#include "sim/collective/phase.h"

/* The tree that NCCL uses over 0..n-1: the number of zeros at the end of a node's number is its height, so that leaves
 * are odd, and 0 is the root with one child. Its other half is the mirror image, or for odd n the tree shifted by one.
 */
static uint32_t parent_in_tree(uint32_t node, uint32_t n)
{
    const uint32_t lowest_bit = node & -node;
    const uint32_t above = (node ^ lowest_bit) | (lowest_bit << 1);
    return above < n ? above : node ^ lowest_bit;
}

static uint32_t parent_of(uint32_t node, uint32_t n, uint32_t half)
{
    if (!half) return node ? parent_in_tree(node, n) : DL_NOBODY;
    const uint32_t image = n % 2 ? (node + n - 1) % n : n - 1 - node;
    if (!image) return DL_NOBODY;
    const uint32_t parent = parent_in_tree(image, n);
    return n % 2 ? (parent + 1) % n : n - 1 - parent;
}

struct hanging {
    struct dl_forest *forest;
    const struct dl_group *group;
    const struct dl_channels *channels;
    uint32_t tree, channel;
};

/* The ranks of a node along the channel, from the one that talks to other nodes. Channels pass every other node the
 * other way round; the slot that talks is the same in all of them. */
static uint32_t rank_in_chain(const struct hanging *h, uint32_t node, uint32_t place)
{
    const uint32_t *const order = h->channels->order + (size_t)h->channel * h->group->n;
    const uint32_t first = h->group->node_first[node], end = h->group->node_first[node + 1];
    return order[node % 2 ? end - 1 - place : first + place];
}

static uint32_t head(const struct hanging *h, uint32_t node) { return rank_in_chain(h, node, 0); }

static void hang_node(const struct hanging *h, uint32_t node, uint32_t half)
{
    const uint32_t parent = parent_of(node, h->group->n_nodes, half);
    if (parent != DL_NOBODY) dl_forest_hang(h->forest, h->tree, head(h, node), head(h, parent));
}

static void hang_chain(const struct hanging *h, uint32_t node)
{
    const uint32_t size = h->group->node_first[node + 1] - h->group->node_first[node];
    for (uint32_t i = 1; i < size; i++)
        dl_forest_hang(h->forest, h->tree, rank_in_chain(h, node, i), rank_in_chain(h, node, i - 1));
}

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_group *const g = c->group;
    if (g->n > 1 && g->n_nodes < 2)
        return dl_fail(err, DL_IMPOSSIBLE, "--algo",
                       "node_tree is for several nodes; on one node rings do the same with less");
    struct dl_channels channels;
    dl_channels_find(g, arena, &channels);
    const uint32_t n_halves = 2;
    struct dl_forest *const forest = dl_forest_new(g->n, n_halves * channels.n_channels, arena);
    struct hanging h = {.forest = forest, .group = g, .channels = &channels};
    for (h.tree = 0; h.tree < forest->n_trees; h.tree++) {
        h.channel = h.tree / n_halves;
        for (uint32_t node = 0; node < g->n_nodes; node++) {
            hang_node(&h, node, h.tree % n_halves);
            hang_chain(&h, node);
        }
    }
    dl_forest_finish(forest);
    c->plan = forest;
    return DL_OK;
}

const struct dl_algorithm dl_allreduce_node_tree = {
    .name = "node_tree",
    .doc = "chains in the nodes, double binary trees between them, as NCCL's tree; give it many chunks",
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
