/* torus.c - rings along the dimensions of a torus.
 *
 * If the group is the whole of a torus in the order of its devices, the machine or one node of it, the dimensions are
 * those. Otherwise the ranks are taken as a torus as cubic as their number allows, of as many dimensions as the
 * machine's or else three: each size is the largest divisor that is not above the root of what is left. A prime number
 * of ranks is one ring. */
#include "sim/collective/algorithms.h"
#include "sim/collective/grid.h"
#include "sim/collective/phase.h"

enum { usual_dimensions = 3 };

static struct dl_int_list machine_torus(const struct dl_group *g)
{
    struct dl_int_list torus = {0};
    const struct dl_topology *const t = g->topology;
    if (!t || !t->network.kind || !t->network.kind->dimensions) return torus;
    const int64_t *sizes;
    torus.n = t->network.kind->dimensions(&t->network, &sizes);
    torus.items = (int64_t *)sizes;
    return torus;
}

/* Whether the ranks are so many devices in their order, and as many as the torus has. */
static bool is_whole(const struct dl_group *g, struct dl_int_list torus, uint32_t n_devices)
{
    int64_t product = 1;
    for (size_t d = 0; d < torus.n; d++) product *= torus.items[d];
    if (!torus.n || product != g->n || g->n != n_devices || g->device[0] % n_devices) return false;
    for (uint32_t rank = 0; rank < g->n; rank++)
        if (g->device[rank] != g->device[0] + rank) return false;
    return true;
}

static bool fits_below_root(uint32_t divisor, uint32_t n, size_t root)
{
    uint64_t power = 1;
    for (size_t i = 0; i < root; i++) {
        power *= divisor;
        if (power > n) return false;
    }
    return true;
}

static uint32_t divisor_below_root(uint32_t n, size_t root)
{
    uint32_t best = 1;
    for (uint32_t divisor = 2; fits_below_root(divisor, n, root); divisor++)
        if (n % divisor == 0) best = divisor;
    return best;
}

static void factorize(uint32_t n, size_t n_dimensions, uint32_t *sizes)
{
    for (size_t d = 0; d < n_dimensions; d++) {
        sizes[d] = divisor_below_root(n, n_dimensions - d);
        n /= sizes[d];
    }
}

static void find_sizes(const struct dl_group *g, struct dl_arena *arena, struct dl_grid_shape *shape)
{
    const struct dl_int_list machine = machine_torus(g);
    struct dl_int_list torus = machine;
    bool is_torus = g->topology && is_whole(g, torus, g->topology->n_devices);
    if (!is_torus && g->topology) {
        torus = g->topology->node.torus;
        is_torus = is_whole(g, torus, g->topology->node.n_devices);
    }
    shape->n_dimensions = (uint32_t)(is_torus ? torus.n : machine.n ? machine.n : usual_dimensions);
    uint32_t *const sizes = dl_arena_alloc(arena, shape->n_dimensions * sizeof *sizes);
    for (size_t d = 0; is_torus && d < torus.n; d++) sizes[d] = (uint32_t)torus.items[d];
    if (!is_torus) factorize(g->n, shape->n_dimensions, sizes);
    shape->sizes = sizes;
}

static void prepare_grid(struct dl_collective *c, bool every_way, struct dl_arena *arena)
{
    struct dl_grid_shape shape = {
        .every_way = every_way, .reduce_scatter = c->op != DL_ALLGATHER, .allgather = c->op != DL_REDUCESCATTER};
    find_sizes(c->group, arena, &shape);
    c->plan = dl_grid_new(&shape, c->group->n, arena);
}

static enum dl_status prepare_all_links(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)err;
    prepare_grid(c, true, arena);
    return DL_OK;
}

static enum dl_status prepare_rings(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)err;
    prepare_grid(c, false, arena);
    return DL_OK;
}

#define OVER_ALL_LINKS                                                                                                 \
    .name = "torus", .doc = "rings along all dimensions both ways at once, each dimension first in two of the lanes",  \
    .prepare = prepare_all_links, .lanes = dl_grid_lanes, .blocks = dl_block_per_rank, .next = dl_grid_next,           \
    .round = dl_grid_round, .peer = dl_grid_peer, .automatic = true
const struct dl_algorithm dl_allreduce_torus = {OVER_ALL_LINKS, .op = DL_ALLREDUCE};
const struct dl_algorithm dl_allgather_torus = {OVER_ALL_LINKS, .op = DL_ALLGATHER, .part = dl_grid_part};
const struct dl_algorithm dl_reducescatter_torus = {OVER_ALL_LINKS, .op = DL_REDUCESCATTER, .part = dl_grid_part};

const struct dl_algorithm dl_allreduce_torus_rings = {
    .name = "torus_rings",
    .doc = "rings along dimension 0, then 1, ..., and back, in one direction",
    .op = DL_ALLREDUCE,
    .prepare = prepare_rings,
    .blocks = dl_block_per_rank,
    .next = dl_grid_next,
    .round = dl_grid_round,
    .peer = dl_grid_peer,
    .automatic = true,
};
