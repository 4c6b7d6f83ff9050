#include "sim/program/comm.h"

#include <string.h>

const char *const dl_class_names[] = {"none", "product", "attention", "memory", NULL};

const char *dl_cause_name(enum dl_cause cause)
{
    static const char *const names[DL_N_CAUSES] = {
        [DL_CAUSE_COMPUTE] = "compute",
        [DL_CAUSE_RECOMPUTE] = "recompute",
        [DL_CAUSE_OPTIMIZER] = "optimizer",
        [DL_CAUSE_TENSOR] = "tensor",
        [DL_CAUSE_SEQUENCE] = "sequence",
        [DL_CAUSE_CONTEXT] = "context",
        [DL_CAUSE_EXPERT] = "expert",
        [DL_CAUSE_PIPELINE] = "pipeline",
        [DL_CAUSE_DATA] = "data",
        [DL_CAUSE_INPUT] = "input",
        [DL_CAUSE_OFFLOAD] = "offload",
        [DL_CAUSE_HOST] = "host",
        [DL_CAUSE_INTERFERENCE] = "interference",
        [DL_CAUSE_STRAGGLER] = "straggler",
        [DL_CAUSE_BUBBLE] = "bubble",
    };
    return names[cause];
}

static const char *const op_names[DL_N_OPS] = {
    [DL_ALLREDUCE] = "allreduce", [DL_ALLGATHER] = "allgather", [DL_REDUCESCATTER] = "reducescatter",
    [DL_ALLTOALL] = "alltoall",   [DL_BROADCAST] = "broadcast", [DL_REDUCE] = "reduce",
    [DL_GATHER] = "gather",       [DL_SCATTER] = "scatter",     [DL_BARRIER] = "barrier",
    [DL_SENDRECV] = "sendrecv",   [DL_SHIFT] = "shift",         [DL_HALO] = "halo",
};

const char *dl_op_name(enum dl_op op) { return op == DL_COPY ? "copy" : op_names[op]; }

enum dl_op dl_op_named(const char *name)
{
    int op = 0;
    while (op < DL_N_OPS && strcmp(op_names[op], name)) op++;
    return (enum dl_op)op;
}

bool dl_payload_equal(const struct dl_payload *a, const struct dl_payload *b)
{
    return a->kind == b->kind && a->bits == b->bits && a->ratio == b->ratio && a->has_kernels == b->has_kernels;
}

bool dl_comm_alike(const struct dl_comm *a, const struct dl_comm *b)
{
    return a->op == b->op && a->algorithm == b->algorithm && a->bytes == b->bytes && a->once == b->once &&
           a->back_fraction == b->back_fraction && dl_payload_equal(&a->payload, &b->payload) &&
           dl_members_equal(&a->members, &b->members);
}
