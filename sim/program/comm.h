/* comm.h - collectives as programs have them: what, among which ranks, and why. */
#ifndef DL_PROGRAM_COMM_H
#define DL_PROGRAM_COMM_H

#include "sim/program/payload.h"
#include "sim/program/places.h"
#include "sim/program/ranks.h"

/* Why time passes on a rank. On each rank every instant has exactly one cause. */
enum dl_cause {
    DL_CAUSE_COMPUTE,
    DL_CAUSE_RECOMPUTE,
    DL_CAUSE_OPTIMIZER,
    DL_CAUSE_TENSOR,
    DL_CAUSE_SEQUENCE,
    DL_CAUSE_CONTEXT,
    DL_CAUSE_EXPERT,
    DL_CAUSE_PIPELINE,
    DL_CAUSE_DATA,
    DL_CAUSE_INPUT,        /* samples are on their way to the device */
    DL_CAUSE_OFFLOAD,      /* copies between device and host, and what the host computes */
    DL_CAUSE_HOST,         /* the device waits for the host to launch */
    DL_CAUSE_INTERFERENCE, /* work takes longer beside an exchange or a send */
    DL_CAUSE_STRAGGLER,    /* waits for a rank that a scenario has slowed */
    DL_CAUSE_BUBBLE,       /* waits for a rank that has other work to do first */
    DL_N_CAUSES,
};
const char *dl_cause_name(enum dl_cause cause);
/* Whether what the device does then are kernels of the model or its optimizer. */
static inline bool dl_cause_is_kernels(enum dl_cause cause)
{
    return cause == DL_CAUSE_COMPUTE || cause == DL_CAUSE_RECOMPUTE || cause == DL_CAUSE_OPTIMIZER;
}

/* Kinds of kernels that lose differently much to a collective beside them: matrix products and convolutions, fused
 * attention and scans, and what moves data. */
enum dl_kernel_class { DL_CLASS_NONE, DL_CLASS_PRODUCT, DL_CLASS_ATTENTION, DL_CLASS_MEMORY, DL_N_CLASSES };
extern const char *const dl_class_names[]; /* then NULL */

/* Shares of their rate that kernels lose while something goes on beside them, by class; of what is no kernel 0. */
struct dl_taken {
    double fraction[DL_N_CLASSES];
};

enum dl_op {
    DL_ALLREDUCE,
    DL_ALLGATHER,
    DL_REDUCESCATTER,
    DL_ALLTOALL,
    DL_BROADCAST,
    DL_REDUCE,
    DL_GATHER,
    DL_SCATTER,
    DL_BARRIER,
    DL_SENDRECV,
    DL_SHIFT,
    DL_HALO,
    DL_N_OPS,
    DL_COPY, /* no collective: between places of the machine, see places.h */
};
const char *dl_op_name(enum dl_op op);
enum dl_op dl_op_named(const char *name); /* DL_N_OPS: there is none */

/* Those of one channel on the same ranks go one after the other, as one communicator's do. */
enum dl_channel {
    DL_CHANNEL_REPLICAS,   /* among ranks that hold the same parameters: started, and waited for later */
    DL_CHANNEL_STAGES,     /* of two stages that hold the same, whose programs both have it: waited for at once */
    DL_CHANNEL_LOCKSTEP,   /* of ranks in lockstep: simulated, or priced; each is waited for before the next */
    DL_CHANNEL_BESIDE,     /* of ranks in lockstep, beside the work of a whole layer: simulated, or priced */
    DL_CHANNEL_COPIES_OUT, /* from each device to its host, or further out: simulated, or priced */
    DL_CHANNEL_COPIES_IN,  /* and back, beside these */
    DL_CHANNEL_AHEAD,      /* samples, for the next micro-batch: waited for by its forward, always simulated */
};

struct dl_comm {
    enum dl_op op;
    enum dl_channel channel;
    struct dl_members members;
    double bytes;         /* as sim/collective/collective.h counts them */
    double back_fraction; /* DL_HALO: of these, that goes to the rank before; the rest goes to the next */
    struct dl_payload payload;
    const char *algorithm; /* NULL: the one that is estimated to be fastest */
    enum dl_cause cause;
    uint32_t handle;         /* the strategy's own, to wait for it */
    uint32_t every, turn;    /* it takes place in iterations that leave turn when divided by every; 0: in all */
    enum dl_path path;       /* DL_COPY: between which places */
    double most_bytes_per_s; /* DL_COPY: that the host can take it at; 0: whatever links give */
    /* Of ranks in lockstep, and copies. */
    bool once;             /* DL_ALLTOALL: tokens go once to each node, as DL_DISPATCH_TO_NODES; it is always priced */
    double alone_s;        /* if it meets nobody */
    struct dl_taken taken; /* from the kernels beside it */
    double n_bundles;      /* that one group's is on the network, where it is simulated */
};
/* Whether it takes place in the iteration, from 0 on. */
static inline bool dl_comm_has_turn(const struct dl_comm *c, uint32_t iteration)
{
    return !c->every || iteration % c->every == c->turn;
}
/* It is work of alone_s unless it is simulated. */
static inline bool dl_comm_may_be_priced(const struct dl_comm *c)
{
    return c->channel >= DL_CHANNEL_LOCKSTEP && c->channel != DL_CHANNEL_AHEAD;
}
/* Several may be under way, of which each begins when the one before it on its channel is done. */
static inline bool dl_comm_is_queued(const struct dl_comm *c) { return c->channel >= DL_CHANNEL_BESIDE; }
/* Whether the same is chosen for both. */
bool dl_comm_alike(const struct dl_comm *a, const struct dl_comm *b);

#endif
