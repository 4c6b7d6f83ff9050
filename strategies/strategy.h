/* strategy.h - ways to spread training over devices, as filters over the events of a step: of work, of communication
 * and of memory.
 *
 * The model is a stream of events, layer by layer; each strategy rewrites those that it knows and passes the others on.
 * Filters run in the order of the one table in strategies.c, whatever the order in the strategy file. To add one: one
 * file with a const struct dl_strategy and one line there. */
#ifndef DL_STRATEGIES_STRATEGY_H
#define DL_STRATEGIES_STRATEGY_H

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
    uint32_t chunks;                        /* parts of the model on a stage */
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
    bool is_line;                       /* they are a line; x are then those that need the same head of keys */
    struct dl_operator_layouts layouts; /* of the tensor ranks */
    struct dl_tensor_parts parts;
    enum dl_recompute recompute;
    dl_module_set recompute_modules; /* DL_RECOMPUTE_SELECTIVE: these */
    bool keeps_alternate_gemms;      /* DL_RECOMPUTE_BLOCKS: and attention's results, and sums over tensor ranks */
    uint32_t kept_results;           /* DL_RECOMPUTE_BLOCKS: 1 << enum dl_block_result each */
    uint32_t servers;                /* of parameters, on devices after those of the ranks */
    uint32_t zero_stage;             /* that is run: some software runs stage 2 as it does stage 3 */
    uint32_t zero_asked;             /* as the strategy file has it; 0: no ZeRO */
    enum dl_when sums_when;
    uint32_t shard_ways;             /* neighbouring replicas that cut what they hold; 0: all */
    uint32_t secondary_ways;         /* of these, those that share a second copy of parameters; 0: there is none */
    bool packs_gradients;            /* quantises what it scatters */
    bool first_forward_differs;      /* that of a step: what it gathers is kept nearer */
    bool last_backward_differs;      /* that of a step: gradients go layer by layer, or are waited for, in it alone */
    bool exchanges_beside_work;      /* of gradients or parameters: some go on while ranks work */
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

/* COPIES: gradients of what two stages hold are summed. PARAMETERS: they are gathered for a layer. OPTIMIZER: the
 * update, and what gives its parameters to others. HOLD: before the first step. */
enum dl_pass { DL_FORWARD, DL_BACKWARD, DL_RECOMPUTE, DL_GRADIENT, DL_COPIES, DL_PARAMETERS, DL_OPTIMIZER, DL_HOLD };

/* Parameters that two stages hold. */
struct dl_shared {
    uint32_t stages[2]; /* the earlier one first */
    double parameters_inside, parameters_outside, parameters_expert;
};

/* Between what, in the direction in which the data goes: see workload.h. */
enum dl_hand_over {
    DL_NOT_OVER,
    DL_INTO_PAIR,
    DL_OUT_OF_PAIR,
    DL_TO_EXPERTS,
    DL_FROM_EXPERTS,
    DL_FOR_KEY_HEADS,
    DL_GIVEN_ADAPTER, /* a gradient of what an adapter made */
    DL_MADE_BY_ADAPTER,
};

enum dl_event_kind {
    DL_EV_BATCH,       /* the host gets a micro-batch, as the software says; before the first layer of a stage */
    DL_EV_LAYER,       /* the work of a layer begins */
    DL_EV_LAYER_DONE,  /* and has ended; backward: its gradients are there */
    DL_EV_COMPUTE,     /* one kernel */
    DL_EV_HAND_OVER,   /* a tensor of `elements` goes from operator to operator, which may have it otherwise; `kernel`
                          is that which is given it or has made it */
    DL_EV_COLLECTIVE,  /* `async`: it goes on while others compute, among experts while another micro-batch does as
                          much as the layer. SENDRECV: all send to the next. */
    DL_EV_WAIT,        /* for the collective with that handle, or for all (DL_EVERY_CALL) */
    DL_EV_GRADIENT,    /* the gradients of the stage are complete: `parameters` of them */
    DL_EV_UPDATE,      /* the optimizer's step over `parameters` */
    DL_EV_COPY,        /* `bytes` along `path` for each device; `async`: beside the work of the layer */
    DL_EV_READ,        /* samples of the next micro-batch are on their way to each device: see sink_input.c */
    DL_EV_HOST_UPDATE, /* the optimizer's step on the host: gradients go there, `bytes` of parameters come back */
    DL_EV_ALLOC,       /* of memory for a tensor of the layer, or where there is none, of the stage: see tensors.h */
    DL_EV_FREE,
};

