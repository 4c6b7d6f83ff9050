/* own_memory.h - what a run needs of the computer that simulates, before it starts. */
#ifndef DL_APP_OWN_MEMORY_H
#define DL_APP_OWN_MEMORY_H

#include "sim/engine/engine.h"
#include "strategies/stack.h"
#include "topologies/topology.h"

/* Refuse a run that needs more memory than it may have; 0: than is free here. DLSIM_MEMORY_BYTES in the environment
 * says how much that is, for tests and batch jobs. */
enum dl_status dl_own_memory_check(const struct dl_topology *topology, const struct dl_job *job,
                                   const struct dl_engine_kind *engine, double may_have_bytes, struct dl_error *err);

/* What each of so many runs side by side may have. To be asked before the first begins. */
double dl_own_memory_share_bytes(size_t n_runs);

/* How many such runs there is memory for at once, one at least. */
size_t dl_own_memory_runs(const struct dl_topology *topology, const struct dl_job *job,
                          const struct dl_engine_kind *engine);

#endif
