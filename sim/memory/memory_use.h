/* memory_use.h - bytes on a device of each pipeline stage at its fullest moment.
 *
 * Activations are counted by walking the stage's schedule: a forward leaves what its backward needs, the backward (or
 * its weight part, where they are apart) frees it. */
#ifndef DL_MEMORY_MEMORY_USE_H
#define DL_MEMORY_MEMORY_USE_H

#include "strategies/lower.h"

struct dl_memory_use {
    double parameters, gradients, optimizer, activations, buffers, workspace, fragmentation; /* bytes */
    double peak;
};

/* use[0..stages). */
void dl_memory_of_stages(const struct dl_setting *setting, const struct dl_lowered *lowered, struct dl_memory_use *use);

/* What a layer keeps of the forward of a micro-batch, on one rank; of a block with that number in its position. */
double dl_saved_bytes(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);

#endif
