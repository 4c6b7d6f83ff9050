/* megatron.h - what a Megatron-LM argument list says, between its flags and dlsim's documents.
 *
 * The rule to remember: a flag is in one table only: taken (megatron_flags.c), or with why it is not
 * (megatron_left_out.c). One that is in neither is refused by its name.
 *
 * Zero, NULL and false mean that a flag is not given, but for the dropouts, shares and numbers of wide
 * layers, which are negative then. */
#ifndef DL_IMPORT_MEGATRON_H
#define DL_IMPORT_MEGATRON_H

#include "sim/import/reasons.h"
#include "sim/import/shell.h"

/* Which model the program trains. */
enum dl_megatron_model { DL_MEGATRON_GPT, DL_MEGATRON_BERT, DL_MEGATRON_T5 };

/* Choices of flags, in the order of their words in megatron_flags.c; 0: not given. */
enum { DL_POSITIONS_LEARNED = 1, DL_POSITIONS_ROPE, DL_POSITIONS_NONE, DL_POSITIONS_YARN, DL_POSITIONS_RELATIVE };
enum { DL_NORM_LAYER = 1, DL_NORM_RMS };
enum { DL_CONTEXT_P2P = 1, DL_CONTEXT_A2A, DL_CONTEXT_ALL_GATHER, DL_CONTEXT_ALLGATHER };
enum { DL_DISPATCH_ALLGATHER = 1, DL_DISPATCH_ALLTOALL, DL_DISPATCH_FLEX };
enum { DL_SHARD_NOTHING = 1, DL_SHARD_OPTIMIZER, DL_SHARD_GRADIENTS, DL_SHARD_PARAMETERS };
enum { DL_GRANULARITY_FULL = 1, DL_GRANULARITY_SELECTIVE };
enum { DL_METHOD_UNIFORM = 1, DL_METHOD_BLOCK };
enum { DL_RECIPE_DELAYED = 1, DL_RECIPE_TENSORWISE, DL_RECIPE_BLOCKWISE, DL_RECIPE_MXFP8 };
enum { DL_OPTIMIZER_ADAM = 1, DL_OPTIMIZER_SGD };
enum { DL_BACKEND_AUTO = 1, DL_BACKEND_FLASH, DL_BACKEND_FUSED, DL_BACKEND_UNFUSED, DL_BACKEND_LOCAL };
enum { DL_IMPLEMENTATION_LOCAL = 1, DL_IMPLEMENTATION_TE };
enum { DL_GRAPH_NONE = 1, DL_GRAPH_LOCAL, DL_GRAPH_TE };
enum { DL_SUMS_FP32 = 1, DL_SUMS_BF16 };
enum { DL_LOSS_NATIVE = 1, DL_LOSS_TE };

struct dl_megatron {
    enum dl_megatron_model model;
    int64_t devices; /* that the launcher starts; 0: not said */
    /* the model */
    int64_t layers, mtp_layers, hidden, ffn, heads, query_groups, kv_channels, seq, max_positions;
    int64_t encoder_layers, decoder_layers, encoder_seq, decoder_seq;
    double encoder_stages;
    int64_t positions, norm, spec;
    const char *tokenizer;
    int64_t vocab, padded_vocab, vocab_multiple, vocab_extra;
    double hidden_dropout, attention_dropout;
    bool grouped_queries, rotary, no_positions, swiglu, squared_relu, quick_geglu, no_bias, qkv_bias, untied, qk_norm;
    bool no_binary_head, latent;
    int64_t q_rank, kv_rank, qk_head, rope_head, value_head;
    int64_t experts, top_k, expert_ffn, shared_ffn, router_groups, router_top_groups;
    double capacity;
    const char *moe_layers;
    /* the training */
    int64_t microbatch, global_batch;
    int64_t tensor, pipeline, context, expert, expert_tensor;
    bool sequence, tensor_overlap;
    int64_t virtual_layers, virtual_stages, virtual_group, first_layers, last_layers;
    bool counts_embedding, counts_loss;
    const char *layout;
    int64_t context_kind, dispatcher;
    bool expert_overlap, experts_padded, order_pipeline_first;
    bool distributed_optimizer, megatron_fsdp, custom_fsdp, torch_fsdp, torch_fsdp_keeps, grad_overlap, param_overlap;
    int64_t sharding, optimizer_instances, bucket_parameters;
    int64_t recompute, recompute_method, recompute_layers;
    const char *recompute_modules;
    bool recompute_activations, recompute_experts, checkpoint_activations;
    bool fp16, bf16, fp8_hybrid, fp8_e4m3, fp8_gather, wide_ends;
    int64_t fp8, fp8_recipe, fp4, fp4_recipe, optimizer;
    double wide_first, wide_last; /* of wide_ends */
    double sgd_momentum, offload_fraction;
    bool offload_optimizer;
    int64_t offload_layers;
    bool graphs, external_graphs;
    int64_t graph_kind;
    const char *graph_scope;
    /* the software */
    int64_t attention, implementation, loss_kind;
    double deferral_limit; /* of gradients_deferred; 0: none */
    bool gradients_deferred, loss_fusion, deterministic, grouped_experts, legacy_groups, flash, bf16_gradients,
        fp32_gradients, fp32_residual, no_scatter, no_send_overlap;
    bool precision_aware; /* what the types below need; what else it changes is told */
    int64_t gradient_type, parameter_type, moment_type, moment2_type;
};
extern const struct dl_megatron dl_megatron_defaults;

