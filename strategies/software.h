/* software.h - the training framework in physical terms: what it launches, fuses and overlaps (schema
 * dlsim/software/1). */
#ifndef DL_STRATEGIES_SOFTWARE_H
#define DL_STRATEGIES_SOFTWARE_H

#include "sim/program/step.h"
#include "strategies/kernel_rules.h"
#include "strategies/lacks.h"
#include "strategies/operand_rules.h"

/* Which models are held in the precision of their products, optimizer and all; others keep parameters in fp32. */
enum dl_pure { DL_PURE_NONE, DL_PURE_LANGUAGE_MODELS, DL_PURE_ALL };

/* Whether buckets are copies of gradients, and stay, as DistributedDataParallel has them where they are no views: of
 * replicas, also where stage 1 of ZeRO divides the optimizer; or without ZeRO always, with one replica too. */
enum dl_bucket_copies { DL_BUCKET_COPIES_NONE, DL_BUCKET_COPIES_OF_REPLICAS, DL_BUCKET_COPIES_ALWAYS };

/* What accumulates over the micro-batches of a step in stages 2 and 3 of ZeRO. */
enum dl_accumulates {
    DL_ACCUMULATES_SHARDS,           /* every micro-batch reduce-scatters its gradients */
    DL_ACCUMULATES_CHUNK,            /* whole gradients of one chunk, until another one goes backward */
    DL_ACCUMULATES_WHOLE,            /* whole gradients; the last micro-batch reduce-scatters them */
    DL_ACCUMULATES_WHOLE_IN_PIPELINE /* and shards where there is none */
};

/* How tokens travel to experts on other ranks. */
enum dl_dispatch {
    DL_DISPATCH_TO_EXPERTS, /* once for each of their experts */
    DL_DISPATCH_TO_NODES,   /* once to each node where they have any, and from there once to each rank that has */
};
extern const char *const dl_dispatches[]; /* their names */

/* How ranks that share sequences go round a ring; all 0: keys as they are, a block at a time, nothing beside. */
struct dl_ring_code {
    bool repeats_keys;     /* keys and values travel repeated for their queries */
    bool gathers_once;     /* those of all ranks beside the first block, and not a block at a time */
    double gradient_bytes; /* of a value of their gradients on the way; 0: as wide as they are */
    /* Elements moved for each element of the queries after each block, to add what comes of it to the others'. */
    double merge_moves, merge_backward_moves;
};

/* How blocks keep activations where they are iterations of a loop: in arrays of all of them. */
struct dl_keep_code {
    double moves, backward_moves; /* elements moved for each that is kept: into these arrays, and out of them */
    bool repeats_products;        /* to write results that are kept as products make them, and in no other way */
    double times;                 /* what layers count, that are kept of a block of which nothing is computed again */
};

