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

/* What is kept of a layer, over that. */
double dl_kept_times(const struct dl_setting *setting, const struct dl_layer *layer);

/* Whether the backward of a layer begins with a copy of it. */
bool dl_slices_kept(const struct dl_setting *setting, const struct dl_layer *layer);

/* Of what experts are given, in how many parts tokens are outside of them: each rank that shares experts with others
 * keeps it whole, as it was gathered for them (Megatron-Core, transformer/moe/token_dispatcher.py: tensor ranks gather
 * before the products, which keep what they are given). What comes back is scattered before it is weighed. 1: as it is
 * outside. */
uint32_t dl_expert_copies(const struct dl_setting *setting);

/* What the first layer is given before a cast, if there is one; outside. */
double dl_input_bytes(const struct dl_setting *setting, const struct dl_layer *layer);

#endif
