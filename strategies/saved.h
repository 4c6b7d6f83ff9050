/* saved.h - what a layer keeps of its forward for its backward, as the software has it, in bytes. */
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

/* Of these, what modules need not keep if they are recomputed. */
struct dl_saves dl_saves_of_modules(const struct dl_setting *setting, const struct dl_layer *layer,
                                    dl_module_set modules);

/* What the first layer is given before a cast, if there is one; outside. */
double dl_input_bytes(const struct dl_setting *setting, const struct dl_layer *layer);

#endif
