#include "sim/collective/grid.h"

/* The rings along one dimension, as a lane comes to them. */
struct leg {
    uint32_t dimension, size;
    uint32_t before; /* ranks of the dimensions that the lane's order has before this one */
    uint32_t place;  /* of the dimension in the lane's order */
    uint32_t end;    /* step after its last */
    bool reduce;
};

struct dl_grid {
    uint32_t n, n_dimensions, n_lanes, n_legs;
    uint32_t *size, *stride; /* per dimension; stride between positions */
    uint32_t *coordinate;    /* [position * n_dimensions + dimension] */
    struct leg *legs;        /* [lane * n_legs + leg] */
    const uint32_t *rank_at, *position_of;
    bool every_way, gathers_only;
};

static void copy_sizes(struct dl_grid *grid, const struct dl_grid_shape *shape, struct dl_arena *arena)
{
    grid->size = dl_arena_alloc(arena, shape->n_dimensions * sizeof *grid->size);
    grid->stride = dl_arena_alloc(arena, shape->n_dimensions * sizeof *grid->stride);
    uint32_t stride = 1;
    for (uint32_t d = 0; d < shape->n_dimensions; d++) {
        if (shape->sizes[d] == 1) continue;
        grid->size[grid->n_dimensions] = shape->sizes[d];
        grid->stride[grid->n_dimensions++] = stride;
        stride *= shape->sizes[d];
    }
}

static void find_coordinates(struct dl_grid *grid, struct dl_arena *arena)
{
    const uint32_t n_dimensions = grid->n_dimensions;
    grid->coordinate = dl_arena_alloc(arena, (size_t)grid->n * n_dimensions * sizeof *grid->coordinate);
    for (uint32_t position = 0; position < grid->n; position++)
        for (uint32_t d = 0; d < n_dimensions; d++)
            grid->coordinate[(size_t)position * n_dimensions + d] = position / grid->stride[d] % grid->size[d];
}

static uint32_t ways(const struct dl_grid *grid) { return grid->every_way ? 2 : 1; }

static bool goes_backwards(const struct dl_grid *grid, uint32_t lane) { return lane % ways(grid) == 1; }

/* The dimension that a lane has at a place of its order. */
static uint32_t dimension_at(const struct dl_grid *grid, uint32_t lane, uint32_t place)
{
    return (lane / ways(grid) + place) % grid->n_dimensions;
}

static uint32_t ranks_before(const struct dl_grid *grid, uint32_t lane, uint32_t place)
{
    uint32_t product = 1;
    for (uint32_t p = 0; p < place; p++) product *= grid->size[dimension_at(grid, lane, p)];
    return product;
}

static void make_legs(struct dl_grid *grid, uint32_t lane, const struct dl_grid_shape *shape)
{
    struct leg *leg = &grid->legs[lane * grid->n_legs];
    uint32_t step = 0;
    for (uint32_t half = 0; half < 2; half++) {
        const bool reduce = half == 0;
        if (!(reduce ? shape->reduce_scatter : shape->allgather)) continue;
        for (uint32_t i = 0; i < grid->n_dimensions; i++) {
            const uint32_t place = reduce ? i : grid->n_dimensions - 1 - i;
            const uint32_t dimension = dimension_at(grid, lane, place), size = grid->size[dimension];
            step += 2 * (size - 1);
            *leg++ = (struct leg){dimension, size, ranks_before(grid, lane, place), place, step, reduce};
        }
    }
}

struct dl_grid *dl_grid_new(const struct dl_grid_shape *shape, uint32_t n, struct dl_arena *arena)
{
    struct dl_grid *const grid = dl_arena_alloc(arena, sizeof *grid);
    *grid = (struct dl_grid){.n = n,
                             .rank_at = shape->rank_at,
                             .position_of = shape->position_of,
                             .every_way = shape->every_way,
                             .gathers_only = !shape->reduce_scatter};
    copy_sizes(grid, shape, arena);
    find_coordinates(grid, arena);
    grid->n_lanes = shape->every_way && grid->n_dimensions ? 2 * grid->n_dimensions : 1;
    grid->n_legs = grid->n_dimensions * (shape->reduce_scatter + shape->allgather);
    grid->legs = dl_arena_alloc(arena, grid->n_lanes * grid->n_legs * sizeof *grid->legs);
    for (uint32_t lane = 0; lane < grid->n_lanes; lane++) make_legs(grid, lane, shape);
    return grid;
}

