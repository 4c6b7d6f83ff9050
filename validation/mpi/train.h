/* train.h - one rank of a real training: which part of the model it holds, its teams, and what it does in a step.
 *
 * The strategy file and the workload file are dlsim's, read by dlsim's own readers; the order of work on a pipeline
 * stage is dlsim's own schedule. A layer here is a layer there, so that positions hold the same layers in both.
 *
 * The rule to remember: losses do not depend on the strategy, but for rounding and for lossy exchanges. So parameters
 * are drawn by (seed, layer, unit) as if nobody cut them, samples by (seed, number of the sample), and every gradient
 * is a sum over all samples of the step. */
#ifndef DL_MPI_TRAIN_H
#define DL_MPI_TRAIN_H

#include "sim/app/options.h"
#include "sim/core/random.h"
#include "strategies/lower.h"
#include "strategies/job.h"
#include "validation/mpi/collectives/collectives.h"
#include "validation/mpi/timeline.h"

struct dl_train;
struct dl_unit;

/* ---- what the model is made of ---- */

/* What a unit keeps of a micro-batch from its forward to its weight gradients. It owns all of it. */
struct dl_memo {
    struct dl_rows given;    /* forward: what it was given */
    struct dl_rows gradient; /* backward: the gradient of what it made */
    dl_real *more;           /* its own; dl_free */
    size_t *counts;          /* its own; dl_free */
};

/* One step of a layer. Backward is cut in two, as zero-bubble schedules do. A unit owns what it is given, and either
 * keeps it in its memo or frees it; what it returns is the caller's. */
struct dl_unit_kind {
    const char *name;
    struct dl_rows (*forward)(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x);
    struct dl_rows (*backward)(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy);
    void (*weights)(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo); /* OPTIONAL: no parameters */
};

/* Ranks that hold the same parameters of a unit, of which each has a part of the gradient. */
enum dl_partial { DL_WHOLE_GRADIENT, DL_SUM_OVER_TENSOR, DL_SUM_OVER_COLUMN };

/* Parameters that all replicas hold, and those of experts, which fewer hold. */
enum dl_set { DL_SET_COMMON, DL_SET_EXPERTS, DL_N_SETS };

struct dl_unit {
    const struct dl_unit_kind *kind;
    uint64_t id;                /* of its random numbers */
    size_t inputs, outputs;     /* of the whole parameters: rows and columns */
    struct dl_range rows, cols; /* of them that are here; the parameters are this block */
    double scale;               /* of the parameters at the start; 0: they are 0 */
    size_t n_parameters;
    enum dl_set set;
    enum dl_partial partial;
    dl_real *values, *gradients; /* in a bucket; NULL while others keep them */
    bool is_first;               /* nobody needs the gradient of its input */
    size_t other;                /* join: the unit where the two ways parted; back to it the layer's memos */
    const void *more;            /* the kind's own */
};

struct dl_real_layer {
    const struct dl_layer *is; /* in dlsim's model */
    struct dl_unit *units;
    size_t n_units, capacity;
    uint32_t n_backwards; /* left in this step, until its gradients are complete */
};

/* A kind of model: reads the workload and says which units each of dlsim's layers has. */
struct dl_model_kind {
    const char *name; /* as "kind" in workload files */
    /* REQUIRED: refuse what is not trained; add the units of the layers that are here. */
    enum dl_status (*build)(struct dl_train *t, struct dl_error *err);
    /* REQUIRED: what a sample is, and what it should become. `input` has as many values as a sample has inputs. */
    void (*sample)(const struct dl_train *t, uint64_t sample, dl_real *input, uint32_t *target);
};
extern const struct dl_model_kind dl_model_mlp, dl_model_transformer, dl_model_convnet;
const struct dl_model_kind *dl_find_model(const char *name);

/* ---- what is exchanged together ---- */

struct dl_bucket {
    enum dl_set set;
    size_t n;
    dl_real *values, *gradients;
    struct dl_range own;                 /* updated by this rank; all unless cut (zero) */
    dl_real *own_values, *own_gradients; /* where only the own part is kept */
    dl_real *moments[2];                 /* of the optimizer, for the own part */
    bool asked;                          /* it is, or will be, gathered (zero) */
    dl_real *error;                      /* what a lossy exchange has not sent */
    uint32_t first_layer, n_layers;      /* of t->stage_layers */
};

