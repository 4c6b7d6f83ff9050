/* workload.h - a model as a list of layers, each with what it computes forward and backward for one micro-batch.
 *
 * Shapes are those of the whole layer; strategies cut them. A kernel names its dimensions, and says how much of what
 * it is given or makes enters a pair of products, between which data has an inner dimension, leaves one, or changes
 * between tokens and experts: there strategies may have to communicate. To add a builder: one file, one line in the
 * table of workloads.c.
 *
 * The rule to remember: these mean the same forward and backward, in the direction in which the data goes: what enters
 * forward has a gradient that leaves backward. Layers begin and end outside of pairs, but for two: the vocabulary is an
 * inner dimension, so the embedding begins and the head ends inside. The gradient of weights comes after that of the
 * input, so that what is done about the latter can overlap. */
#ifndef DL_WORKLOADS_WORKLOAD_H
#define DL_WORKLOADS_WORKLOAD_H

#include "sim/core/json.h"
#include "sim/program/program.h"
#include "workloads/dimensions.h"

enum dl_kernel_kind {
    DL_KERNEL_GEMM,      /* batch x (m x k times k x n) */
    DL_KERNEL_ATTENTION, /* fused: batch of (sample, head), m queries, n keys, head size k */
    DL_KERNEL_CONV,      /* implicit im2col: m = samples x output pixels, n = filters, k = channels x window */
    DL_KERNEL_MEMORY,    /* norms, softmax, dropout, residuals, look-ups: bound by the elements they move */
};

/* For what a kernel is there; the two gradients of a product of activations are both INPUT_GRADIENT. */
enum dl_kernel_pass { DL_PASS_FORWARD, DL_PASS_INPUT_GRADIENT, DL_PASS_WEIGHT_GRADIENT };

/* Parts of a block that can be recomputed for themselves, as Megatron-Core names and cuts them (transformer_config.py,
 * recompute_modules). Each keeps what it is given. */
enum dl_block_module {
    DL_NO_MODULE,
    DL_MODULE_CORE_ATTENTION, /* between the projections of attention */
    DL_MODULE_NORM,           /* norms that are no part of the product after them */
    DL_MODULE_LATENT_UP,      /* from the small vectors of latent attention to queries, keys and values */
    DL_MODULE_FEED_FORWARD,   /* of a block without experts, with its norm */
    DL_MODULE_EXPERT_ACTIVATION,
    DL_MODULE_SHARED_EXPERTS,
    DL_MODULE_EXPERTS, /* the rest from the router on: the two before are parts of it */
    DL_N_MODULES,
};
extern const char *const dl_modules[]; /* their names, from that of CORE_ATTENTION on; then NULL */
typedef uint32_t dl_module_set;        /* 1 << module each */

/* What products of a block make that may be kept where all else of it is recomputed, as policies of jax.checkpoint
 * name it. */
enum dl_block_result {
    DL_NO_RESULT,
    DL_RESULT_QKV,
    DL_RESULT_CONTEXT, /* of attention */
    DL_RESULT_PROJECTION,
    DL_RESULT_FC1, /* of a block without experts */
    DL_N_RESULTS,
};
extern const char *const dl_results[]; /* their names, from that of QKV on; then NULL */

/* Linear layers of a block that adapters of low rank (LoRA) can go on. */
enum dl_adapter_target {
    DL_NO_TARGET,
    DL_TARGET_QKV,
    DL_TARGET_PROJECTION,
    DL_TARGET_FC1, /* of a block without experts */
    DL_TARGET_FC2,
    DL_N_TARGETS,
};
extern const char *const dl_adapter_targets[]; /* their names, from that of QKV on; then NULL */

/* The two products of an adapter, y = x A B, on a layer that is the first of a pair (columns) or the second (rows). */
enum dl_adapter_product {
    DL_NO_ADAPTER,
    DL_ADAPTER_IN_OF_COLUMNS,  /* A: makes columns of low rank */
    DL_ADAPTER_IN_OF_ROWS,     /* A: sums over the inner dimension */
    DL_ADAPTER_OUT_OF_COLUMNS, /* B: makes the inner dimension */
    DL_ADAPTER_OUT_OF_ROWS,    /* B: makes what leaves */
};

/* Adapters that are trained while all else of the model is frozen (Hu et al. 2021, arXiv 2106.09685). */
struct dl_adapters {
    double rank;      /* 0: there are none, and nothing is frozen */
    uint32_t targets; /* 1 << enum dl_adapter_target each */
    bool dropout;     /* of what each is given */
};

