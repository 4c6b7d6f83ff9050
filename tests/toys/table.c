/* table.c - the list of strategies in place of strategies/strategies.c: the toys, and what they stand beside. */
#include "tests/toys/toys.h"

static const struct dl_strategy *const strategies[] = {
    &dl_strategy_pipeline, &dl_toy_spatial, &dl_strategy_data, &dl_toy_gossip, &dl_toy_storage,
};

size_t dl_strategy_count(void) { return DL_COUNT(strategies); }

const struct dl_strategy *dl_strategy_get(size_t index) { return strategies[index]; }
