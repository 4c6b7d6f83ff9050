/* training.h - a training step simulated: every pipeline stage of every replica executes its program.
 *
 * Ranks in lockstep (the tensor and context ranks of a stage and replica) share one interpreter: a lockstep group. That
 * never merges traffic: each member's messages keep their own links. Collectives inside a lockstep group are priced
 * without contention where nothing else can be on their links. Those that can share links with others, sends between
 * stages and collectives over replicas are bundles on the network. */
#ifndef DL_ENGINE_TRAINING_H
#define DL_ENGINE_TRAINING_H

#include "sim/collective/choose.h"
#include "sim/cost/device.h"
#include "sim/engine/recorder.h"
#include "sim/engine/scenario.h"
#include "sim/engine/wire.h"
#include "sim/program/step.h"

struct dl_training_request {
    struct dl_engine *engine;
    struct dl_wire *wire;
    struct dl_estimator *estimator;
    struct dl_step step;
    const uint32_t *device_of_rank; /* and those of servers */
    struct dl_arena *arena;
    uint32_t iterations;                /* 0 is 1; the result is of the last one */
    const struct dl_scenario *scenario; /* OPTIONAL: slow lockstep groups and jitter */
    uint64_t seed;                      /* of the jitter */
    const double *slowdown_of_rank;     /* OPTIONAL: its work takes so many times as long, and those in lockstep wait */
    const struct dl_recorder *recorder; /* OPTIONAL */
    const struct dl_device *device;     /* OPTIONAL: what exchanges and sends take from its work; NULL: nothing */
    bool by_message;                    /* exchanges message by message (step fidelity), else folded (fluid) */
    /* Exchanges over replicas that do not fold into flows are timed, as if each were alone on its links, where all of a
     * step would be more than this (see dl_effort_together). 0: they are not. Links that change are not in the
     * estimates that they are timed by, so that with such a scenario all are simulated. */
    double most_effort;
    bool by_events;    /* items too, where they could be gone through ahead of them; the same comes out */
    bool extrapolates; /* periods that repeat themselves; only where engines are alone, and nothing is recorded */
    bool one_replica;  /* play the first replica alone and take the others as like it; exchanges are still over all */
};

/* Forwards, backwards with their recomputation and weight gradients, and what ends a step. */
enum dl_step_phase { DL_PHASE_FORWARD, DL_PHASE_BACKWARD, DL_PHASE_END, DL_N_PHASES };

struct dl_training_result {
    bool complete;
    double step_s; /* from the end of the iteration before the last to the end of the last, on all lockstep groups */
    double end_s;  /* of the last iteration */
    double exposed_s[DL_N_CAUSES]; /* mean over lockstep groups; they sum to step_s */
    double item_s[DL_ITEM_W + 1];  /* mean forward, backward and weight gradient of a chunk, if nothing disturbs them */
    double busy_s[DL_N_CAUSES];    /* seconds with at least one such thing going on somewhere */
    double elapsed_s[DL_N_PHASES]; /* work and waiting for the host, on the lockstep group that takes longest */
    uint64_t n_sends, n_exchanges; /* of all iterations */
    double n_over_replicas;        /* of a step, on every rank: exchanges over replicas, if their effort is limited */
    double n_timed_alone;          /* those of them that are not played for their effort */
    bool plays_beyond;             /* more than most_effort is simulated */
};

struct dl_training;
struct dl_training *dl_training_start(const struct dl_training_request *request, struct dl_error *err);
/* As the result will say. */
bool dl_training_plays_beyond(const struct dl_training *t);
/* After the engine has run. An unfinished step: complete is false, and err says who waits for what. */
struct dl_training_result dl_training_result(const struct dl_training *t, struct dl_error *err);
/* Of one stage: the mean over its replicas. */
struct dl_stage_causes {
    double exposed_s[DL_N_CAUSES];
};
struct dl_stage_causes dl_training_stage_causes(const struct dl_training *t, uint32_t stage);
/* What was chosen for a call of a stage, in the first of its groups; false: it was not between replicas, or not made.
 */
bool dl_training_choice(const struct dl_training *t, uint32_t stage, const struct dl_comm *call, struct dl_choice *out);
void dl_training_free(struct dl_training *t);

#endif
