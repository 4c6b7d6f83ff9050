/* recompute.h - which blocks are recomputed, for strategies below that one: its options, which its events carry. */
#ifndef DL_STRATEGIES_RECOMPUTE_H
#define DL_STRATEGIES_RECOMPUTE_H

#include "strategies/strategy.h"

struct dl_recomputation {
    int64_t mode;   /* enum dl_recompute */
    int64_t layers; /* DL_RECOMPUTE_BLOCKS: the first so many of each position; 0: all */
    int64_t every;  /* in groups of so many, which keep one input together */
};

/* What is recomputed of a block, by its number among those of its position. NULL: nothing is. */
enum dl_recompute dl_recompute_of(const struct dl_recomputation *how, uint32_t block);

#endif
