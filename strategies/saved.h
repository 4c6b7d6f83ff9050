/* saved.h - what a layer keeps of its forward for its backward, on one rank, in bytes. */
#ifndef DL_STRATEGIES_SAVED_H
#define DL_STRATEGIES_SAVED_H

#include "strategies/strategy.h"

/* With the setting's recomputation; `block` is the number of a block in its position. */
double dl_saved_bytes(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);
/* If nothing is computed again, or nothing but what comes between the projections of attention. */
double dl_saved_whole_bytes(const struct dl_setting *setting, const struct dl_layer *layer, bool scores);
/* Of blocks, the part of dl_saved_bytes that waits on the host. */
double dl_copied_bytes(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);

/* What the first layer is given, if it is no tokens: in fp32, beside the cast of it, until the step ends. */
double dl_given_bytes(const struct dl_setting *s, const struct dl_layer *layer);

#endif
