/* grid.h - rings along the dimensions of a grid of ranks: reduce-scatter along one after the other, all-gather back.
 *
 * A lane goes through the dimensions in its own order, all of them forwards or all backwards. After the rings of the
 * first p dimensions a rank has the blocks that agree with it in p coordinates, so it ends with the block of its own
 * number: in lane order x0 + d0*(x1 + d1*(x2 + ...)). */
#ifndef DL_COLLECTIVE_GRID_H
#define DL_COLLECTIVE_GRID_H

#include "sim/collective/collective.h"

struct dl_grid_shape {
    const uint32_t *sizes; /* the first varies fastest with the position */
    uint32_t n_dimensions;
    const uint32_t *rank_at;     /* position -> rank; NULL: the same */
    const uint32_t *position_of; /* rank -> position; NULL: the same */
    bool every_way;              /* a lane for each first dimension and direction; else one lane, forwards */
    bool reduce_scatter, allgather;
};

struct dl_grid;

/* What c->plan must be for the functions below. Dimensions of size 1 are left out. */
struct dl_grid *dl_grid_new(const struct dl_grid_shape *shape, uint32_t n, struct dl_arena *arena);

uint32_t dl_grid_lanes(const struct dl_collective *c);
uint32_t dl_grid_part(const struct dl_collective *c, uint32_t lane, uint32_t rank);
bool dl_grid_next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out);
bool dl_grid_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out);
uint32_t dl_grid_peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank);

#endif
