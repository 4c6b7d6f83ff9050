/* strategy.h - ways to spread training over devices, as filters over the events of a step.
 *
 * The model is a stream of events, layer by layer; each strategy rewrites those that it knows and passes the others on.
 * Filters run in the order of the one table in strategies.c, whatever the order in the strategy file. To add one: one
 * file with a const struct dl_strategy and one line there. */
#ifndef DL_STRATEGIES_STRATEGY_H
#define DL_STRATEGIES_STRATEGY_H

#include "sim/collective/collective.h"
#include "sim/cost/device.h"
#include "sim/program/program.h"
#include "strategies/software.h"

enum dl_axis { DL_AXIS_TENSOR, DL_AXIS_DATA, DL_AXIS_PIPELINE, DL_N_AXES };

enum dl_recompute { DL_RECOMPUTE_NOTHING, DL_RECOMPUTE_SELECTIVE, DL_RECOMPUTE_BLOCKS };

/* What all strategies of a run agree on. */
struct dl_setting {
    uint32_t ways[DL_N_AXES];
    enum dl_axis order[DL_N_AXES]; /* innermost first */
    uint32_t chunks;               /* parts of the model on a stage */
    const char *schedule;
    const char *pipeline_where, *batch_where; /* in the strategy file, for refusals; NULL: not there */
    double global_batch, microbatch;
    uint32_t micros; /* micro-batches of one replica */
    enum dl_precision precision;
    bool sequence_parallel;
    enum dl_recompute recompute;
    uint32_t zero_stage;
    bool overlaps_gradients; /* exchanged layer by layer during the last backward */
    double optimizer_bytes_per_parameter, optimizer_moved_bytes_per_parameter;
    const struct dl_software *software;
};

enum dl_pass { DL_FORWARD, DL_BACKWARD, DL_RECOMPUTE, DL_GRADIENT, DL_PARAMETERS, DL_OPTIMIZER };

enum dl_event_kind {
    DL_EV_LAYER,      /* the work of a layer begins */
    DL_EV_LAYER_DONE, /* and has ended; backward: its gradients are there */
    DL_EV_COMPUTE,    /* one kernel */
    DL_EV_MARK,       /* whole data becomes cut, or the other way round: see workload.h */
    DL_EV_COLLECTIVE, /* over an axis; `async`: it goes on while others compute */
    DL_EV_WAIT,       /* for the collective with that handle, or for all (DL_EVERY_CALL) */
    DL_EV_GRADIENT,   /* the gradients of the stage are complete: `parameters` of them */
    DL_EV_UPDATE,     /* the optimizer's step over `parameters` */
};

struct dl_event {
    enum dl_event_kind kind;
    enum dl_pass pass;
    enum dl_cause cause;
    const struct dl_layer *layer;
    const struct dl_layer *next; /* LAYER: the one after it in this pass on this stage; NULL: none */
    bool first;                  /* LAYER: of this pass on this stage */
    bool last_micro;             /* LAYER_DONE: of the last micro-batch of the step */
    enum dl_gradient gradient;
    struct dl_kernel kernel;   /* COMPUTE */
    enum dl_work_kind mark;    /* MARK */
    double elements;           /* MARK */
    enum dl_op op;             /* COLLECTIVE */
    enum dl_axis axis;         /* COLLECTIVE */
    double bytes;              /* COLLECTIVE */
    struct dl_payload payload; /* COLLECTIVE */
    bool async;                /* COLLECTIVE */
    uint32_t handle;           /* COLLECTIVE, WAIT: chosen by the strategy, the same for both */
    /* GRADIENT, UPDATE, LAYER_DONE: those that tensor parallelism divides, and not. */
    double parameters_inside, parameters_outside;
};

/* What is below a filter: the next one, or at the end the program being built. */
struct dl_stack;
enum dl_status dl_emit(struct dl_stack *below, const struct dl_event *ev, struct dl_error *err);
const struct dl_setting *dl_stack_setting(const struct dl_stack *below);
/* A piece of a layer's work as the event that it is. */
enum dl_status dl_emit_work(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err);

struct dl_strategy {
    const char *name, *doc;
    const struct dl_field *fields; /* REQUIRED: keys of its entry in "stack" besides "name" */
    size_t n_fields, options_size;
    const void *defaults;
    /* OPTIONAL: tell the others what this entry means for them (its ways, for example). */
    enum dl_status (*claim)(const void *options, struct dl_json entry, struct dl_setting *setting,
                            struct dl_error *err);
    /* OPTIONAL: NULL passes everything on. */
    enum dl_status (*rewrite)(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err);
};
size_t dl_strategy_count(void);
const struct dl_strategy *dl_strategy_get(size_t index);

#endif
