/* layout.h - which part of a tensor each rank has.
 *
 * Digits of a rank cut dimensions of a tensor into equal blocks; where several cut the same one, the lowest of them
 * counts fastest. A digit that cuts nothing replicates, unless ranks that differ in it have partial sums. */
#ifndef DL_STRATEGIES_LAYOUT_H
#define DL_STRATEGIES_LAYOUT_H

#include "sim/program/ranks.h"
#include "workloads/dimensions.h"

struct dl_layout {
    dl_digits cut[DL_N_DIMENSIONS];
    dl_digits partial;
};

/* All digits that cut these dimensions, and into how many parts they do. */
dl_digits dl_layout_cuts(const struct dl_layout *layout, dl_dimensions of);
uint32_t dl_layout_parts(const struct dl_layout *layout, dl_dimensions of, const struct dl_ranks *ranks);

/* Work is divided by the dimensions that it goes through. Of a tensor with some of these: what a rank must be given of
 * it as an operand, where the digits of other dimensions replicate; and what it makes of it as a result, where the
 * other dimensions were summed over, so that their digits have partial sums. Both hold for gradients too. */
struct dl_layout dl_layout_operand(const struct dl_layout *work, dl_dimensions of);
struct dl_layout dl_layout_result(const struct dl_layout *work, dl_dimensions of);

/* The gradient of an operand that these ranks used: cut as it was, and partial sums where it was replicated. */
struct dl_layout dl_layout_gradient(const struct dl_layout *used, dl_digits among);

#endif