uint32_t dl_grid_lanes(const struct dl_collective *c)
{
    const struct dl_grid *const grid = c->plan;
    return grid->n_lanes;
}

static uint32_t position_of(const struct dl_grid *grid, uint32_t rank)
{
    return grid->position_of ? grid->position_of[rank] : rank;
}

/* The rank next to a position along a dimension: upwards or downwards. */
static uint32_t neighbour(const struct dl_grid *grid, uint32_t position, uint32_t dimension, bool upwards)
{
    const uint32_t x = grid->coordinate[(size_t)position * grid->n_dimensions + dimension];
    const uint32_t size = grid->size[dimension], stride = grid->stride[dimension], round = (size - 1) * stride;
    if (upwards)
        position = x + 1 < size ? position + stride : position - round;
    else
        position = x ? position - stride : position + round;
    return grid->rank_at ? grid->rank_at[position] : position;
}

/* A lane that goes backwards sees mirrored coordinates, in which it goes forwards. */
static uint32_t coordinate(const struct dl_grid *grid, uint32_t lane, uint32_t position, uint32_t dimension)
{
    const uint32_t x = grid->coordinate[(size_t)position * grid->n_dimensions + dimension];
    return goes_backwards(grid, lane) && x ? grid->size[dimension] - x : x;
}

/* The first block of those that agree with the rank in the dimensions that the leg's order has before it. */
static uint32_t first_block(const struct dl_grid *grid, uint32_t lane, uint32_t position, uint32_t place)
{
    uint32_t first = 0, unit = 1;
    for (uint32_t p = 0; p < place; p++) {
        const uint32_t d = dimension_at(grid, lane, p);
        first += unit * coordinate(grid, lane, position, d);
        unit *= grid->size[d];
    }
    return first;
}

uint32_t dl_grid_part(const struct dl_collective *c, uint32_t lane, uint32_t rank)
{
    const struct dl_grid *const grid = c->plan;
    return first_block(grid, lane, position_of(grid, rank), grid->n_dimensions);
}

static uint32_t merged_in(const struct dl_grid *grid, const struct leg *leg, uint32_t round)
{
    if (leg->reduce) return leg->before * (round + 1);
    return grid->gathers_only ? 1 : grid->n;
}

bool dl_grid_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    const struct dl_grid *const grid = c->plan;
    const struct leg *leg = &grid->legs[lane * grid->n_legs], *const end = leg + grid->n_legs;
    uint32_t start = 0;
    for (; leg < end && step >= leg->end; leg++) start = leg->end;
    if (leg == end) return false;
    const uint32_t position = position_of(grid, rank), round = (step - start) / 2, is_recv = (step - start) & 1;
    /* As in ring.c: round k of a reduce-scatter sends part i-1-k, of an all-gather part i-k. */
    uint32_t part = coordinate(grid, lane, position, leg->dimension) + leg->size - leg->reduce - is_recv - round;
    if (part >= leg->size) part -= leg->size;
    const uint32_t stride = leg->before * leg->size;
    out->kind = is_recv ? DL_RECV : DL_SEND;
    out->posted = 0;
    out->reduce = leg->reduce;
    out->peer = neighbour(grid, position, leg->dimension, goes_backwards(grid, lane) == is_recv);
    out->blocks.first = first_block(grid, lane, position, leg->place) + part * leg->before;
    out->blocks.count = grid->n / stride;
    out->blocks.stride = stride;
    out->merged = merged_in(grid, leg, round);
    out->synchronous = false;
    return true;
}

bool dl_grid_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    const struct dl_grid *const grid = c->plan;
    if (k >= grid->n_legs) return false;
    const struct leg *const leg = &grid->legs[lane * grid->n_legs + k];
    *out = (struct dl_round){.repeat = leg->size - 1,
                             .blocks = grid->n / (leg->before * leg->size),
                             .merged = merged_in(grid, leg, (leg->size - 2) / 2),
                             .reduce = leg->reduce};
    return true;
}

uint32_t dl_grid_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const struct dl_grid *const grid = c->plan;
    const struct leg *const leg = &grid->legs[lane * grid->n_legs + k];
    return neighbour(grid, position_of(grid, rank), leg->dimension, !goes_backwards(grid, lane));
}
