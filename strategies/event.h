/* event.h - the events that a step is made of, and how a strategy passes them on to those below it. An event is
 * complete when it is emitted: fields that its kind does not name are 0. */
#ifndef DL_STRATEGIES_EVENT_H
#define DL_STRATEGIES_EVENT_H

#include "strategies/setting.h"

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
    DL_ROW_SUMS,
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

/* When updated parameters of a chunk may be gathered: in its first forward of a step; in that of the stage's chunk
 * before; or after the update, since a later stage of a pipeline begins with waiting for its input. */
enum dl_gather_at { DL_GATHER_AT_FORWARD, DL_GATHER_AT_PREVIOUS_CHUNK, DL_GATHER_AT_UPDATE };

struct dl_chunk {
    const struct dl_layer *layers;
    size_t n_layers;
    enum dl_gather_at gather_at;
    const struct dl_chunk *next; /* of its stage; NULL: none */
};

struct dl_event {
    enum dl_event_kind kind;
    enum dl_pass pass;
    enum dl_cause cause;
    const struct dl_layer *layer;
    uint32_t n_after; /* LAYER, LAYER_DONE: so many follow in this pass on this stage; backward, at lower addresses */
    bool first;       /* LAYER, LAYER_DONE: of this pass on this stage */
    bool first_micro; /* LAYER, LAYER_DONE: forward of the first micro-batch of a step, where that differs */
    const struct dl_chunk *chunk; /* LAYER with first_micro: that it is of. UPDATE: the stage's first; NULL: its chunks
                                     are those of other stages, too */
    bool last_micro; /* LAYER_DONE: of the last micro-batch of the step, or of a run of them (dl_schedule_completing) */
    uint32_t block,
        n_blocks; /* LAYER, LAYER_DONE, ALLOC of a block: its number among those of its position; how many those are */
    const struct dl_recomputation *recomputed; /* LAYER, LAYER_DONE, ALLOC, FREE: how blocks are; NULL: they are not */
    bool is_for_kept; /* COMPUTE: a product of the block once more, to keep its result; LAYER's numbers are told, too */
    uint32_t gathered_ahead; /* LAYER: parameters come so many layers before they are used */
    double bucket_bytes;     /* LAYER_DONE, FREE: of gradients that are summed together; 0: those of one layer */
    bool is_replayed; /* a graph has it, so that the host does not launch it; LAYER: by one launch of its graph */
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
    double n_tensors;        /* GRADIENT, UPDATE: that these are. COMPUTE: that its elements are, if not of one */
    double n_expert_tensors; /* GRADIENT: of them, those of experts */
    double n_vectors;        /* UPDATE: of blocks, and all that they have */
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
/* Of its tensors, those of experts: one for all experts of a rank where these have the same product. */
double dl_layer_expert_tensors(const struct dl_layer *layer);
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

/* A product of the layer once more, where the software writes what blocks keep in this way. */
enum dl_status dl_emit_kept(struct dl_stack *below, const struct dl_work *work, const struct dl_event *at,
                            struct dl_error *err);

/* A kernel that only moves bytes of memory, for an exchange of gradients or parameters. Or a kernel for each of so many
 * tensors, where a rule of the software says what one takes. */
enum dl_status dl_emit_pass(struct dl_stack *below, const char *name, double bytes, enum dl_pass pass,
                            struct dl_error *err);
enum dl_status dl_emit_pass_of(struct dl_stack *below, const char *name, double bytes, double n_tensors,
                               enum dl_pass pass, struct dl_error *err);

#endif
