/* hierarchical.c - inside the nodes, then between them.
 *
 * With equally many ranks on each node it is a grid of slots and nodes: rings inside the nodes cut the data among the
 * slots, and equal slots of all nodes form rings of their own, so that every NIC is used. Otherwise the first rank of a
 * node speaks for it: binomial trees inside, one ring between. Parts are numbered node by node. */
#include "sim/collective/algorithms.h"
#include "sim/collective/grid.h"
#include "sim/collective/phase.h"

static uint32_t place_by_node(const struct dl_collective *c, uint32_t rank)
{
    return c->group->node_first[c->group->node[rank]] + c->group->slot[rank];
}

static uint32_t part(const struct dl_collective *c, uint32_t lane, uint32_t rank)
{
    (void)lane;
    return place_by_node(c, rank);
}

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)err;
    const struct dl_group *const g = c->group;
    if (!g->even) return DL_OK;
    uint32_t *const position_of = dl_arena_alloc(arena, g->n * sizeof *position_of);
    for (uint32_t rank = 0; rank < g->n; rank++) position_of[rank] = place_by_node(c, rank);
    const uint32_t sizes[] = {g->n / g->n_nodes, g->n_nodes};
    const struct dl_grid_shape shape = {.sizes = sizes,
                                        .n_dimensions = DL_COUNT(sizes),
                                        .rank_at = g->node_ranks,
                                        .position_of = position_of,
                                        .reduce_scatter = c->op != DL_ALLGATHER,
                                        .allgather = c->op != DL_REDUCESCATTER};
    c->plan = dl_grid_new(&shape, g->n, arena);
    return DL_OK;
}

static bool next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    return (c->group->even ? dl_grid_next : dl_phases_next)(c, lane, rank, step, out);
}

static bool round_of(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    return (c->group->even ? dl_grid_round : dl_phases_round)(c, lane, k, out);
}

static uint32_t peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    return (c->group->even ? dl_grid_peer : dl_phases_peer)(c, lane, k, rank);
}

static uint32_t allreduce_blocks(const struct dl_collective *c)
{
    return c->group->even ? c->group->n : c->group->n_nodes;
}

static const struct dl_phase uneven_allreduce[] = {{&dl_binomial_reduce, DL_IN_NODE},
                                                   {&dl_ring_reduce_scatter, DL_FIRST_OF_NODES},
                                                   {&dl_ring_allgather, DL_FIRST_OF_NODES},
                                                   {&dl_binomial_broadcast, DL_IN_NODE},
                                                   {0}};
static const struct dl_phase uneven_allgather[] = {{&dl_binomial_gather, DL_IN_NODE},
                                                   {&dl_ring_allgather, DL_FIRST_OF_NODES},
                                                   {&dl_binomial_broadcast, DL_IN_NODE},
                                                   {0}};
static const struct dl_phase uneven_reduce_scatter[] = {{&dl_binomial_reduce, DL_IN_NODE},
                                                        {&dl_ring_reduce_scatter, DL_FIRST_OF_NODES},
                                                        {&dl_binomial_scatter, DL_IN_NODE},
                                                        {0}};

const struct dl_algorithm dl_allreduce_hierarchical = {
    .name = "hierarchical",
    .doc = "ring reduce-scatter inside nodes, ring all-reduce between equal slots, ring all-gather inside",
    .op = DL_ALLREDUCE,
    .prepare = prepare,
    .blocks = allreduce_blocks,
    .phases = uneven_allreduce,
    .next = next,
    .round = round_of,
    .peer = peer,
    .automatic = true,
};

const struct dl_algorithm dl_allgather_hierarchical = {
    .name = "hierarchical",
    .doc = "ring all-gather between equal slots of nodes, then inside the nodes",
    .op = DL_ALLGATHER,
    .prepare = prepare,
    .blocks = dl_block_per_rank,
    .part = part,
    .phases = uneven_allgather,
    .next = next,
    .round = round_of,
    .peer = peer,
    .automatic = true,
};

const struct dl_algorithm dl_reducescatter_hierarchical = {
    .name = "hierarchical",
    .doc = "ring reduce-scatter inside nodes, then between equal slots",
    .op = DL_REDUCESCATTER,
    .prepare = prepare,
    .blocks = dl_block_per_rank,
    .part = part,
    .phases = uneven_reduce_scatter,
    .next = next,
    .round = round_of,
    .peer = peer,
    .automatic = true,
};
