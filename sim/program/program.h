/* program.h - what the ranks of one pipeline stage do in a training step.
 *
 * A role is the set of ranks that share a program: all ranks of a stage. The program is a list of items (forward or
 * backward of a micro-batch through a chunk), each a reference to a template, since the same ops come again for every
 * micro-batch; so its size does not grow with their number. After the items come the gradient exchanges and the
 * optimizer. */
#ifndef DL_PROGRAM_PROGRAM_H
#define DL_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/core/memory.h"

/* Why time passes on a rank. On each rank every instant has exactly one cause. */
enum dl_cause {
    DL_CAUSE_COMPUTE,
    DL_CAUSE_RECOMPUTE,
    DL_CAUSE_OPTIMIZER,
    DL_CAUSE_TENSOR,
    DL_CAUSE_SEQUENCE,
    DL_CAUSE_EXPERT,
    DL_CAUSE_PIPELINE,
    DL_CAUSE_DATA,
    DL_CAUSE_HOST,   /* the device waits for the host to launch */
    DL_CAUSE_BUBBLE, /* for a partner that has not started */
    DL_N_CAUSES,
};
const char *dl_cause_name(enum dl_cause cause);

/* One kernel, or one collective inside the ranks that go in step, which is timed. */
struct dl_instruction {
    const char *name;
    enum dl_cause cause;
    double device_s; /* on the device */
    double host_s;   /* on the host, to launch it; the host runs ahead of the device within a template */
    double flop;
    double measured_s; /* the part of device_s that rests on measured points */
};

/* The time of a template as a whole, with its causes; they sum to `seconds`. */
struct dl_segment {
    double seconds;
    double by_cause[DL_N_CAUSES];
    double flop, measured_s;
};

struct dl_template {
    struct dl_instruction *ops;
    size_t n_ops, capacity;
    struct dl_segment fused; /* by dl_template_fuse */
};

/* An exchange between ranks that do not go in step: over the data axis, of all gradients or parameters of the stage. */
enum dl_exchange_op { DL_EXCHANGE_ALLREDUCE, DL_EXCHANGE_REDUCESCATTER, DL_EXCHANGE_ALLGATHER };
struct dl_call {
    enum dl_exchange_op op;
    double bytes;
    double payload_bits; /* 0: dense */
    bool after_optimizer;
};

enum { DL_MAX_CALLS = 8, DL_N_ITEM_KINDS = 3 };

struct dl_program {
    uint32_t stage, n_chunks;
    struct dl_template *items; /* [chunk * DL_N_ITEM_KINDS + kind]; their ops belong to whoever made them */
    struct dl_template optimizer;
    struct dl_call calls[DL_MAX_CALLS];
    size_t n_calls;
    double send_bytes; /* of the activations that leave a chunk, of all ranks that go in step together */
};

void dl_template_add(struct dl_template *t, const struct dl_instruction *op);
/* Run host and device of the template side by side: an op starts when the one before it has ended and it is launched.
 */
void dl_template_fuse(struct dl_template *t);
void dl_program_release(struct dl_program *p);
/* The text form, for people and goldens. */
void dl_program_print(const struct dl_program *p, FILE *out);

#endif
