/* setting.h - what all strategies of a run agree on: ranks and their axes, precisions, what is recomputed, sharded and
 * sent. Strategies write it by `claim`; after that it does not change. */
#ifndef DL_STRATEGIES_SETTING_H
#define DL_STRATEGIES_SETTING_H

#include "sim/collective/collective.h"
#include "sim/cost/device.h"
#include "sim/program/program.h"
#include "strategies/layout.h"
#include "strategies/software.h"

enum dl_axis { DL_AXIS_TENSOR, DL_AXIS_CONTEXT, DL_AXIS_DATA, DL_AXIS_PIPELINE, DL_N_AXES };
enum { DL_GRID_DIMENSIONS = 3, DL_MOST_BROUGHT = 4, DL_MOST_AXES = DL_N_AXES + DL_MOST_BROUGHT, DL_MOST_PEERS = 12 };

/* The digits of a rank. Tensor ranks may be a grid of x, y and z. Replicas that follow each other share the experts;
 * so many of these sets that follow each other share the second copy of parameters, if ZeRO has one, and so many of
 * those the shards; the rest are copies of these. After these come the digits of axes that strategies bring, and those
 * by which a strategy tells replicas apart. */
enum {
    DL_DIGIT_X,
    DL_DIGIT_Y,
    DL_DIGIT_Z,
    DL_DIGIT_CONTEXT,
    DL_DIGIT_EXPERT,
    DL_DIGIT_SECONDARY,
    DL_DIGIT_SHARD,
    DL_DIGIT_COPY,
    DL_DIGIT_STAGE,
    DL_N_DIGITS,
};

/* Ranks along an axis, or along a part of one. */
enum {
    DL_ALONG_X = 1 << DL_DIGIT_X,
    DL_ALONG_Y = 1 << DL_DIGIT_Y,
    DL_ALONG_Z = 1 << DL_DIGIT_Z,
    DL_ALONG_TENSOR = DL_ALONG_X | DL_ALONG_Y | DL_ALONG_Z,
    DL_ALONG_CONTEXT = 1 << DL_DIGIT_CONTEXT,
    DL_ALONG_EXPERTS = 1 << DL_DIGIT_EXPERT,
    DL_ALONG_SECONDARY = 1 << DL_DIGIT_SECONDARY,
    DL_ALONG_SHARDS = DL_ALONG_SECONDARY | 1 << DL_DIGIT_SHARD,
    DL_ALONG_COPIES = 1 << DL_DIGIT_COPY,
    DL_ALONG_DATA = DL_ALONG_EXPERTS | DL_ALONG_SHARDS | DL_ALONG_COPIES,
    DL_ALONG_PIPELINE = 1 << DL_DIGIT_STAGE,
    DL_IN_LOCKSTEP = DL_ALONG_TENSOR | DL_ALONG_CONTEXT,
};

enum dl_recompute { DL_RECOMPUTE_NOTHING, DL_RECOMPUTE_SELECTIVE, DL_RECOMPUTE_BLOCKS };

/* How ranks that execute kernels together divide what there is. */
struct dl_operator_layouts {
    struct dl_layout weights, others; /* parameters of layers cut by columns or rows, and of experts; others */
    struct dl_layout inside, outside; /* activations there, and the work on them */
    struct dl_layout used, made;      /* what a pair of products, attention or experts take, and what they make of it */
    struct dl_layout looked_up;       /* what a look-up makes */
    struct dl_layout keys;            /* of attention, with values; `used` are its queries */
};

/* Into how many parts; ranks beyond as many hold or do the same. From the layouts, by dl_setting_number_ranks. */
struct dl_tensor_parts {
    uint32_t weights;         /* of layers cut by columns or rows, and of experts */
    uint32_t others;          /* parameters outside */
    uint32_t inside, outside; /* activations there, and the work on them */
    uint32_t heads;           /* the part of `inside` that is by heads or columns; the rest is by samples */
};

/* How layers are dealt to positions: blocks alone are counted, embedding and head count as a block each, by time, or
 * by the weights of products. */
enum dl_split { DL_SPLIT_EVEN, DL_SPLIT_COUNT_ENDS, DL_SPLIT_BY_COST, DL_SPLIT_BY_WEIGHTS };

/* When the gradients of replicas are summed, as the strategy says it. */
enum dl_when { DL_WHEN_AS_SOFTWARE = -1, DL_WHEN_END, DL_WHEN_MICRO };

