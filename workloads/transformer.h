/* transformer.h - what the parts of a transformer share: its options and the block that is being written down. */
#ifndef DL_WORKLOADS_TRANSFORMER_H
#define DL_WORKLOADS_TRANSFORMER_H

#include "workloads/tape.h"

enum dl_norm { DL_LAYERNORM, DL_RMSNORM };
enum dl_activation { DL_GELU, DL_RELU, DL_SWIGLU, DL_GEGLU, DL_CLAMPED_SWIGLU, DL_SQUARED_RELU };
extern const char *const dl_activations[];   /* their names */
extern const char *const dl_norms[];         /* those of norms */
enum dl_projections { DL_JOINED, DL_APART }; /* the matrices of queries, keys and values, and those of a gated layer */
enum dl_positions { DL_LEARNED, DL_ROTARY, DL_NO_POSITIONS, DL_YARN, DL_ALIBI, DL_RELATIVE };

/* 0 in an option that may be absent: what its doc in the table of fields says. */
struct dl_transformer {
    int64_t layers, hidden, ffn, heads, kv_heads, head_size, seq, vocab;
    int64_t encoder_layers, encoder_seq; /* blocks before these, and what they read; 0: there is no encoder */
    int64_t norm, activation, positions; /* the enums above */
    int64_t projections;                 /* enum dl_projections */
    bool bias, dropout, causal, tied_embedding;
    bool embedding_norm, final_norm, head_transform, qk_norm;
    bool qkv_bias, attention_dropout, ffn_dropout;
    bool post_norms, joint_qk_norm, logit_cap, layer_scale;
    int64_t token_types;
    int64_t patch; /* 0: tokens are words, not parts of an image */
    /* Mixture of experts */
    int64_t experts, top_k, expert_groups, top_groups, expert_ffn, expert_hidden, shared_experts, shared_ffn,
        dense_layers, moe_every;
    int64_t window, full_attention_every; /* 0: none */
    double capacity_factor;
    bool routes_by_gemms;
    /* Latent attention */
    int64_t q_rank, kv_rank, rope_size, value_size;
    int64_t parallel_norms; /* of attention and feed-forward side by side; 0: they follow each other */
    int64_t mtp_layers;     /* modules that predict tokens after the next one */
    bool mtp_wide;          /* whose products are never quantised */
    /* Layers one by one, and the mixers of state spaces among them */
    const char *pattern; /* NULL: blocks of attention and feed-forward */
    int64_t state_heads, state_head_size, state_size, state_groups, state_window, state_chunk;
    int64_t key_copies; /* of each head of keys and values, as tensor ranks have them; not in the file */
};

/* A layer of a transformer on its tape. */
struct dl_block {
    const struct dl_transformer *o; /* complete: nothing is 0 that has another default */
    struct dl_tape tape;
    double samples;
    double seq;      /* tokens of a sample that it works on: the encoder's or the decoder's */
    bool causal;     /* they attend to earlier ones only */
    bool crosses;    /* they attend to what the encoder made of its own */
    double tokens;   /* samples x seq */
    double elements; /* tokens x hidden */
    bool flash;
    bool apart;             /* the linear layers of one input are products of their own */
    bool in_windows;        /* its tokens attend to the last `window` ones only */
    bool gathers_key_heads; /* as in struct dl_model_code */
    struct dl_adapters adapters;
    bool is_first;   /* among the blocks, of the encoder or the decoder */
    bool is_encoder; /* of the encoder before a decoder */
    bool sums_later; /* what the second product of a pair makes is added to what another makes before it leaves */
};

/* From now on it works on the tokens of the encoder, or on those of the decoder, which are all where there is none. */
void dl_block_turn_to_encoder(struct dl_block *block);
void dl_block_turn_to_decoder(struct dl_block *block);

/* A norm of `elements` in rows of `width`; what it is given is kept by another. */
void dl_block_add_norm(struct dl_block *block, const char *name, dl_dimensions by, double elements, double width);

/* A norm over rows of `width`, of which there is one for each token; outside of what is cut. */
void dl_block_norm(struct dl_block *block, const char *name, double width);

/* The same over rows of `width` of each of so many heads; inside. */
void dl_block_head_norm(struct dl_block *block, const char *name, double heads, double width);

/* The same over all of so many heads of a token at once, which several ranks have parts of. */
void dl_block_joint_norm(struct dl_block *block, const char *name, double heads);

/* Bias, dropout and the addition to what went around. */
void dl_block_residual(struct dl_block *block);

/* The same, after what some models have before it: a norm of this name, and a factor of each channel. */
void dl_block_finish_half(struct dl_block *block, const char *norm);

