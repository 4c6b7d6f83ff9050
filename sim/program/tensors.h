/* tensors.h - what the ops of a program allocate and free, on a device or on its host.
 *
 * A tag is a kind of tensor and a layer, and of some kinds each micro-batch has its own. The rule to remember: to
 * allocate what is there already does nothing, unless it must grow; nor does it to free what is not there. So the first
 * backward makes the gradients that later ones add to. */
#ifndef DL_PROGRAM_TENSORS_H
#define DL_PROGRAM_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dl_memory_category {
    DL_MEMORY_PARAMETERS,
    DL_MEMORY_GRADIENTS,
    DL_MEMORY_OPTIMIZER,
    DL_MEMORY_ACTIVATIONS,
    DL_MEMORY_BUFFERS,
    DL_MEMORY_WORKSPACE,
    DL_MEMORY_HOST, /* not on the device */
    DL_N_MEMORY_CATEGORIES,
};

enum dl_tensor_kind {
    DL_TENSOR_PARAMETERS,
    DL_TENSOR_FROZEN, /* parameters that are not trained */
    DL_TENSOR_GRADIENTS,
    DL_TENSOR_OPTIMIZER,
    DL_TENSOR_SAVED,           /* by the forward for the backward */
    DL_TENSOR_SCORES,          /* the same, of attention between its projections */
    DL_TENSOR_OPERANDS,        /* of weight gradients that come apart from the backward */
    DL_TENSOR_DEFERRED,        /* of those of the head that come at the end of the step */
    DL_TENSOR_INPUT,           /* of the model, as it was before a cast */
    DL_TENSOR_GATHERED,        /* parameters that other ranks hold, as long as they are here */
    DL_TENSOR_SECONDARY,       /* a second copy of parameters, cut among neighbours */
    DL_TENSOR_PACKED,          /* the same as they travel, where that is another form */
    DL_TENSOR_NARROWED,        /* the same as products take them, while their layer works */
    DL_TENSOR_DEPTH,           /* weights of the other layers of a grid of ranks */
    DL_TENSOR_STREAMED,        /* weights that are outside of the devices, while their layer works */
    DL_TENSOR_FETCHED,         /* parameters that the host holds, as long as they are here */
    DL_TENSOR_STAGED,          /* activations on their way to the host, or back */
    DL_TENSOR_UNREDUCED,       /* whole gradients, until they are with those who hold them */
    DL_TENSOR_GRADIENT_COPIES, /* in another precision */
    DL_TENSOR_BUCKETS,         /* copies of gradients to exchange */
    DL_TENSOR_ERRORS,          /* of lossy exchanges, for the next one */
    DL_TENSOR_MESSAGES,        /* between stages */
    DL_TENSOR_RECOMPUTED,      /* what the forward had dropped */
    DL_TENSOR_SLICED,          /* of what it saved, a copy of the block at work */
    DL_TENSOR_PASSING,         /* gradient of the output of a layer at work, and what a loss needs */
    DL_TENSOR_WORKING,         /* gradients on both sides of a product */
    DL_TENSOR_UPDATING,        /* what the optimizer needs for a while */
    DL_TENSOR_LIBRARIES,       /* workspaces that libraries keep */
    DL_TENSOR_HOST_PARAMETERS,
    DL_TENSOR_HOST_FROZEN,
    DL_TENSOR_HOST_OPTIMIZER,
    DL_TENSOR_HOST_SAVED,
    DL_N_TENSORS,
};
extern const char *const dl_tensor_names[]; /* then NULL */
enum dl_memory_category dl_tensor_category(enum dl_tensor_kind tensor);
/* Whether each micro-batch has its own. */
bool dl_tensor_is_of_micro(enum dl_tensor_kind tensor);

struct dl_memory_op {
    bool frees;
    enum dl_tensor_kind tensor;
    uint32_t layer;
    double bytes; /* unless it frees */
    size_t at;    /* the instruction that it comes before */
};

struct dl_memory_ops {
    struct dl_memory_op *items;
    size_t n, capacity;
    uint32_t further; /* than the items say are their layers */
};
static inline uint32_t dl_memory_layer(const struct dl_memory_ops *ops, size_t i)
{
    return ops->items[i].layer + ops->further;
}
void dl_memory_ops_add(struct dl_memory_ops *ops, struct dl_memory_op op);
/* Room for n more: where they go. */
struct dl_memory_op *dl_memory_ops_append(struct dl_memory_ops *ops, size_t n);

#endif
