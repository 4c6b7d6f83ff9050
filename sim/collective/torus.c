/* torus.c - all-reduce by rings along the dimensions of a torus.
 *
 * If the group is the whole of a torus in the order of its devices, the dimensions are the machine's. Otherwise the
 * ranks are taken as a torus as cubic as their number allows, of as many dimensions as the machine's or else three:
 * each size is the largest divisor that is not above the root of what is left. A prime number of ranks is one ring. */
#include "sim/collective/algorithms.h"
#include "sim/collective/grid.h"
#include "sim/collective/phase.h"

enum { usual_dimensions = 3 };

static size_t machine_dimensions(const struct dl_group *g, const int64_t **sizes)
{
    if (!g->topology || !g->topology->network.kind || !g->topology->network.kind->dimensions) return 0;
    return g->topology->network.kind->dimensions(&g->topology->network, sizes);
}

static bool is_whole_machine(const struct dl_group *g, const int64_t *sizes, size_t n_dimensions)
{
    int64_t product = 1;
    for (size_t d = 0; d < n_dimensions; d++) product *= sizes[d];
    if (product != g->n || g->n != g->topology->n_devices) return false;
    for (uint32_t rank = 0; rank < g->n; rank++)
        if (g->device[rank] != rank) return false;
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

static void prepare_grid(struct dl_collective *c, bool every_way, struct dl_arena *arena)
{
    const int64_t *machine;
    const size_t n_machine = machine_dimensions(c->group, &machine);
    const size_t n_dimensions = n_machine ? n_machine : usual_dimensions;
    uint32_t *const sizes = dl_arena_alloc(arena, n_dimensions * sizeof *sizes);
    if (n_machine && is_whole_machine(c->group, machine, n_machine))
        for (size_t d = 0; d < n_dimensions; d++) sizes[d] = (uint32_t)machine[d];
    else
        factorize(c->group->n, n_dimensions, sizes);
    const struct dl_grid_shape shape = {.sizes = sizes,
                                        .n_dimensions = (uint32_t)n_dimensions,
                                        .every_way = every_way,
                                        .reduce_scatter = true,
                                        .allgather = true};
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

const struct dl_algorithm dl_allreduce_torus = {
    .name = "torus",
    .doc = "rings along all dimensions both ways at once, each dimension first in two of the lanes",
    .op = DL_ALLREDUCE,
    .prepare = prepare_all_links,
    .lanes = dl_grid_lanes,
    .blocks = dl_block_per_rank,
    .next = dl_grid_next,
    .round = dl_grid_round,
    .peer = dl_grid_peer,
    .automatic = true,
};

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