/* What all strategies of a run agree on. */
struct dl_setting {
    uint32_t ways[DL_MOST_AXES]; /* the usual axes', then those of the axes that strategies bring */
    const struct dl_brought *brought[DL_MOST_BROUGHT];
    uint32_t n_brought;
    uint32_t peers[DL_MOST_PEERS], n_peers; /* values of the digits by which a strategy tells replicas apart */
    enum dl_axis order[DL_MOST_AXES];       /* innermost first */
    struct dl_ranks ranks;                  /* by dl_setting_number_ranks */
    uint32_t expert_ways;                   /* of the data axis; 1: every replica has all experts */
    dl_digits experts_over;                 /* of ranks in lockstep that have experts of their own each; 0: none */
    uint32_t expert_tensor_ways;            /* neighbouring tensor ranks that divide each expert then; 0: one */
    uint32_t chunks;                        /* parts of the model on a stage */
    uint32_t group;                         /* micro-batches that pass a chunk in a row; 0: as the schedule has it */
    const char *schedule;
    enum dl_split split;
    bool embedding_alone, head_alone; /* at a position of their own */
    struct dl_int_list blocks_at;     /* by position, instead of a split; n 0: not given */
    /* In the strategy file, for refusals; NULL: not there. */
    const char *pipeline_where, *batch_where;
    double global_batch, microbatch;
    uint32_t micros; /* micro-batches of one replica */
    enum dl_precision precision;
    uint32_t wide_first_blocks, wide_last_blocks; /* whose products stay in bf16 */
    /* In the strategy file, for refusals. */
    const char *wide_first_where, *wide_last_where, *precision_where;
    bool is_pure;                       /* parameters are as narrow as products; else they stay in fp32 */
    uint32_t grid[DL_GRID_DIMENSIONS];  /* of the tensor ranks: x, y, z */
    bool is_line;                       /* they are a line, of which x and y are the inner digits */
    uint32_t key_copies;                /* neighbours in a line that need the same head of keys; 0: one */
    dl_digits along_copies;             /* the digits in which these differ */
    struct dl_operator_layouts layouts; /* of the tensor ranks */
    struct dl_tensor_parts parts;
    enum dl_recompute recompute;
    dl_module_set recompute_modules; /* DL_RECOMPUTE_SELECTIVE: these */
    bool keeps_alternate_gemms;      /* DL_RECOMPUTE_BLOCKS: and attention's results, and sums over tensor ranks */
    uint32_t kept_results;           /* DL_RECOMPUTE_BLOCKS: 1 << enum dl_block_result each */
    bool kept_before_bias;           /* these, as products make them */
    uint32_t servers;                /* of parameters, on devices after those of the ranks */
    uint32_t zero_stage;             /* that is run: some software runs stage 2 as it does stage 3 */
    uint32_t zero_asked;             /* as the strategy file has it; 0: no ZeRO */
    enum dl_when sums_when;
    uint32_t shard_ways;             /* neighbouring replicas that cut what they hold; 0: all */
    uint32_t secondary_ways;         /* of these, those that share a second copy of parameters; 0: there is none */
    bool packs_gradients;            /* quantises what it scatters */
    bool first_forward_differs;      /* that of a step: what it gathers is kept nearer */
    bool last_backward_differs;      /* that of a step: gradients go layer by layer, or are waited for, in it
                                        alone, or are added to others in all but it */
    bool exchanges_beside_work;      /* of gradients or parameters: some go on while ranks work */
    bool sums_beside_work;           /* those of gradients do */
    double bucket_bytes;             /* of gradients that are summed together; 0: as `data` does if it is absent */
    const char *optimizer;           /* as a strategy file names it; NULL: what is usual for the model */
    const char *optimizer_operation; /* that its kernel is */
    double optimizer_state_bytes, optimizer_moved_bytes; /* per parameter, of one that is mixed */
    bool optimizer_takes_roots;                          /* of all second moments, before it divides by them */
    bool narrow_moments;                                 /* two bytes each */
    struct dl_adapters adapters;                         /* that are trained alone; rank 0: all of the model is */
    bool adapters_alltoall;                              /* see strategies/lora.c */
    bool narrow_weights;                                 /* frozen ones of blocks are as narrow as operands */
    bool streams_weights; /* parameters, their gradients and the optimizer's states are outside of the devices */
    bool reads_ahead;     /* samples of a step, while the one before it is executed */
    bool sums_on_the_way; /* and the network sums the gradients of replicas as they go there */
    const struct dl_software *software;
};

/* An axis that a strategy brings, in its entry of the table: a usual one, or one of its own, along which ranks go in
 * lockstep, divide each sample and hold the same parameters. */
struct dl_brought {
    const char *name;  /* of its own, as "order" has it; NULL: it is a usual one */
    enum dl_axis axis; /* that one */
    size_t ways;       /* where its options have them, an int64_t */
};

