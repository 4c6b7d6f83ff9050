/* zero_memory.h - what ZeRO cuts, gathers and frees of what ranks allocate. */
#ifndef DL_STRATEGIES_ZERO_MEMORY_H
#define DL_STRATEGIES_ZERO_MEMORY_H

#include "strategies/zero_modules.h"

/* How stage 3 gathers parameters and scatters gradients. */
struct dl_zero_gathers {
    struct dl_module_rules modules;
    bool one_by_one;     /* matrices are */
    uint32_t ahead;      /* layers */
    bool stays;          /* from the forward to the backward */
    double bits;         /* per parameter as it travels; 0: as it is */
    double scatter_bits; /* per gradient, the same */
};

/* Whether gradients are scattered at the end of this backward of a layer. */
bool dl_zero_scatters_at(const struct dl_event *done, const struct dl_setting *s);

/* An ALLOC, cut as the stage says. `chunk_bytes` adds up whole gradients of a chunk that waits for its last
 * micro-batch. */
enum dl_status dl_zero_alloc(const struct dl_zero_gathers *gathers, const struct dl_event *ev, double *chunk_bytes,
                             struct dl_stack *below, struct dl_error *err);
/* A LAYER or LAYER_DONE: parameters of others as long as the layer needs them, whole gradients until they are
 * scattered. */
enum dl_status dl_zero_layer(const struct dl_zero_gathers *gathers, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err);

#endif
