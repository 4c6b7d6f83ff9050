/* saved.h - what a layer keeps of its forward for its backward, on one rank, in bytes. */
#ifndef DL_STRATEGIES_SAVED_H
#define DL_STRATEGIES_SAVED_H

#include "strategies/strategy.h"

/* Of all ranks that share the layer, by what becomes of it: as in struct dl_saved, but for the bytes of an activation.
 */
struct dl_saves {
    double inside_bytes, outside_bytes, scores_bytes; /* scores: not in inside_bytes */
    double whole_bytes;                               /* that nothing divides */
    double input_bytes;                               /* outside: what full recomputation keeps */
};
struct dl_saves dl_saves_of(const struct dl_setting *setting, const struct dl_layer *layer);

/* With the setting's recomputation; `block` is the number of a block in its position. */
double dl_saved_bytes(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);
/* If nothing is computed again, or nothing but what comes between the projections of attention. */
double dl_saved_whole_bytes(const struct dl_setting *setting, const struct dl_layer *layer, bool scores);
/* Of blocks, the part of dl_saved_bytes that waits on the host. */
double dl_copied_bytes(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);

/* What the first layer is given before a cast, if there is one; outside. */
double dl_input_bytes(const struct dl_setting *setting, const struct dl_layer *layer);

#endif