struct dl_kernel {
    enum dl_kernel_kind kind;
    enum dl_kernel_pass pass;
    const char *name;      /* "qkv", "softmax", ... */
    const char *operation; /* DL_KERNEL_MEMORY: what it does, if its name does not say so: "layernorm", "gelu" */
    /* DL_KERNEL_MEMORY: n is the width of the rows that norms, softmax and biases go through, batch how many matrices
     * of them there are. Where tokens are copied for experts, batch is these, all of a layer. */
    double batch, m, n, k;
    double tokens;   /* where tokens are copied for experts: elements of the tokens themselves, over its elements */
    double elements; /* DL_KERNEL_MEMORY: read and written, in the precision of activations; fp32 counts twice */
    double flop_per_element;     /* DL_KERNEL_MEMORY: of products inside it, as the model is said to have */
    double products_per_element; /* the same as kernels do them, in multiply-adds: what scans take instructions for; of
                                    operations without products what else they go through: see operations.c */
    double unit_s; /* DL_KERNEL_MEMORY: of its instructions, if one unit of the device did them all; 0: not known */
    /* Numbers that have none are the same on every rank. Among experts a GEMM's batch is these, which expert
     * parallelism divides, and m the tokens that each gets if all get as many; there is one at least. Elements are
     * those of all experts together. */
    struct dl_kernel_dimensions by;
    bool on_operands; /* DL_KERNEL_MEMORY: it works on what has entered a pair of products, in the layout of these */
    /* Convolution: of what it is given and of its result, forward; 0: not known. */
    struct dl_pixels {
        double height, width;
    } given, made;
    double window, stride, pad;  /* convolution: sides of its windows and of their steps, zeros on each side; 0: not
                                    known, nothing overlaps. Attention: keys of a window; 0: there is none */
    bool causal;                 /* attention: half of the scores are never needed, and left out */
    bool masked;                 /* fused or not: a causal mask hides half of the scores, of all ranks together */
    bool backward;               /* attention: 2.5 times the forward's work */
    bool by_whole_heads;         /* attention: a unit of the device takes all of a head; the software decides */
    double kv_share;             /* attention: heads of keys and values over those of queries */
    bool drops;                  /* dropout is part of it: of attention's scores, or of what a residual adds */
    bool rotates_parts;          /* rotation, or attention behind one: of parts of one tensor, values are another */
    bool has_places;             /* product of experts: each has as many places for tokens, filled or not */
    bool moves_tokens;           /* product with a one-hot matrix: no work of the model */
    bool stays_wide;             /* product: never with quantised operands, beside those of attention's core */
    bool in_wide_block;          /* of a layer that is_wide */
    enum dl_block_module module; /* that it is part of, the innermost */
    enum dl_block_result result; /* product or attention: what it makes, or a part of that */
    double table;                /* look-up: elements of its table, which are parameters */
    bool has_bias;               /* product: a bias is added to its result */
    bool frozen;                 /* product: its weights are not trained, so nothing is kept for a gradient of them */
    bool is_below;               /* nothing before it is trained, so it has no gradient of what it is given */
    enum dl_adapter_product adapter; /* product: which of an adapter */
    bool accumulates; /* its result is added to sums in fp32, as gradients of weights are; the software decides */
};

/* Backward work is for the gradient of the input or of the weights: zero-bubble schedules put them apart. */
enum dl_gradient { DL_GRADIENT_INPUT, DL_GRADIENT_WEIGHT };

struct dl_work {
    struct dl_kernel kernel;
    enum dl_gradient gradient; /* backward only */
    /* Elements, of all ranks that share the layer; 0: none. What several kernels are given is told by the first. */
    double to_experts, from_experts; /* that it is given: of tokens that go to their experts, or come back */
    double enters;                   /* that it is given, and that enters a pair of products */
    double leaves;                   /* that it makes, and that leaves one */
    /* Where there are more tensor ranks than heads of keys and values, what has to do with heads that several ranks
     * need: forward it makes these, backward it is given their gradients. */
    double for_key_heads;
    double row_sums; /* of rows that ranks have parts of: sums over these, which it needs in either direction */
};

/* Bytes that forward leaves for backward, by what becomes of them (Korthikanti et al., MLSys 2023, section 4), with two
 * bytes for an activation and one for an element of a dropout mask. */
