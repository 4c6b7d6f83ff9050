/* tape.h - the work of a layer, written down once in forward order; its backward and its parameters follow from it.
 *
 * dl_tape_begin, one call for each operation of the forward, dl_tape_end. Where tensors enter and leave pairs of
 * products follows from the dimensions of these. Backward is the reverse: a GEMM becomes one for the gradient of its
 * input and one for that of its weights; what entered leaves, and what went to experts comes back. */
#ifndef DL_WORKLOADS_TAPE_H
#define DL_WORKLOADS_TAPE_H

#include "workloads/workload.h"

struct dl_tape {
    struct dl_layer *layer;
    struct dl_tape_step *steps;
    size_t n_steps, capacity;
    bool inside;         /* between the products of a pair */
    bool among_experts;  /* tokens are at their experts */
    struct dl_work next; /* what the next kernel is given, as far as it must be told; its kernel means nothing */
    enum dl_block_module module; /* set while its kernels are written down, and what is saved of them */
    enum dl_block_result result; /* set while the products are written down that make it */
    bool frozen;                 /* nothing is trained but the products of adapters */
    bool is_below;               /* nothing before it is trained: nobody needs a gradient of what kernels are given */
    double adapters, n_adapters; /* parameters of these, and the tensors that they are */
    struct dl_saved not_needed;  /* what kernels below would keep: autograd has no backward for them */
};

void dl_tape_begin(struct dl_tape *tape, struct dl_layer *layer, const char *name);

/* Where what is saved now is counted: by the module that need not keep it; in not_needed below all that is trained,
 * unless something else keeps it. */
struct dl_saved *dl_tape_saved(struct dl_tape *tape);
struct dl_saved *dl_tape_kept(struct dl_tape *tape);

/* Fill the layer's lists of work, in the arena. */
void dl_tape_end(struct dl_tape *tape, struct dl_arena *arena);

/* batch x (m x k times k x n). The second operand is weights, which become parameters of the layer, unless it says
 * otherwise. */
struct dl_product {
    const char *name;
    double batch, m, n, k;
    struct dl_kernel_dimensions by;
    bool is_convolution;
    struct dl_pixels given, made; /* as in struct dl_kernel, of a convolution */
    double window, stride, pad;
    bool has_bias;
    bool of_activations;             /* the second operand is data: both gradients are needed at once */
    bool shares_weights;             /* they are the parameters of another layer */
    bool stays_wide;                 /* never with quantised operands */
    bool has_places;                 /* as in struct dl_kernel */
    bool moves_tokens;               /* as in struct dl_kernel */
    bool masked;                     /* as in struct dl_kernel */
    bool is_first;                   /* nobody needs the gradient of its input */
    double for_key_heads;            /* as in struct dl_work */
    enum dl_adapter_product adapter; /* as in struct dl_kernel: it takes what has entered, and what it makes stays */
    bool stays; /* what it sums over the inner dimension is added to what another sums, and leaves with that */
};
void dl_tape_product(struct dl_tape *tape, const struct dl_product *product);

/* Dimensions of products with weights: the first and the second of a pair, and those outside of pairs. */
extern const struct dl_kernel_dimensions dl_first_of_pair, dl_second_of_pair, dl_of_no_pair;

/* Fused attention, written down in its `batch`, `m`, `n`, `k`, `causal`, `kv_share` and `drops`. */
void dl_tape_attention(struct dl_tape *tape, const struct dl_kernel *attention);

/* What is bound by memory, with the elements it moves. 0: there is no such kernel. */
struct dl_tape_pass {
    const char *name;
    dl_dimensions by; /* of its elements */
    double forward, input_gradient, weight_gradient;
    const char *operation; /* NULL: as the name says */
    double table, found;   /* look-up: elements of its table, and of what is found there, which then leaves */
    double width;          /* of the rows that it goes through, of a pool the windows on each input; 0: no matter */
    double row_sums;       /* of norms over the inner dimension: elements that ranks sum, as in struct dl_work */
    double matrices;       /* of such rows that it goes through, or experts that it copies tokens for; 0: no matter */
    double tokens;         /* elements of the tokens that it copies for experts; 0: it does not */
    double flop;           /* that its forward does in products of its own; backward twice as many */
    double products, backward_products; /* of kernels, as products_per_element of struct dl_kernel; 0: no matter */
    bool drops;                         /* its forward, as in struct dl_kernel */
    bool rotates_parts;                 /* as in struct dl_kernel */
    bool only_adds;                     /* its backward needs nothing that it was given or made */
};
void dl_tape_pass(struct dl_tape *tape, const struct dl_tape_pass *pass);

/* Cross entropy of so many logits, with the softmax before it. */
void dl_tape_cross_entropy(struct dl_tape *tape, double logits, dl_dimensions by);

/* Several products take what enters here, of so many elements in all. Without this call the input of the first product
 * that makes an inner dimension enters; the result of the one that sums over it leaves. */
void dl_tape_enter(struct dl_tape *tape, double elements);

/* Tokens of so many elements travel to their experts, and back. */
void dl_tape_dispatch(struct dl_tape *tape, double elements);
void dl_tape_combine(struct dl_tape *tape, double elements);

#endif
