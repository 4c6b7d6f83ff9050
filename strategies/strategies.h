/* strategies.h - the strategies by name, for the table in strategies.c. */
#ifndef DL_STRATEGIES_STRATEGIES_H
#define DL_STRATEGIES_STRATEGIES_H

#include "strategies/strategy.h"

extern const struct dl_strategy dl_strategy_pipeline, dl_strategy_recompute, dl_strategy_tensor, dl_strategy_data;
extern const struct dl_strategy dl_strategy_zero, dl_strategy_quantized_allreduce;
extern const struct dl_strategy dl_strategy_context, dl_strategy_expert, dl_strategy_offload, dl_strategy_graphs,
    dl_strategy_input;
extern const struct dl_strategy dl_strategy_blocking_launches, dl_strategy_lora;

#endif