static inline uint32_t dl_n_stages(const struct dl_setting *s) { return s->ways[DL_AXIS_PIPELINE]; }
static inline uint32_t dl_n_replicas(const struct dl_setting *s) { return s->ways[DL_AXIS_DATA]; }

/* Axes are numbered: the usual ones, then those that strategies bring. */
static inline uint32_t dl_n_axes(const struct dl_setting *s) { return DL_N_AXES + s->n_brought; }
const char *dl_axis_name(const struct dl_setting *s, uint32_t axis);
const char *dl_usual_axis_name(enum dl_axis axis);
/* The i-th as they count by default, innermost first: those of ranks in lockstep, data, pipeline. */
enum dl_axis dl_axis_by_default(const struct dl_setting *s, uint32_t i);

/* The digits of an axis; those of all that strategies bring, and of the one; of ranks in lockstep; of replicas, and of
 * the i-th by which a strategy tells them apart. */
dl_digits dl_along_axis(const struct dl_setting *s, enum dl_axis axis);
dl_digits dl_along_brought(const struct dl_setting *s);
dl_digits dl_along_own(const struct dl_setting *s, const struct dl_brought *axis);
dl_digits dl_in_lockstep(const struct dl_setting *s);
dl_digits dl_along_replicas(const struct dl_setting *s);
dl_digits dl_along_peer(const struct dl_setting *s, uint32_t i);
/* Of ranks that have different experts, to which tokens travel; and how many these are. */
dl_digits dl_along_experts(const struct dl_setting *s);
uint32_t dl_n_expert_ranks(const struct dl_setting *s);
/* Of tensor ranks that divide each expert, where others have experts of their own. */
dl_digits dl_along_expert_tensor(const struct dl_setting *s);
/* Ranks in lockstep that have experts of their own, by their ways. */
uint64_t dl_expert_ways_in_lockstep(const struct dl_setting *s);
/* Into how many parts experts are divided beside those of the tensor ranks, which divide all weights. */
uint32_t dl_expert_parts(const struct dl_setting *s);

/* From ways, order, grid, experts, shards and peers; and into how many parts the layouts divide. */
void dl_setting_number_ranks(struct dl_setting *setting);

/* As strategy files have it. */
const char *dl_recompute_name(enum dl_recompute recompute);
/* As the key `keeps` has it. */
const char *dl_recompute_keeps_name(const struct dl_setting *s);

/* Products are narrower than the parameters. */
bool dl_is_mixed(const struct dl_setting *setting);
/* Activations have the width of fp32. */
bool dl_is_wide(const struct dl_setting *setting);
struct dl_numbers dl_numbers_of(const struct dl_setting *setting, bool in_wide_block); /* for rules of kernels */
/* How operands of the layer's products are quantised; NULL: they are not, or at no cost. */
const struct dl_operand_rule *dl_operands_in(const struct dl_setting *setting, const struct dl_layer *layer);

/* Per parameter: what the optimizer keeps, and what it reads or writes in a step. */
double dl_optimizer_state_bytes(const struct dl_setting *setting);
double dl_optimizer_moved_bytes(const struct dl_setting *setting);

/* Of a frozen parameter of the layer. */
double dl_frozen_bytes(const struct dl_setting *setting, const struct dl_layer *layer);
/* Of the copies that products take of a weight of the layer; and of a parameter with these. */
double dl_weight_copy_bytes(const struct dl_setting *setting, const struct dl_layer *layer);
double dl_held_bytes(const struct dl_setting *setting, const struct dl_layer *layer);

/* Bytes of a gradient, as accumulated and exchanged: never fewer than those of what it is made of. */
double dl_gradient_bytes(const struct dl_setting *setting);
/* What accumulates of gradients over micro-batches: SHARDS, CHUNK or WHOLE; below stage 2 of ZeRO whole gradients. */
enum dl_accumulates dl_accumulated(const struct dl_setting *setting);
/* Whether a rank keeps shards of them, be it from every micro-batch or from every run of micro-batches of a chunk. */
bool dl_keeps_shards(const struct dl_setting *setting);

/* How stages send, and whether the host waits for the device at each send and receive: as the software says of such
 * stages. */
enum dl_sends dl_sends_of(const struct dl_setting *setting);
bool dl_drains_at_sends(const struct dl_setting *setting);
/* Whether each tensor rank sends a part of what all of them have; and its shape before it. */
bool dl_sends_parts(const struct dl_setting *setting);
bool dl_sends_shapes(const struct dl_setting *setting);

#endif