struct dl_software {
    const char *name;
    double host_s_per_launch;         /* of the host, for one kernel */
    double host_s_per_group_launch;   /* of the host, for one of a group: an expert's product, cast of its operand */
    double linear_host_s;             /* of the host, for the call of a linear layer, forward and backward, beside its
                                         launches */
    double group_host_s;              /* the same of a linear layer of all experts of a rank */
    double launches_per_kernel;       /* what the workload lists as one kernel is so many launches here */
    struct dl_kernel_rules kernels;   /* those that are more, or less, than that */
    struct dl_operand_rules operands; /* of products in narrow precisions */
    struct dl_lacks lacks;            /* what `search` does not propose */
    enum dl_pure pure;
    double gradient_bytes;           /* per parameter, as accumulated, of a model that is not pure */
    double bf16_gradient_bytes;      /* where products are in bf16 */
    double bf16_zero_gradient_bytes; /* and with stages 2 and 3 of ZeRO */
    double bucket_moves;             /* elements moved for each gradient that replicas sum, below stage 3 of ZeRO */
    bool gradients_whole;            /* stage 1 of ZeRO gives every replica all sums, not only those of its part */
    enum dl_accumulates accumulates;
    uint32_t zero_in_pipeline;     /* the highest stage of ZeRO that it allows beside a pipeline */
    bool gathers_stage_2;          /* parameters layer by layer in the forward, as stage 3, kept for the backward */
    double scatter_moves;          /* and in stage 3, which is other code of the same software */
    double gather_moves;           /* elements moved for each parameter that stage 3 has gathered */
    bool casts_model;              /* the model is as narrow as products in every stage, fp32 copies beside it */
    bool casts_gathered;           /* by ZeRO for a layer: as narrow as products, though they are kept in fp32 */
    struct dl_keep_code keep;      /* of blocks, for their backward */
    bool offload_blocks;           /* kernels wait for copies of activations, and for sums that go to the host */
    double new_memory_bytes_per_s; /* of copies to it, where the host gets it anew for each; 0: it keeps it */
    bool deals_tensors;            /* stages 1 and 2 of ZeRO: whole ones to each rank, which broadcasts them updated */
    double collective_host_s;      /* of the host, for one collective inside the node */
    double
        collective_rank_host_s; /* and for each rank that takes part, where hosts compare what they are about to do */
    double collective_near_fraction; /* of it, for one on the same node */
    double gather_part_host_s;       /* and where ZeRO gathers, for each tensor of each replica; stage 3 also where it
                                        scatters */
    double vector_part_host_s;       /* stage 3 of ZeRO: for each vector of each replica, where all vectors are gathered
                                        after the update; 0: they are gathered with the matrices */
    struct dl_ring_code ring;        /* of context ranks */
    bool waits_for_scatters;         /* stage 3 of ZeRO: kernels do not go beside them */
    bool waits_for_collectives;      /* nothing goes beside any collective */
    double batch_host_s;             /* of the host, to get a micro-batch before its forward */
    struct dl_loader {
        double workers;                             /* of a device, that unpack samples side by side */
        double unpacked_bytes_per_s[DL_N_PACKINGS]; /* of one, as stored; 0: in no time */
    } loader;
    double host_spread_fraction; /* standard deviation over mean of a host's time for a step; ranks wait for the last */
    bool drains_at_batches;      /* for which it first waits for the device */
    bool weights_in_activation;  /* of tokens: experts weigh what their second product is given, not what it gives */
    bool drains_at_recompute;    /* as it does before and after each pass of a block that is recomputed as a whole */
    bool recomputes_needed;      /* of such a block what the backward needs, not its end */
    struct dl_model_code code;
    double pads_products_to;          /* sides of products become multiples of this if that is faster; 0: they stay */
    bool fused_optimizer;             /* one kernel updates many tensors: rules that say so hold */
    enum dl_dispatch dispatch;        /* unless the strategy says it */
    double dispatch_s;                /* of the device, for a trip to nodes, beside what travels */
    double dispatch_fraction;         /* of the bandwidth of a collective, inside a node */
    double dispatch_overlap_fraction; /* of a trip, that goes on beside work where trips overlap */
    double overlap_host_s;            /* of the host, for each pass of a block whose trips overlap */
    double communication_fraction;    /* of a device's units, kept for it: others are never slowed by it; 0: none */
    double collective_units_fraction; /* of those that collectives hold by themselves, which they are limited to */
    double dispatch_between_s;        /* of the device, for a trip that leaves its node, beside dispatch_s */
    bool gathers_modules;             /* in stage 3 of ZeRO: matrices one by one, not layers */
    uint32_t gathers_ahead;           /* in stage 3 of ZeRO: layers, before the one at work is done */
    bool gradients_persist;       /* their memory stays from step to step; else the first backward of a step makes it */
    bool copies_persist;          /* of parameters in the working precision; else each forward makes them by casts */
    double root_bytes;            /* per parameter, while Adam or LAMB works */
    double residual_bytes;        /* of an activation that a norm is given, where that is more than the precision's */
    double logit_workspace_bytes; /* of each logit in the backward of the loss, beside what is saved and its gradient */
    double pure_logit_workspace_bytes; /* the same of a model whose parameters are as narrow as its products */
    double backward_gradient_bytes;    /* per parameter, of gradients as a backward makes them, if others accumulate */
    bool backward_gradients_stay;      /* until the next backward begins; else they are freed when theirs is over */
    enum dl_bucket_copies bucket_copies;
    double outside_bytes;           /* of a device, beside the allocator: context, libraries, communicators */
    double launch_queue;            /* launches that wait for a device at most; 0: what that holds is not counted */
    double gather_launches;         /* of them, of an all-gather with the parts of the product beside it */
    bool flat_gathers;              /* in stage 1 of ZeRO: parameters, through flat buffers of parts and of all */
    bool keeps_fragments;           /* the allocator cannot give back what it wastes */
    double gemm_workspaces;         /* callers of the library of matrix products that keep memory for it */
    double group_workspaces;        /* more of them where experts are, of streams that products are launched on */
    double own_workspace_bytes;     /* of workspaces whose size does not depend on the device */
    double deferred_head_gradients; /* micro-batches whose weight gradients of the head wait, with their operands */
    double pool_index_bytes;        /* of each result of a max pool, kept for backward */
    double fragmentation_fraction;  /* what the allocator holds beyond what comes and goes, over that */
    bool overlaps_tensor;           /* sums over tensor ranks in a backward go beside the gradient of weights */
    bool evicts_slow_nodes;         /* it finds nodes that are slower than others, and runs without them */
    bool step_barrier;              /* no rank begins a step before all have ended the one before */
    bool scatters_sends;            /* a pipeline send is split over the tensor ranks, not repeated by each */
    bool gathers_outputs;           /* so are a stage's own outputs before its backward, of which it kept a part */
    bool parts_have_shapes;         /* each is preceded by its shape, which the host copies to the device */
    double part_moves;              /* elements moved for each that is gathered of parts */
    enum dl_sends sends;            /* of the pipeline */
    double send_host_s;             /* of the host, for one pipeline send or receive */
    double send_messages;           /* that it is, of which all but the last are small: shapes and types */
    bool drains_at_sends;           /* the host waits for the device at every pipeline send and receive */
    bool drains_at_receives;        /* at every receive, if not at sends */
    bool batches_without_chunks;    /* it waits so, and sends are DL_SENDS_BATCHED, where a stage has one chunk */
    bool drains_at_waits;           /* and where the device waits for an exchange among replicas */
    bool drains_at_dispatch;        /* and where it must know how many tokens its experts get */
    bool dispatches_by_maps;        /* ranks gather who sends what before it goes to nodes: see expert_dispatch.c */
    bool drains_after_dispatch;     /* and again when those that went to nodes have come */
    bool drains_at_end;             /* and at the end of a step, to read the loss or the gradient norm */
};

enum dl_status dl_software_read(struct dl_json doc, struct dl_arena *arena, struct dl_software *out,
                                struct dl_error *err);

/* Whatever its hosts do takes so many times as long. */
void dl_software_slow_hosts(struct dl_software *software, double slowdown);

/* The keys of a software file, for `dlsim list`. */
const struct dl_field *dl_software_fields(size_t *n_fields);

#endif