struct dl_event {
    enum dl_event_kind kind;
    enum dl_pass pass;
    enum dl_cause cause;
    const struct dl_layer *layer;
    uint32_t n_after; /* LAYER, LAYER_DONE: so many follow in this pass on this stage; backward, at lower addresses */
    bool first;       /* LAYER, LAYER_DONE: of this pass on this stage */
    bool first_micro; /* LAYER, LAYER_DONE: forward of the first micro-batch of a step, where that differs */
    bool last_micro; /* LAYER_DONE: of the last micro-batch of the step, or of a run of them (dl_schedule_completing) */
    uint32_t block,
        n_blocks; /* LAYER, LAYER_DONE, ALLOC of a block: its number among those of its position; how many those are */
    const struct dl_recomputation *recomputed; /* LAYER, LAYER_DONE, ALLOC, FREE: how blocks are; NULL: they are not */
    uint32_t gathered_ahead;                   /* LAYER: parameters come so many layers before they are used */
    double bucket_bytes; /* LAYER_DONE, FREE: of gradients that are summed together; 0: those of one layer */
    bool is_replayed;    /* a graph has it, so that the host does not launch it; LAYER: by one launch of its graph */
    enum dl_gradient gradient;
    struct dl_kernel kernel;   /* COMPUTE: of the slowest rank, where they differ */
    double mean_work;          /* COMPUTE: of the mean rank over that of the slowest; 0: all do the same */
    enum dl_hand_over over;    /* HAND_OVER */
    bool is_even;              /* HAND_OVER: all experts get as many tokens: the host knows how many */
    double elements;           /* HAND_OVER */
    bool in_pieces;            /* HAND_OVER: its kernel may go beside it in pieces, and tells of it too: */
    double enters, leaves;     /* COMPUTE: elements that are handed over just before it and just after; 0: none */
    enum dl_op op;             /* COLLECTIVE, or COMPUTE with bytes > 0: goes on beside the kernel */
    struct dl_members members; /* with op; two stages: never async */
    bool once;                 /* ALLTOALL among experts: as DL_DISPATCH_TO_NODES; bytes are still those to experts */
    double bytes;              /* with op; COPY, HOST_UPDATE */
    double weights;            /* with once: of a token over its bytes, if all experts were in one node */
    double part;               /* ALLTOALL among experts: of a trip, that these bytes are; 0: all of it */
    double back_fraction;      /* with op HALO: of the bytes, to the rank before; the rest goes to the next */
    enum dl_path path;         /* COPY: between which places; READ: over which they come */
    bool from_nearest;         /* READ: place that holds them, whatever `path` says */
    bool is_late;              /* READ: of this micro-batch, not of the next */
    bool to_host;              /* COPY: to its outer end; else it comes from there */
    bool to_new_memory;        /* COPY: that the host has just got */
    enum dl_cause beside;      /* COMPUTE with op: what the op is, for the time that it takes longer */
    const char *algorithm;     /* COLLECTIVE among replicas; NULL: the fastest */
    struct dl_payload payload; /* COLLECTIVE */
    bool async;                /* COLLECTIVE */
    double parts_host_s;       /* COLLECTIVE: of the host, for tensors of replicas that it copies one by one */
    uint32_t every, turn;      /* COLLECTIVE among replicas: in which steps, see comm.h */
    uint32_t handle;           /* COLLECTIVE, WAIT: chosen by the strategy, the same for both */
    /* GRADIENT, UPDATE, LAYER_DONE: those that tensor parallelism divides, and not; those of experts it divides too. */
    double parameters_inside, parameters_outside, parameters_expert;
    double n_tensors; /* UPDATE: that these are */
    double n_vectors; /* UPDATE: of blocks, and all that they have */
    double vector_parameters;
    enum dl_tensor_kind tensor; /* ALLOC, FREE */
    /* ALLOC: activations of the micro-batch that tensor parallelism divides, and not; bytes for each of the parameters
     * above. All of it and `bytes` are allocated. */
    double inside_bytes, outside_bytes, parameter_bytes;
    const struct dl_shared *shared; /* GRADIENT: of these; NULL: none */
};