/* ---- strategies ---- */

/* What a strategy of the file does to a real step; a strategy without an entry in the table is refused. */
struct dl_real_strategy {
    const char *name; /* as in the stack of strategy files */
    /* OPTIONAL: refuse what is not trained, say how the rest is done; before the layers are made. */
    enum dl_status (*begin)(struct dl_train *t, const struct dl_stack *level, struct dl_error *err);
    /* OPTIONAL: the buckets are there. */
    void (*prepare)(struct dl_train *t);
    /* OPTIONAL: the parameters of a layer are needed, or no longer. */
    void (*need)(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass);
    void (*leave)(struct dl_train *t, struct dl_real_layer *layer, enum dl_item_kind pass);
    /* OPTIONAL: a backward through a layer is done. */
    void (*layer_done)(struct dl_train *t, struct dl_real_layer *layer);
    /* OPTIONAL: all backwards are done; from the bottom of the stack to its top. */
    void (*sum)(struct dl_train *t);
    /* OPTIONAL: the own parts have been updated. */
    void (*updated)(struct dl_train *t);
};
extern const struct dl_real_strategy dl_real_pipeline, dl_real_recompute, dl_real_tensor, dl_real_expert, dl_real_data,
    dl_real_zero, dl_real_quantized_allreduce;
const struct dl_real_strategy *dl_find_real_strategy(const char *name);

/* How gradients of a bucket are summed over replicas; the lowest strategy of the stack that has a say sets it. */
typedef void (*dl_exchange_fn)(struct dl_train *t, struct dl_bucket *bucket, const struct dl_team *team);

/* How a linear unit multiplies: alone, or with others (SUMMA). All have the shapes of the local blocks. */
struct dl_product_way {
    void (*forward)(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows y);
    void (*input_gradient)(struct dl_train *t, const struct dl_unit *u, struct dl_rows dy, struct dl_rows dx);
    void (*weight_gradient)(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows dy);
};
extern const struct dl_product_way dl_product_alone, dl_product_summa;

/* ---- everything ---- */

struct dl_train_options {
    const char *strategy, *workload, *topo, *algorithm, *json, *trace, *expect;
    uint64_t steps, seed, devices;
    double learning_rate, tolerance, converges;
    bool check_gradients, spins;
    struct dl_texts set;
};

struct dl_train {
    const struct dl_train_options *options;
    struct dl_arena *arena;
    /* Read from the files. */
    struct dl_json strategy_doc, software_doc, workload_doc;
    struct dl_job job;
    struct dl_software software;
    struct dl_model model;
    struct dl_schedule schedule;
    struct dl_position *positions;
    const struct dl_setting *s; /* of the job */
    /* Who this is. */
    int rank, n_ranks;
    uint32_t at[DL_N_AXES];
    MPI_Comm world, workers;
    struct dl_team tensor, replicas[DL_N_SETS], row, column, experts;
    struct dl_team beside[DL_N_SETS]; /* the replicas, for whoever exchanges beside the work */
    bool is_server, sequence, summa;
    /* What it holds. */
    const struct dl_model_kind *kind;
    struct dl_real_layer *layers;        /* of the model; those that are elsewhere have no units */
    struct dl_real_layer **stage_layers; /* here, in the order in which their gradients come */
    uint32_t n_stage_layers;
    size_t sample_inputs, rows_per_sample, n_classes;
    dl_real *inputs;     /* of all micro-batches of all steps: what loads data is not timed */
    uint32_t *targets;   /* by row */
    bool input_is_whole; /* all ranks of the first position begin with all rows */
    struct dl_bucket *buckets;
    size_t n_buckets, buckets_capacity;
    /* What it does. */
    const struct dl_product_way *product;
    const struct dl_sum_algorithm *algorithm;    /* of all sums, but for */
    const struct dl_sum_algorithm *of_gradients; /* those over replicas */
    dl_exchange_fn exchange;
    enum dl_op exchange_op;
    const struct dl_real_strategy *strategies[16];
    const struct dl_stack *levels[16]; /* their entries in the file */
    size_t n_strategies;
    struct dl_bucket_queue *queue; /* exchanges beside the work; NULL: they are waited for */
    bool overlap;                  /* gradients are summed during the last backward */
    bool by_layer;                 /* each layer is a bucket (zero's stage 3) */
    unsigned lossy_bits;           /* of a gradient on its way */
    double lossy_ratio;            /* of gradients that are sent at all */
    bool keeps_error;              /* what was not sent is sent the next time */
    gsl_rng *lossy_random;
    double bucket_bytes;                       /* 0: with overlap each layer, else all */
    double gathers_ahead;                      /* stage 3: layers; less than 0: all that follow */
    const struct dl_recomputation *recomputed; /* NULL: no blocks are */
    /* A step. */
    uint64_t step;
    uint32_t micro;          /* at work */
    bool again;              /* forward is recomputed: no loss */
    double n_visitors;       /* tokens that came to the experts here */
    double loss;             /* this rank's share of the mean over samples */
    struct dl_memo ***memos; /* [chunk * micros + micro][layer of the position][unit]; one more for recomputation */
    struct dl_sent *sent;    /* on their way to other positions */
    size_t n_sent, sent_capacity;
    struct dl_rank_timeline timeline;
};

