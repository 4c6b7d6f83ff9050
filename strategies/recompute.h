/* recompute.h - which blocks are recomputed, for strategies below that one: its options, which its events carry. */
#ifndef DL_STRATEGIES_RECOMPUTE_H
#define DL_STRATEGIES_RECOMPUTE_H

#include "strategies/saved.h"
#include "strategies/strategy.h"

/* Of a block that is recomputed. */
enum dl_recompute_keeps { DL_KEEPS_INPUT, DL_KEEPS_RESULTS };

struct dl_recomputation {
    int64_t mode;           /* enum dl_recompute */
    struct dl_json modules; /* DL_RECOMPUTE_SELECTIVE: names; absent: the core of attention */
    int64_t layers;         /* DL_RECOMPUTE_BLOCKS: the first so many of each position; 0: all */
    int64_t every;          /* in groups of so many, which keep one input together */
    int64_t keeps;          /* enum dl_recompute_keeps */
    struct dl_json results; /* DL_RECOMPUTE_BLOCKS: names of those that are kept beside that */
    bool before_bias;       /* as products make them */
};

/* Modules by their names, with those that are parts of them; absent: the core of attention. */
enum dl_status dl_recompute_modules_read(struct dl_json list, dl_module_set *modules, struct dl_error *err);
/* Refuses modules that the model has not. */
enum dl_status dl_recompute_modules_check(const struct dl_recomputation *how, const struct dl_check *what,
                                          struct dl_error *err);
/* "layernorm, moe_act", as far as there is room. */
void dl_recompute_modules_print(dl_module_set modules, char *out, size_t room);

/* The modules or the results of all kernels of a model, as a set of numbers; 0 is none. */
uint32_t dl_recompute_of_model(const struct dl_model *m, unsigned (*part_of)(const struct dl_kernel *));

/* What is recomputed of a block, by its number among those of its position. NULL: nothing is. */
enum dl_recompute dl_recompute_of(const struct dl_recomputation *how, uint32_t block);

/* Kernels of its forward that come again where it is recomputed as a whole: the first so many. */
size_t dl_recompute_count(const struct dl_setting *setting, const struct dl_layer *layer);

/* Results by their names, as a set. */
enum dl_status dl_recompute_results_read(struct dl_json list, uint32_t *results, struct dl_error *err);
/* Refuses those that the model has not. */
enum dl_status dl_recompute_results_check(const struct dl_check *what, struct dl_error *err);
/* "qkv, fc1", as far as there is room. */
void dl_recompute_results_print(uint32_t results, char *out, size_t room);

/* Whether a block keeps the result of this kernel of its forward beside its input, and the bytes of all such. */
bool dl_recompute_keeps(const struct dl_recomputation *how, const struct dl_setting *setting,
                        const struct dl_layer *layer, size_t index);
struct dl_saves dl_recompute_kept(const struct dl_recomputation *how, const struct dl_setting *setting,
                                  const struct dl_layer *layer);

#endif
