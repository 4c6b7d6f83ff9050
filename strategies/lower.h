/* lower.h - from a model and a stack of strategies to one program per pipeline stage.
 *
 * The model's layers are assigned to positions (stages x chunks, in the order of the model). Each position has a
 * template for the forward, the backward and, where the schedule splits it, the weight gradients of one micro-batch. */
#ifndef DL_STRATEGIES_LOWER_H
#define DL_STRATEGIES_LOWER_H

#include "sim/collective/choose.h"
#include "sim/cost/power.h"
#include "strategies/schedule.h"
#include "strategies/job.h"

struct dl_position {
    size_t first_layer, end_layer;
    size_t first_block; /* its blocks follow each other */
    uint32_t n_blocks;
    bool is_sent_input, is_sent_gradient; /* by other stages */
    struct dl_chunk chunk;
    struct dl_template items[DL_N_TEMPLATES];
};

/* Collectives of ranks in lockstep, on every rank, and the bundles that they are on the network. */
struct dl_played {
    double collectives, bundles;
};

/* Collectives of one kind that may meet others on their links, on every rank: all, and those that are priced without
 * contention all the same. */
struct dl_planned_kind {
    enum dl_cause cause;
    enum dl_op op;
    double n, n_priced;
};

struct dl_lowered {
    const struct dl_layer *layers; /* of the model, as the stages hold them: see dl_dealt_layers */
    uint32_t n_positions;
    struct dl_position *positions;
    struct dl_schedule schedule;
    struct dl_kept_schedule *kept; /* that it belongs to, with the sequences; NULL: none */
    struct dl_program *programs;   /* by stage */
    struct dl_comm *calls;         /* of all programs */
    size_t n_calls, calls_capacity;
    double model_flop[DL_N_FLOP_COUNTS]; /* of a step, without recomputation */
    size_t n_layers_again;               /* that were written as one that is alike was */
    /* By sim/plan. */
    struct dl_plan plan;
    struct dl_played played;       /* of those that may meet others */
    struct dl_planned_kind *kinds; /* of all that may */
    size_t n_kinds;
    double n_timed_alone;             /* collectives of the rest of them and copies, on every rank */
    bool plays_beyond;                /* more than most_played, for links that change */
    double by_ground[DL_N_GROUNDS];   /* seconds of kernels of one micro-batch through all positions */
    struct dl_draw draw[DL_N_BOUNDS]; /* by a step's kernels on one rank of each stage; 0: not known */
    double clock;                     /* of the devices, over their highest; 0: they do not tell what they draw */
};

struct dl_kept_schedules;

struct dl_lower_request {
    struct dl_job *job;
    const struct dl_model *model;
    const struct dl_device *device;
    struct dl_estimator *estimator; /* prices collectives of ranks in lockstep */
    const uint32_t *device_of_rank;
    struct dl_kept_schedules *schedules; /* OPTIONAL: of configurations before; see kept_schedules.h */
    bool layer_by_layer;                 /* as if no two layers were alike; the same comes out (layer_records.h) */
};

enum dl_status dl_lower(const struct dl_lower_request *request, struct dl_arena *arena, struct dl_lowered *out,
                        struct dl_error *err);
/* As an engine gets it; it is valid as long as both are. */
struct dl_step dl_lowered_step(const struct dl_lowered *l, const struct dl_setting *setting);
void dl_lowered_release(struct dl_lowered *l, uint32_t n_stages);

#endif
