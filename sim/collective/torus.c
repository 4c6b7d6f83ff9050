/* torus.c - rings along the dimensions of a torus.
 *
 * If the group fills a box of a torus in the order of its devices, the machine's or that of one node, the rings are
 * along the dimensions of the box: all of the torus, a plane of it, every second device of a row. Otherwise the ranks
 * are taken as a torus as cubic as their number allows, of as many dimensions as the machine's or else three: each size
 * is the largest divisor that is not above the root of what is left. A prime number of ranks is one ring. */
#include <string.h>

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

/* Sizes of the rings along which the ranks lie; those of the first vary fastest. */
struct box {
    uint32_t size[DL_MAX_DIMENSIONS];
    int64_t stride[DL_MAX_DIMENSIONS]; /* between devices of neighbours */
    bool used[DL_MAX_DIMENSIONS];      /* dimensions of the torus */
    uint32_t n, n_ranks;
};

/* `count` devices at equal distances, the first of them at `device`: along one dimension, or to its end and then along
 * the next. */
static bool add_run(struct box *box, struct dl_int_list torus, int64_t device, int64_t stride, int64_t count)
{
    int64_t unit = 1;
    for (size_t d = 0; d < torus.n && count > 1; unit *= torus.items[d++]) {
        const int64_t size = torus.items[d], step = stride / unit, x = device / unit % size;
        if (stride >= unit * size) continue;
        const int64_t room = (size - x + step - 1) / step, part = count < room ? count : room;
        if (stride % unit || box->used[d] || count % part || (part < count && part * step != size)) return false;
        box->used[d] = true;
        box->size[box->n] = (uint32_t)part;
        box->stride[box->n++] = stride;
        box->n_ranks *= (uint32_t)part;
        count /= part;
        stride = unit * size;
    }
    return count <= 1;
}

static bool holds(const struct box *box, const struct dl_group *g)
{
    for (uint32_t rank = 0; rank < g->n; rank++) {
        int64_t device = g->device[0];
        uint32_t rest = rank;
        for (uint32_t i = 0; i < box->n; rest /= box->size[i++]) device += rest % box->size[i] * box->stride[i];
        if (device != g->device[rank]) return false;
    }
    return true;
}

/* Whether the ranks fill a box of a torus whose devices are numbered from `first` on. */
static bool find_box(const struct dl_group *g, struct dl_int_list torus, uint32_t first, struct box *box)
{
    const int64_t origin = g->device[0];
    *box = (struct box){.n_ranks = 1};
    while (box->n_ranks < g->n) {
        const uint32_t step = box->n_ranks;
        const int64_t stride = g->device[step] - origin;
        uint32_t count = 2;
        while (step * count < g->n && g->device[step * count] - origin == count * stride) count++;
        if (stride <= 0 || !add_run(box, torus, origin - first, stride, count)) return false;
    }
    return box->n_ranks == g->n && holds(box, g);
}

static int64_t product(struct dl_int_list torus)
{
    int64_t n = torus.n > 0;
    for (size_t d = 0; d < torus.n; d++) n *= torus.items[d];
    return n;
}

static bool is_in_one_node(const struct dl_group *g)
{
    for (uint32_t rank = 1; rank < g->n; rank++)
        if (dl_topology_node_of(g->topology, g->device[rank]) != dl_topology_node_of(g->topology, g->device[0]))
            return false;
    return true;
}

/* In the machine's torus, where its devices are the torus; else in that of a node. */
static bool is_box(const struct dl_group *g, struct dl_int_list machine, struct box *box)
{
    const struct dl_topology *const t = g->topology;
    if (!t) return false;
    if (machine.n && machine.n <= DL_MAX_DIMENSIONS && product(machine) == t->n_devices)
        return find_box(g, machine, 0, box);
    const struct dl_int_list node = t->node.torus;
    if (!node.n || node.n > DL_MAX_DIMENSIONS || product(node) != t->node.n_devices || !is_in_one_node(g)) return false;
    return find_box(g, node, g->device[0] / t->node.n_devices * t->node.n_devices, box);
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
    struct box box;
    const bool found = is_box(g, machine, &box);
    shape->n_dimensions = (uint32_t)(found ? box.n : machine.n ? machine.n : usual_dimensions);
    uint32_t *const sizes = dl_arena_alloc(arena, (shape->n_dimensions + 1) * sizeof *sizes);
    if (found)
        memcpy(sizes, box.size, box.n * sizeof *sizes);
    else
        factorize(g->n, shape->n_dimensions, sizes);
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