/* inputs.c: read the files as dlsim does, and refuse what is not trained. */
enum dl_status dl_train_read(struct dl_train *t, struct dl_error *err);
/* The position that is a chunk of this stage. */
const struct dl_position *dl_position_of(const struct dl_train *t, uint32_t chunk);
/* The value of an option of a strategy's entry, or its default. */
double dl_option_number(const struct dl_stack *level, const char *key);
/* world.c: coordinates and teams. */
enum dl_status dl_train_join(struct dl_train *t, struct dl_error *err);
/* The teams are given up, if there are any. */
void dl_train_part(struct dl_train *t);
/* layers/units.c */
void dl_draw_samples(struct dl_train *t);
struct dl_unit *dl_add_unit(struct dl_real_layer *layer, const struct dl_unit_kind *kind);
/* buckets.c: buckets of the layers of the stage, with parameters as they are at the start. */
void dl_train_allocate(struct dl_train *t);
/* Units find their parameters where the bucket has them now. */
void dl_bucket_point(struct dl_train *t, const struct dl_bucket *b);
/* Of the own part, wherever it is. */
dl_real *dl_own_gradients(const struct dl_bucket *b);
dl_real *dl_own_values(const struct dl_bucket *b);
void dl_train_release(struct dl_train *t);
/* step.c: one step; t->loss is then this rank's share of the mean over all samples. */
void dl_train_step(struct dl_train *t);
/* All but the sums of gradients and the update. */
void dl_train_items(struct dl_train *t);
void dl_train_prepare_memos(struct dl_train *t);
/* gradients.c: the most relative error of gradients, against differences of losses; on one rank. */
double dl_check_gradients(struct dl_train *t);
/* optimizer.c: over the own part of every bucket. */
enum dl_status dl_optimizer_check(const struct dl_train *t, struct dl_error *err);
void dl_optimizer_update(struct dl_train *t);
/* strategies/data.c: refuse, beside another way to exchange, buckets that only limit what goes at once. */
enum dl_status dl_check_buckets(const struct dl_train *t, const struct dl_stack *level, struct dl_error *err);
/* The replicas, as those that exchange their buckets reach them. */
const struct dl_team *dl_exchange_team(const struct dl_train *t, enum dl_set set);
/* Sum the gradients of a bucket now, and remember when. */
void dl_exchange_now(struct dl_train *t, struct dl_bucket *bucket);
/* For the trace: an exchange of this bucket that began then and has ended. */
void dl_note_exchange(struct dl_train *t, const struct dl_bucket *bucket, enum dl_op op, double from_s);
/* strategies/pipeline.c: what flows between positions. */
void dl_pipeline_send(struct dl_train *t, uint32_t item, uint32_t to_position, struct dl_rows rows);
struct dl_rows dl_pipeline_receive(struct dl_train *t, uint32_t item, uint32_t from_position);
void dl_pipeline_finish(struct dl_train *t);
/* report.c: the seconds of all ranks as JSON, and the last step as dlsim's trace. */
struct dl_losses {
    double *list, *step_s;
    size_t n;
};
/* Of so many steps, those that warm up and are in no time: the first, unless it is the only one. */
static inline size_t dl_warm_ups(size_t n_steps) { return n_steps > 1; }
enum dl_status dl_report_json(struct dl_train *t, const struct dl_losses *losses, struct dl_error *err);
enum dl_status dl_report_trace(struct dl_train *t, struct dl_error *err);

#endif
