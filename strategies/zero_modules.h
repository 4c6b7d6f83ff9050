/* zero_modules.h - which matrices of a layer stage 3 of ZeRO gathers when, in software that does so for each of them
 * (DeepSpeed, runtime/zero/partitioned_param_coordinator.py).
 *
 * Before a matrix is used its parameters are gathered, and those of the next use that lacks them, unless as many
 * parameters as may live are gathered already. After its use they are released, unless the matrix is used again
 * within so many parameters: in a recomputed layer the last matrices of the forward are the first of the backward. */
#ifndef DL_STRATEGIES_ZERO_MODULES_H
#define DL_STRATEGIES_ZERO_MODULES_H

#include "strategies/strategy.h"

enum { DL_MOST_MODULES = 16 };

/* None is gathered ahead if so many parameters are there; one stays if it is used again before so many others.
 * Gradients are scattered by so many. */
struct dl_module_rules {
    const struct dl_setting *setting;
    const struct dl_recomputation *recomputed; /* as its events have it */
    double live_parameters, reuse_parameters, bucket_parameters;
};

/* A layer in one pass: its matrices, in the order in which the forward uses them. */
struct dl_visit {
    const struct dl_layer *layer; /* NULL: none */
    enum dl_pass pass;
    bool is_first; /* of a step, where that differs */
    uint32_t n_modules, n_uses;
    uint32_t n_repeated;                /* the first so many, whose forward comes again before the backward */
    const char *names[DL_MOST_MODULES]; /* of their kernels; of a layer that is gathered whole one, NULL */
    double parts[DL_MOST_MODULES];      /* of the layer's parameters */
};

struct dl_module {
    const struct dl_layer *layer; /* NULL: none */
    uint32_t index;
    double part;
    bool is_first; /* use of a step, where that differs */
};

/* Where a pass is. All zero: nowhere. */
struct dl_module_walk {
    struct dl_visit now, next;
    uint32_t begun;   /* uses */
    uint32_t fetched; /* uses whose parameters are there or on their way; those beyond `now` are of `next` */
    double live, leaving;
};

/* What a use begins with: a gather unless `now` has no layer, a wait likewise, a gather for a later use. */
struct dl_module_turn {
    struct dl_module now, wait, ahead;
};

/* Of a LAYER event. */
void dl_modules_begin(struct dl_module_walk *walk, const struct dl_module_rules *rules, const struct dl_event *ev);
/* Whether the next use of the layer begins with that kernel. */
bool dl_modules_is_use(const struct dl_module_walk *walk, const struct dl_event *ev);
bool dl_modules_left(const struct dl_module_walk *walk);
struct dl_module_turn dl_modules_use(struct dl_module_walk *walk, const struct dl_module_rules *rules);

/* The parts of the layer's gradients that are scattered one after the other; how many these are. */
uint32_t dl_modules_buckets(const struct dl_module_rules *rules, const struct dl_layer *layer,
                            double parts[DL_MOST_MODULES]);

/* Adds the biases and norms of a block, and the parameters that these have. */
void dl_modules_count_vectors(const struct dl_layer *layer, double *n_vectors, double *parameters);

/* Parameters of the layer that are gathered at once, at most. */
double dl_modules_most_live(const struct dl_module_rules *rules, const struct dl_layer *layer, uint32_t block);

#endif