/* ---- flags ---- */

enum dl_flag_kind {
    DL_FLAG_COUNT,  /* int64_t: a whole number from 1 on */
    DL_FLAG_SHARE,  /* double, 0 to 1 */
    DL_FLAG_NUMBER, /* double from 0 on */
    DL_FLAG_SWITCH, /* bool: takes no value */
    DL_FLAG_CHOICE, /* int64_t: 1 + its number among the choices */
    DL_FLAG_WORD,   /* const char * */
    DL_FLAG_WORDS,  /* const char *: all words up to the next flag, with blanks between */
};
struct dl_megatron_flag {
    const char *name; /* without -- */
    enum dl_flag_kind kind;
    size_t offset; /* in struct dl_megatron */
    const char *const *choices;
};
size_t dl_megatron_flag_count(void);
const struct dl_megatron_flag *dl_megatron_flag_get(size_t index);

/* Why a flag is not taken. NULL: no such flag is known. */
const struct dl_reason *dl_megatron_reason_of(const char *flag);

/* ---- reading ---- */

struct dl_megatron_reading {
    struct dl_megatron *m;
    const char *where;
    struct dl_arena *arena;
    struct dl_imported *out;
};
/* The place of a flag for errors: FILE: --flag. */
const char *dl_megatron_place(const struct dl_megatron_reading *r, const char *flag);
void dl_megatron_leave(const struct dl_megatron_reading *r, const char *key, const char *value, bool matters,
                       const char *why);
enum dl_status dl_megatron_read_flags(struct dl_megatron_reading *r, const struct dl_shell_words *arguments,
                                      struct dl_error *err);
void dl_megatron_read_launcher(struct dl_megatron_reading *r, const struct dl_launch *launch);

/* ---- documents ---- */

/* Each fills one document of `out`; those of the strategy and the software come together. */
/* Which flags are the encoder's and which the decoder's; before all that reads layers and lengths. */
enum dl_status dl_megatron_settle_encoder(const struct dl_megatron_reading *r, struct dl_error *err);
enum dl_status dl_megatron_workload(struct dl_megatron_reading *r, struct dl_error *err);
enum dl_status dl_megatron_strategy(struct dl_megatron_reading *r, struct dl_error *err);
/* A part of it: `precision`, and blocks that stay wide. */
enum dl_status dl_megatron_precision(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err);
/* An entry of the stack for the pipeline, into the object that has its name. */
enum dl_status dl_megatron_pipeline(struct dl_megatron_reading *r, json_t *entry, struct dl_error *err);
/* NULL: as shipped, or err says what is wrong. */
json_t *dl_megatron_software(struct dl_megatron_reading *r, struct dl_error *err);
/* What a layout has: how many blocks each part of the model, as a JSON list (NULL: it is no layout), and how many of
 * these predict further tokens, which come last, in the parts from one to another. */
struct dl_megatron_layout {
    json_t *blocks;
    int64_t n_layers, n_further, first_further, last_further;
};
struct dl_megatron_layout dl_megatron_layout_of(const char *text);
/* The first blocks without experts, from a list such as ([0]*3+[1]*11) or a number; -1: another pattern. */
int64_t dl_megatron_dense_layers(const char *pattern, int64_t n_layers, int64_t *every);

#endif
