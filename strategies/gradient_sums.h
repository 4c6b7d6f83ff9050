/* gradient_sums.h - kernels that add the gradients of a micro-batch to those before it, one for each tensor, as
 * autograd does. Software that has them says so by a rule for the operation gradient_sum; elsewhere products add up
 * themselves, or shards do.
 *
 * The first micro-batch of a step has nothing to add to. Here it is the last that has none, which is as many sums. */
#ifndef DL_STRATEGIES_GRADIENT_SUMS_H
#define DL_STRATEGIES_GRADIENT_SUMS_H

#include "strategies/strategy.h"

bool dl_sums_gradients_apart(const struct dl_setting *setting);

/* Of a layer whose backward is over. */
enum dl_status dl_emit_gradient_sum(struct dl_stack *top, const struct dl_layer *layer, struct dl_error *err);

#endif
