/* stage_memory.h - what a stage holds from step to step, and what its gradients leave behind. */
#ifndef DL_STRATEGIES_STAGE_MEMORY_H
#define DL_STRATEGIES_STAGE_MEMORY_H

#include "strategies/sink.h"

/* Into the begin of its program. */
enum dl_status dl_stage_hold(struct dl_sink *s, struct dl_program *program, struct dl_error *err);
/* Once the parameters are updated, unless gradients stay. */
enum dl_status dl_stage_free_gradients(struct dl_sink *s, uint32_t stage, struct dl_error *err);

#endif