/* What a linear layer is given, inside or outside of pairs, is saved for its backward; is_needed_wide: and for
 * something else, which has no use for a narrow copy. */
void dl_block_save_operand(struct dl_block *block, double elements, dl_dimensions by, bool is_needed_wide,
                           enum dl_adapter_target target);

/* A linear layer: the first of a pair, the second, or of none. */
void dl_block_linear(struct dl_block *block, const char *name, double outputs, double inputs,
                     struct dl_kernel_dimensions by, enum dl_adapter_target target);

/* An adapter on a linear layer, before that, where gradients of what both are given are summed, and after it; and what
 * a frozen layer and so many adapters keep of what they are given. */
struct dl_adapted {
    double inputs, outputs; /* of the layer */
    struct dl_kernel_dimensions by;
};
bool dl_block_is_frozen(const struct dl_block *block);
bool dl_block_is_target(const struct dl_block *block, enum dl_adapter_target target);
void dl_block_before_adapter(struct dl_block *block, const struct dl_adapted *on);
void dl_block_adapter(struct dl_block *block, const struct dl_adapted *on);
void dl_block_save_frozen(struct dl_block *block, double elements, dl_dimensions by, bool is_needed,
                          enum dl_adapter_target target);
/* Why the model can have none; NULL: it can. */
const char *dl_transformer_lacks_adapters(const struct dl_transformer *o);

/* Column-parallel linear layers of one input of the model's width, with biases or without: one product called `name`,
 * or one each where the code has them apart, whose input gradients are then summed. */
struct dl_branch {
    const char *name;
    double outputs;
    double for_key_heads; /* of its results: as in struct dl_work */
};
struct dl_branches {
    const char *name;
    const struct dl_branch *each;
    size_t n;
    bool has_bias;
    enum dl_adapter_target target;
};
void dl_block_branches(struct dl_block *block, const struct dl_branches *branches);

/* Layers of the model, the first and the last; dl_tape_begin for any. */
void dl_block_begin(struct dl_block *block, struct dl_layer *layer, const char *name);
void dl_block_end(struct dl_block *block, struct dl_arena *arena); /* of one that stages are counted in */
void dl_block_build_embedding(struct dl_block *block, struct dl_layer *layer, struct dl_arena *arena);
void dl_block_build_head(struct dl_block *block, struct dl_layer *layer, struct dl_arena *arena);

/* The halves of a block, from the norm to the residual. */
void dl_block_attention(struct dl_block *block);
void dl_block_feed_forward(struct dl_block *block);
void dl_block_experts(struct dl_block *block);
/* A mixer of a state space in the place of attention, likewise. */
void dl_block_mixer(struct dl_block *block);
/* The same without norm and residual. */
void dl_block_attend(struct dl_block *block);
void dl_block_feed(struct dl_block *block);
/* The first without the linear layers that make queries, keys and values. */
void dl_block_attend_to(struct dl_block *block);

/* Column-parallel linear layers that make keys and values of the tokens that the block works on, and their queries. */
struct dl_branch dl_block_queries(const struct dl_block *block, const char *name);
struct dl_branch dl_block_keys(const struct dl_block *block, const char *name);

/* Of a decoder with an encoder: what its first block begins with, and the half between attention and feed-forward.
 * While the block is turned to the encoder: what that made is kept for all of them. */
void dl_block_end_encoder(struct dl_block *block);
void dl_block_cross_attention(struct dl_block *block);
void dl_block_keep_encoded(struct dl_block *block);

/* The element-wise function between the two linear layers, on so many outputs of it; with what it saves. The module
 * keeps what it is given, if it is not that of the block around it. */
void dl_block_activation(struct dl_block *block, double elements, enum dl_block_module module);
bool dl_is_gated(const struct dl_transformer *o);

/* Refuses keys that do not go together; those of a pattern. */
enum dl_status dl_transformer_check(const struct dl_transformer *options, const struct dl_build *build,
                                    struct dl_error *err);
enum dl_status dl_pattern_check(const struct dl_transformer *options, const struct dl_build *build,
                                struct dl_error *err);
/* Tokens of a chunk of the scan. */
int64_t dl_pattern_chunk(const struct dl_transformer *options);
bool dl_pattern_has(const struct dl_transformer *options, char letter);
void dl_pattern_lay(struct dl_block *block, struct dl_layer *out, struct dl_arena *arena);

/* What experts work on over what they are sent: they fill up to their capacity, if they have one. */
double dl_expert_padding(const struct dl_transformer *o);

#endif