/* Parameters are exchanged in two sets, because fewer ranks hold the same experts where these are divided; where they
 * are not, all are in the first. Parameters of an event in a set, and the ranks that hold the same of them. */
double dl_parameters_in(const struct dl_event *ev, const struct dl_setting *setting, bool of_experts);
uint32_t dl_copies(const struct dl_setting *setting, bool of_experts);
/* Those ranks, and those of them among which ZeRO cuts what they hold. */
struct dl_members dl_holders(const struct dl_setting *setting, bool of_experts);
struct dl_members dl_sharers(const struct dl_setting *setting, bool of_experts);
uint32_t dl_shards(const struct dl_setting *setting, bool of_experts); /* how many these are */
/* Those that share a second copy of parameters, which there must be. */
struct dl_members dl_secondary_sharers(const struct dl_setting *setting, bool of_experts);
uint32_t dl_secondary_shards(const struct dl_setting *setting, bool of_experts);

/* Parameters on one rank, in the same two sets: of a layer's that are divided, that are not, and of experts. */
struct dl_on_rank {
    double common, of_experts;
};
struct dl_on_rank dl_on_rank(const struct dl_setting *setting, double inside, double outside, double expert);
/* How many of them it holds, whole or cut by ZeRO. */
double dl_held(const struct dl_setting *setting, struct dl_on_rank of, bool cut);
double dl_layer_held(const struct dl_setting *setting, const struct dl_layer *layer, bool cut);
/* Those of a layer that are trained, whole; trained and frozen. */
double dl_layer_trained(const struct dl_setting *setting, const struct dl_layer *layer);
struct dl_on_rank dl_layer_trained_on_rank(const struct dl_setting *setting, const struct dl_layer *layer);
struct dl_on_rank dl_layer_on_rank(const struct dl_setting *setting, const struct dl_layer *layer);

/* What is below a filter: the next one, or at the end the program being built. */
struct dl_stack;
enum dl_status dl_emit(struct dl_stack *below, const struct dl_event *ev, struct dl_error *err);
const struct dl_setting *dl_stack_setting(const struct dl_stack *below);
bool dl_stack_replays_launches(const struct dl_stack *top);
/* The private memory of the strategy above, zeroed before the first event; and what it notes of a layer. */
void *dl_stack_state(struct dl_stack *below);
double *dl_stack_note(struct dl_stack *below, const struct dl_layer *layer);
/* A piece of a layer's work as the events that it is: what it is given is handed over, the kernel is executed, what it
 * makes is handed over. Or one by one. */
enum dl_status dl_emit_given(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                             const struct dl_layer *layer, struct dl_error *err);
enum dl_status dl_emit_kernel(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                              const struct dl_layer *layer, struct dl_error *err);
enum dl_status dl_emit_made(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err);
enum dl_status dl_emit_work(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err);

/* A kernel that only moves bytes of memory, for an exchange of gradients or parameters. */
enum dl_status dl_emit_pass(struct dl_stack *below, const char *name, double bytes, enum dl_pass pass,
                            struct dl_error *err);

/* What a strategy is asked whether it can do. */
struct dl_check {
    const char *where; /* its entry in the stack */
    const struct dl_setting *setting;
    const struct dl_model *model;
    const struct dl_stack *stack; /* of all strategies */
    struct dl_arena *arena;       /* for the places of errors */
};

/* The place of a key of the entry. */
const char *dl_check_place(const struct dl_check *check, const char *key);

/* Refuse an entry's ways that do not divide `whole`, which is so many of `what`; the nearest that do are named. The
 * same for parts by another key. */
enum dl_status dl_check_parts(const struct dl_check *check, const char *key, uint32_t parts, double whole,
                              const char *what, struct dl_error *err);
enum dl_status dl_check_ways(const struct dl_check *check, uint32_t ways, double whole, const char *what,
                             struct dl_error *err);

