#include "sim/program/tensors.h"

#include "sim/core/memory.h"

const char *const dl_tensor_names[] = {
    [DL_TENSOR_PARAMETERS] = "parameters",
    [DL_TENSOR_FROZEN] = "frozen",
    [DL_TENSOR_GRADIENTS] = "gradients",
    [DL_TENSOR_OPTIMIZER] = "optimizer",
    [DL_TENSOR_SAVED] = "saved",
    [DL_TENSOR_SCORES] = "scores",
    [DL_TENSOR_OPERANDS] = "operands",
    [DL_TENSOR_DEFERRED] = "deferred",
    [DL_TENSOR_INPUT] = "input",
    [DL_TENSOR_GATHERED] = "gathered",
    [DL_TENSOR_SECONDARY] = "secondary",
    [DL_TENSOR_PACKED] = "packed",
    [DL_TENSOR_NARROWED] = "narrowed",
    [DL_TENSOR_DEPTH] = "depth",
    [DL_TENSOR_STREAMED] = "streamed",
    [DL_TENSOR_FETCHED] = "fetched",
    [DL_TENSOR_STAGED] = "staged",
    [DL_TENSOR_UNREDUCED] = "unreduced",
    [DL_TENSOR_GRADIENT_COPIES] = "gradient_copies",
    [DL_TENSOR_BUCKETS] = "buckets",
    [DL_TENSOR_ERRORS] = "errors",
    [DL_TENSOR_MESSAGES] = "messages",
    [DL_TENSOR_RECOMPUTED] = "recomputed",
    [DL_TENSOR_SLICED] = "sliced",
    [DL_TENSOR_PASSING] = "passing",
    [DL_TENSOR_WORKING] = "working",
    [DL_TENSOR_UPDATING] = "updating",
    [DL_TENSOR_LIBRARIES] = "libraries",
    [DL_TENSOR_HOST_PARAMETERS] = "host_parameters",
    [DL_TENSOR_HOST_FROZEN] = "host_frozen",
    [DL_TENSOR_HOST_OPTIMIZER] = "host_optimizer",
    [DL_TENSOR_HOST_SAVED] = "host_saved",
    [DL_N_TENSORS] = NULL,
};

enum dl_memory_category dl_tensor_category(enum dl_tensor_kind tensor)
{
    switch (tensor) {
    case DL_TENSOR_PARAMETERS:
    case DL_TENSOR_FROZEN: return DL_MEMORY_PARAMETERS;
    case DL_TENSOR_GRADIENTS: return DL_MEMORY_GRADIENTS;
    case DL_TENSOR_OPTIMIZER: return DL_MEMORY_OPTIMIZER;
    case DL_TENSOR_SAVED:
    case DL_TENSOR_SCORES:
    case DL_TENSOR_OPERANDS: return DL_MEMORY_ACTIVATIONS;
    case DL_TENSOR_RECOMPUTED:
    case DL_TENSOR_SLICED:
    case DL_TENSOR_PASSING:
    case DL_TENSOR_WORKING:
    case DL_TENSOR_UPDATING:
    case DL_TENSOR_LIBRARIES: return DL_MEMORY_WORKSPACE;
    case DL_TENSOR_HOST_PARAMETERS:
    case DL_TENSOR_HOST_FROZEN:
    case DL_TENSOR_HOST_OPTIMIZER:
    case DL_TENSOR_HOST_SAVED: return DL_MEMORY_HOST;
    default: return DL_MEMORY_BUFFERS;
    }
}

bool dl_tensor_is_of_micro(enum dl_tensor_kind tensor)
{
    return dl_tensor_category(tensor) == DL_MEMORY_ACTIVATIONS || tensor == DL_TENSOR_HOST_SAVED;
}

struct dl_memory_op *dl_memory_ops_append(struct dl_memory_ops *ops, size_t n)
{
    ops->items = dl_reserve(ops->items, ops->n + n, &ops->capacity, sizeof *ops->items);
    ops->n += n;
    return ops->items + ops->n - n;
}

void dl_memory_ops_add(struct dl_memory_ops *ops, struct dl_memory_op op)
{
    DL_GROW(ops->items, ops->n, ops->capacity);
    ops->items[ops->n++] = op;
}