struct dl_saved {
    double outside_bytes; /* whole under tensor parallelism, divided by sequence parallelism */
    double inside_bytes;  /* divided by tensor parallelism */
    double scores_bytes;  /* as inside_bytes, and dropped by selective recomputation; flash has none */
    double input_bytes;   /* what full recomputation keeps; in a block counted in outside_bytes too */
    double weighed_bytes; /* of outside_bytes, what experts gave, as the gradient of the weights of tokens needs it */
    double norm_bytes;    /* of outside_bytes, what norms are given: the residual way, which some keep in fp32 */
    /* Of outside_bytes and inside_bytes, what is there for a product with weights alone, so that some keep it as narrow
     * as the product takes it; and what others need as it is, beside which they keep a narrow copy. */
    double operands_outside_bytes, operands_inside_bytes;
    double copied_outside_bytes, copied_inside_bytes;
    double adapted_bytes;   /* of outside_bytes, what adapters are given: whole on every tensor rank */
    double gathered_bytes;  /* of operands_outside_bytes, what experts are given: whole on ranks that share experts */
    double pooled_elements; /* results of max pools, whose places in their windows some keep; in no other count */
};
void dl_saved_add(struct dl_saved *sum, const struct dl_saved *part);

struct dl_layer {
    uint32_t index;                               /* in the model; set by dl_workload_read */
    const char *name;                             /* "embedding", "block", "head", "conv3_1" */
    double parameters_inside, parameters_outside; /* divided by tensor parallelism, and not; a tied head has none */
    double expert_parameters;                     /* divided by expert parallelism; not in the two above */
    double frozen_inside, frozen_outside;         /* parameters that are not trained; not in those above */
    double n_tensors;                             /* that the parameters are: optimizers go through them one by one */
    struct dl_work *forward, *backward;
    size_t n_forward, n_backward;
    size_t n_needed; /* of forward: what comes after makes nothing that the backward needs */
    struct dl_saved saved;
    struct dl_saved saved_by[DL_N_MODULES]; /* of these, what modules need not keep if they are recomputed */
    double key_heads;                       /* heads of keys and values that its attention has, with copies; 0: none */
    double state_groups;                    /* of heads that its mixer of a state space has; 0: none */
    double output_elements;                 /* what the next layer gets */
    double logits;                          /* elements that a loss is computed from, divided by tensor parallelism */
    double whole_logits;                    /* and such of which each of its ranks has all */
    bool is_block;                          /* one of the equal layers that pipeline stages are counted in */
    bool is_further;                        /* such a layer, but of a module that predicts further tokens */
    bool is_wide;                           /* its products never have quantised operands: see dl_model_widen */
};

/* Which experts of a layer a token goes to: top_k of them, all in top_groups of the groups of neighbours. */
struct dl_routing {
    double experts, top_k, groups, top_groups; /* experts 0: there are none; 1 group: any will do */
};
/* Of so many equal parts of the experts, each of neighbours, those in which a token has any, on average, if all experts
 * are as likely. */
double dl_routing_visits(const struct dl_routing *routing, double parts);

/* How samples are stored, which decides what it takes to unpack one. */
enum dl_packing { DL_PACKED_RAW, DL_PACKED_GZIP, DL_PACKED_JPEG, DL_N_PACKINGS };
extern const char *const dl_packings[]; /* their names; then NULL */

/* What the model is trained with: so many samples, each so large where it is stored and where the device gets it. */
struct dl_samples {
    double count, stored_bytes, device_bytes; /* stored_bytes 0: the file does not say */
    int64_t packing;                          /* enum dl_packing */
};

struct dl_model {
    const char *name;
    struct dl_layer *layers;
    size_t n_layers;
    double samples;           /* of the micro-batch that it was built for */
    double tokens_per_sample; /* 0: not a language model */
    double hidden;
    double model_flop_per_sample[DL_N_FLOP_COUNTS]; /* forward and backward, no recomputation, no padding: for MFU */
    bool has_encoder;                               /* before the decoder, whose blocks attend to what it made */
    bool tied_embedding;                            /* the head's weights are the embedding's parameters_inside */
    struct dl_routing routing;                      /* of all layers that have experts */
    uint32_t key_copies; /* neighbouring tensor ranks that need the same head of keys; the layers are as wide as if each
                            had its own; 0: none do */
    double copied_parameters; /* that the layers have more than the model, for these copies */
    struct dl_samples data;
    const char *lacks_adapters; /* where they are asked for: why there are none; NULL: there are */
};

