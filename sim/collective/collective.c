#include "sim/collective/collective.h"

static uint32_t *new_indexes(struct dl_arena *arena, size_t n) { return dl_arena_alloc(arena, n * sizeof(uint32_t)); }

/* From g->node, with nodes numbered in order of their first rank, to all the rest. */
static void index_nodes(struct dl_group *g, struct dl_arena *arena)
{
    g->slot = new_indexes(arena, g->n);
    g->node_first = new_indexes(arena, g->n_nodes + 1);
    g->node_ranks = new_indexes(arena, g->n);
    uint32_t *const size = new_indexes(arena, g->n_nodes);
    for (uint32_t node = 0; node < g->n_nodes; node++) size[node] = 0;
    for (uint32_t rank = 0; rank < g->n; rank++) g->slot[rank] = size[g->node[rank]]++;
    g->node_first[0] = 0;
    g->even = true;
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        g->node_first[node + 1] = g->node_first[node] + size[node];
        if (size[node] != size[0]) g->even = false;
        if (size[node] > size[g->largest_node]) g->largest_node = node;
    }
    for (uint32_t rank = 0; rank < g->n; rank++) g->node_ranks[g->node_first[g->node[rank]] + g->slot[rank]] = rank;
}

void dl_group_init(struct dl_group *g, const struct dl_topology *t, const uint32_t *device, uint32_t n,
                   struct dl_arena *arena)
{
    *g = (struct dl_group){.n = n, .device = device, .node = new_indexes(arena, n), .topology = t};
    uint32_t *const number = dl_alloc(t->n_nodes * sizeof *number); /* from 1 on; 0: none yet */
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t *const mine = &number[dl_topology_node_of(t, device[rank])];
        if (*mine == 0) *mine = ++g->n_nodes;
        g->node[rank] = *mine - 1;
    }
    dl_free(number);
    index_nodes(g, arena);
}

void dl_group_init_plain(struct dl_group *g, uint32_t n, uint32_t ranks_per_node, struct dl_arena *arena)
{
    uint32_t *const device = new_indexes(arena, n + 1);
    for (uint32_t rank = 0; rank <= n; rank++) device[rank] = rank;
    *g = (struct dl_group){.n = n, .device = device, .node = new_indexes(arena, n)};
    for (uint32_t rank = 0; rank < n; rank++) g->node[rank] = rank / ranks_per_node;
    g->n_nodes = (n + ranks_per_node - 1) / ranks_per_node;
    index_nodes(g, arena);
}

uint32_t dl_collective_ranks(const struct dl_collective *c)
{
    return c->group->n + (c->algorithm->has_servers ? c->servers : 0);
}

uint32_t dl_collective_lanes(const struct dl_collective *c) { return c->algorithm->lanes ? c->algorithm->lanes(c) : 1; }

double dl_collective_block_bytes(const struct dl_collective *c, uint32_t lane)
{
    const double share = c->algorithm->share ? c->algorithm->share(c, lane) : 1.0 / dl_collective_lanes(c);
    const double buffers = c->op == DL_ALLTOALL ? c->group->n : 1; /* its blocks are those of all ranks' buffers */
    return c->bytes * buffers * share / c->chunks / c->algorithm->blocks(c);
}

/* Which multiple of the bytes each rank's port must carry at least (nccl-tests, doc/PERFORMANCE.md). */
static double bus_factor(enum dl_op op, uint32_t n)
{
    const double others = (n - 1.0) / n;
    switch (op) {
    case DL_ALLREDUCE: return 2 * others;
    case DL_ALLGATHER:
    case DL_REDUCESCATTER:
    case DL_ALLTOALL:
    case DL_GATHER:
    case DL_SCATTER: return others;
    default: return 1;
    }
}

double dl_bus_bytes_per_s(enum dl_op op, uint32_t n, double bytes, double time_s)
{
    return time_s > 0 ? bus_factor(op, n) * bytes / time_s : 0;
}

uint32_t dl_most_posted(uint32_t n_ranks)
{
    const uint32_t most_at_once = 1 << 18, most_of_many = 1024, least = 2, each = most_of_many / n_ranks;
    if ((double)n_ranks * n_ranks <= most_at_once) return n_ranks;
    return each < least ? least : each;
}
