/* resolver.h - the collectives that bring a tensor from the layout that it has to the layout that is needed.
 *
 *   partial sums -> replicated         all-reduce
 *   partial sums -> cut                reduce-scatter
 *   cut -> replicated                  all-gather
 *   cut -> cut in another dimension    all-to-all
 *   replicated -> cut, or no change    nothing
 *
 * Every digit changes by one of these rules, forward and backward alike; those that change by the same rule do so in
 * one collective. Partial sums are never made. Digits that change in one dimension do so by one rule, and the blocks
 * that they add or take away are within those of the digits that stay there: others would be a shuffle, which nothing
 * needs. */
#ifndef DL_STRATEGIES_RESOLVER_H
#define DL_STRATEGIES_RESOLVER_H

#include <stddef.h>

#include "sim/program/comm.h"
#include "strategies/layout.h"

/* One collective. As with all of them, `elements` are those of one rank's buffer: of what is summed, of what an
 * all-gather ends with, of what an all-to-all begins with. */
struct dl_move {
    enum dl_op op;
    dl_digits along;
    double elements;
    struct dl_layout after;
};
enum { DL_MOST_MOVES = 4 };

/* Of a tensor of so many elements in all; returns how many moves there are, in their order. */
size_t dl_resolve(const struct dl_ranks *ranks, const struct dl_layout *has, const struct dl_layout *needs,
                  double elements, struct dl_move moves[DL_MOST_MOVES]);

#endif