/* How the code of a framework writes a model down. */
struct dl_model_code {
    const char *attention;  /* "unfused" or "flash" */
    bool unfused_groups;    /* where several heads of queries share one of keys, it is unfused */
    bool without_dropout;   /* there is none where the model's file does not say */
    bool projections_apart; /* linear layers that share their input are products of their own, if the model has them so
                             */
    bool gathers_key_heads; /* with fewer heads of keys and values than ranks: ranks compute parts of these and gather
                               them; else each has a copy of the weights of its head */
    uint32_t head_ways;     /* tensor ranks that share the heads of attention, of which each needs keys; 0: one */
    struct dl_adapters adapters;
    uint32_t wide_first, wide_last; /* blocks at both ends of the model that are wide, see dl_model_widen */
};

/* What a builder is asked for besides its options. */
struct dl_build {
    struct dl_json doc; /* for the places of errors */
    double samples;
    bool flash, unfused_groups, projections_apart, without_dropout, gathers_key_heads; /* as in struct dl_model_code */
    uint32_t head_ways;
    struct dl_adapters adapters;
    struct dl_arena *arena; /* what the model points to lives here */
};

struct dl_workload_kind {
    const char *name, *doc;
    const struct dl_field *fields;
    size_t n_fields, options_size;
    const void *defaults;
    enum dl_status (*build)(const void *options, const struct dl_build *build, struct dl_model *out,
                            struct dl_error *err); /* REQUIRED */
};
size_t dl_workload_count(void);
const struct dl_workload_kind *dl_workload_get(size_t index);

/* Schema dlsim/workload/1: {"kind": "transformer", "layers": 96, ...}. */
enum dl_status dl_workload_read(struct dl_json doc, double samples, struct dl_model_code code, struct dl_arena *arena,
                                struct dl_model *out, struct dl_error *err);

/* From now on the products of a layer have no quantised operands, whatever those of others have. */
void dl_layer_widen(struct dl_layer *layer, struct dl_arena *arena);

/* From now on so many blocks at its start and at its end have no quantised operands, whatever those of others have;
 * blocks of modules that predict further tokens (is_further) are not among them. */
void dl_model_widen(struct dl_model *model, uint32_t first, uint32_t last, struct dl_arena *arena);
/* Of which these may be. */
uint32_t dl_model_blocks(const struct dl_model *model);

/* Multiplications and additions of GEMMs, convolutions, attention and scans; 0 for what else is bound by memory. */
double dl_kernel_flop(const struct dl_kernel *k);
/* All dimensions that its numbers have. */
dl_dimensions dl_kernel_all_dimensions(const struct dl_kernel *k);
/* Of attention between its projections: no operand is weights. */
bool dl_kernel_is_core_attention(const struct dl_kernel *k);
/* A GEMM or a convolution. */
bool dl_kernel_is_product(const struct dl_kernel *k);
/* A GEMM with a matrix of weights: not one of attention's core. */
bool dl_kernel_is_linear(const struct dl_kernel *k);
/* Its tokens are at their experts. */
bool dl_kernel_is_of_experts(const struct dl_kernel *k);
/* The same as counted, of a kernel that does so many. */
double dl_counted_flop(const struct dl_kernel *k, double flop, enum dl_flop_count count);
/* "gemm", "grouped_gemm" among experts, "attention", "conv", or what a kernel that is bound by memory does: as tables
 * of measured times call it. */
const char *dl_kernel_operation(const struct dl_kernel *k);
/* It is a product whose result others wait for, so that pieces of it can go beside those of a collective. */
bool dl_work_has_pieces(const struct dl_work *work);
/* Those that are trained. */
double dl_layer_parameters(const struct dl_layer *layer);
/* Elements of the tokens that are copied for experts, each counted once; 0: none are. */
double dl_layer_tokens(const struct dl_layer *layer);
double dl_model_parameters(const struct dl_model *model);
double dl_model_frozen(const struct dl_model *model); /* and those that are not */
/* The first kernel of its forward of which is_it is true; NULL if there is none. */
const struct dl_kernel *dl_model_find(const struct dl_model *model, bool (*is_it)(const struct dl_kernel *));

#endif