/* Refuse parts by a key that do not divide the heads of a layer: of attention, and those of keys and values, which may
 * be fewer; half a head is nothing. These may be told with their copies. */
enum dl_status dl_check_heads(const struct dl_check *check, const char *key, uint32_t parts,
                              const struct dl_layer *layer, struct dl_error *err);

const struct dl_kernel *dl_check_find_attention(const struct dl_check *check);

/* How another entry of a strategy makes a step need less memory: see sim/memory/remedies.h. */
struct dl_relief {
    uint32_t rank;    /* the lower, the less it costs, and the earlier it is tried */
    uint32_t n_steps; /* from weak to strong */
    /* Put a step, from 0 on, into the entry, of which a new one has the name alone. Returns it in words (arena memory),
     * or NULL where nothing changes. NULL in place of the function: twice, four times, ... the ways of the axis. */
    const char *(*change)(json_t *entry, const struct dl_setting *setting, uint32_t step, struct dl_arena *arena);
    enum dl_axis axis;
};

enum { DL_MOST_PLACES = 8, DL_OWN_PLACE = DL_MOST_PLACES };

struct dl_strategy {
    const char *name, *doc;
    bool sums_gradients;           /* over the replicas: without such a one there must be a single replica */
    bool needs_host;               /* of the devices, with a link to them: it copies */
    bool replays_launches;         /* some are recorded once */
    bool builds_model;             /* it says what is trained: workloads are built for it */
    const struct dl_brought *axes; /* OPTIONAL: that it brings, with their ways */
    size_t n_axes;
    /* OPTIONAL: the host waits at each launch until the device has done it, and that takes so long beside the kernel.
     */
    double (*launch_wait_s)(const void *options);
    const struct dl_field *fields; /* OPTIONAL: keys of its entry in "stack" besides "name" */
    size_t n_fields, options_size;
    size_t state_size;    /* of what it remembers from event to event; 0: nothing */
    bool notes_layers;    /* it keeps a figure of each layer, as from its forward to its backward */
    const void *defaults; /* REQUIRED where options_size > 0 */
    /* OPTIONAL: tell the others what this entry means for them (its ways, for example). */
    enum dl_status (*claim)(const void *options, struct dl_json entry, struct dl_setting *setting,
                            struct dl_error *err);
    /* OPTIONAL: replicas as a number of several digits, so that groups of them can be along each: fill in how many
     * values each has, at most DL_MOST_PEERS, and return how many there are; 0: that cannot be. */
    uint32_t (*split_replicas)(const void *options, uint32_t replicas, uint32_t *parts);
    /* OPTIONAL: refuse what cannot be done with this model, now that all ways are known. */
    enum dl_status (*check)(const void *options, const struct dl_check *what, struct dl_error *err);
    /* OPTIONAL: refuse what cannot be done with so many blocks in the longest part of the model. */
    enum dl_status (*check_blocks)(const void *options, const struct dl_check *what, uint32_t n_blocks,
                                   struct dl_error *err);
    /* OPTIONAL: NULL passes everything on. */
    enum dl_status (*rewrite)(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err);
    /* OPTIONAL: what a layer's place means for what it makes of the layer, beyond its work and sizes, its pass, and
     * whether it is in the last micro-batch: a number below DL_MOST_PLACES, the same for places that mean the same.
     * DL_OWN_PLACE: its number, those around it or what the strategy remembers of others matters too. Equal layers in
     * equal places go through the stack once. The event is LAYER, with last_micro; its pass is HOLD or OPTIMIZER for
     * memory of the stage. NULL, with rewrite: each has its own. */
    uint32_t (*place)(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting);
    /* OPTIONAL: say what tells its entry from others, in the head of a report; nothing that is usual. */
    void (*tell)(const void *options, void (*say)(void *user, const char *words), void *user);
    const struct dl_relief *relief; /* OPTIONAL: NULL: it has none */
};
/* For `place`: all mean the same. */
uint32_t dl_any_place(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting);
size_t dl_strategy_count(void);
const struct dl_strategy *dl_strategy_get(size_t index);

#endif
