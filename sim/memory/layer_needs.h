/* layer_needs.h - bytes that a layer keeps and needs on one rank for one micro-batch: what a walk of the schedule
 * adds and removes. */
#ifndef DL_MEMORY_LAYER_NEEDS_H
#define DL_MEMORY_LAYER_NEEDS_H

#include "strategies/saved.h"

struct dl_layer_needs {
    double saved;       /* from its forward to its backward */
    double recomputed;  /* what recomputation dropped, back while the backward goes on */
    double regathered;  /* parameters of others that this needs again */
    bool begins_group;  /* blocks that are computed again together begin here */
    double for_weights; /* from its backward to its weight gradients, where a schedule has these apart */
    double at_work;     /* gradients of activations while the backward goes on */
    double parameters;  /* held: the part of this rank, less what is on the host */
    double gradients;   /* held */
    double optimizer;   /* held */
    double updating;    /* while the optimizer works, beside what is held; negative: less than that */
    double gathered;    /* parameters that it lacks, while it works */
    double kept;        /* such that it keeps once it has them; errors of lossy exchanges; copies of gradients */
    double unreduced;   /* its gradients, until they are with those who hold them */
    double copied;      /* of `saved`, what goes to the host; not counted in it */
    double on_host;     /* of parameters and optimizer */
};

/* `block`: the number of a block in its position. */
struct dl_layer_needs dl_layer_needs(const struct dl_setting *setting, const struct dl_layer *layer, uint32_t block);

#endif
