/* strategies.c - the only list, from the top of the stack to its bottom; a new strategy is one file and one line here.
 */
#include "strategies/strategies.h"

static const struct dl_strategy *const strategies[] = {
    &dl_strategy_pipeline,  /* which layers are where */
    &dl_strategy_recompute, /* above tensor, so that the collectives of what is done again come again */
    &dl_strategy_context,   /* above tensor, which then has a part of the tokens */
    &dl_strategy_tensor,
    &dl_strategy_expert,
    &dl_strategy_data,
    &dl_strategy_zero, /* below data: it rewrites data's exchanges */
    &dl_strategy_quantized_allreduce,
    &dl_strategy_input,
    &dl_strategy_graphs,
    &dl_strategy_offload,           /* below zero, which says what part of the parameters a rank updates */
    &dl_strategy_blocking_launches, /* lowest: nothing that others let go on at once does */
    &dl_strategy_lora,              /* rewrites nothing: the model is built so */
};

size_t dl_strategy_count(void) { return DL_COUNT(strategies); }

const struct dl_strategy *dl_strategy_get(size_t index) { return strategies[index]; }
