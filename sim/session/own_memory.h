/* own_memory.h - memory that a run needs of the simulating computer, known before it starts. */
#ifndef DL_SESSION_OWN_MEMORY_H
#define DL_SESSION_OWN_MEMORY_H

#include "sim/collective/collective.h"
#include "sim/engine/engine.h"
#include "strategies/job.h"
#include "topologies/topology.h"

struct dl_own_run {
    const struct dl_topology *topology;
    const struct dl_job *job;
    const struct dl_engine_kind *engine;
    bool timeline; /* what happens when is remembered */
};

struct dl_own_collective {
    const struct dl_collective *collective; /* prepared */
    const struct dl_engine_kind *engine;
    bool fluid;
};

/* Refuse a run that needs more memory than it may have; 0: than is free here. DLSIM_MEMORY_BYTES in the environment
 * says how much that is, for tests and batch jobs. */
enum dl_status dl_own_memory_check(const struct dl_own_run *run, double may_have_bytes, struct dl_error *err);
enum dl_status dl_own_memory_check_collective(const struct dl_own_collective *own, struct dl_error *err);

/* Whether there is room for the schedule of another job beside the run. */
bool dl_own_memory_holds(const struct dl_own_run *run, double may_have_bytes, const struct dl_job *other);

/* What each of so many runs side by side may have. To be asked before the first begins. */
double dl_own_memory_share_bytes(size_t n_runs);

/* How many such runs there is memory for at once, one at least. */
size_t dl_own_memory_runs(const struct dl_own_run *run);

#endif
