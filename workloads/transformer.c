/* transformer.c - GPT, BERT, T5, Llama, mixtures of experts and ViT: an embedding, blocks, and a head that ends in the
 * loss.
 */
#include "workloads/transformer.h"

#include <stddef.h>
#include <string.h>

#include "workloads/workloads.h"

#define MAX_SIZE 16777216.0 /* 2^24: no width or length of a model comes near */
#define MAX_LAYERS 100000.0
#define AT(member) offsetof(struct dl_transformer, member)

const char *const dl_norms[] = {"layernorm", "rmsnorm", NULL};
const char *const dl_activations[] = {"gelu", "relu", "swiglu", "geglu", "clamped_swiglu", "squared_relu", NULL};
static const char *const projections[] = {"joined", "apart", NULL}; /* as enum dl_projections */
static const char *const positions[] = {"learned", "rotary", "none", "yarn", "alibi", "relative", NULL};

static const struct dl_transformer defaults = {
    .bias = true, .dropout = true, .causal = true, .tied_embedding = true, .final_norm = true, .moe_every = 1};
static const struct dl_field fields[] = {
    {"layers", DL_INT, AT(layers), 1, MAX_LAYERS, false, NULL, "blocks"},
    {"hidden", DL_INT, AT(hidden), 1, MAX_SIZE, false, NULL, "width of the model"},
    {"heads", DL_INT, AT(heads), 1, MAX_SIZE, true, NULL, "attention heads, needed for any attention; none if absent"},
    {"seq", DL_INT, AT(seq), 1, MAX_SIZE, false, NULL,
     "tokens of a sample; of an image, its patches and the class token"},
    {"encoder_layers", DL_INT, AT(encoder_layers), 1, MAX_LAYERS, true, NULL,
     "blocks of an encoder, to what these make of another sequence all blocks attend (Vaswani et al. 2017, T5); there "
     "is no encoder if absent"},
    {"encoder_seq", DL_INT, AT(encoder_seq), 1, MAX_SIZE, true, NULL,
     "tokens of a sample that the encoder reads, beside the seq of the decoder; needed with encoder_layers"},
    {"vocab", DL_INT, AT(vocab), 1, MAX_SIZE, false, NULL,
     "size of the vocabulary, padded as in the run; of images, the number of classes"},
    {"ffn", DL_INT, AT(ffn), 1, MAX_SIZE, true, NULL, "width between the linear layers; 4 hidden if absent"},
    {"kv_heads", DL_INT, AT(kv_heads), 1, MAX_SIZE, true, NULL, "heads of keys and values; heads if absent"},
    {"head_size", DL_INT, AT(head_size), 1, MAX_SIZE, true, NULL, "width of a head; hidden / heads if absent"},
    {"norm", DL_CHOICE, AT(norm), 0, 0, true, dl_norms, "kind of normalisation; layernorm if absent"},
    {"activation", DL_CHOICE, AT(activation), 0, 0, true, dl_activations, "between the linear layers; gelu if absent"},
    {"positions", DL_CHOICE, AT(positions), 0, 0, true, positions,
     "how positions are encoded; yarn is rotary with scaled cosines and sines, alibi a bias of scores by their "
     "distance, relative one that is learned (T5), with scores in memory; learned if absent"},
    {"projections", DL_CHOICE, AT(projections), 0, 0, true, projections,
     "matrices of queries, keys and values, and those of a gated layer, as one tensor or several (software may fuse "
     "several); joined if absent"},
    {"bias", DL_BOOL, AT(bias), 0, 0, true, NULL, "linear layers have biases; true if absent"},
    {"qkv_bias", DL_BOOL, AT(qkv_bias), 0, 0, true, NULL,
     "those of queries, keys and values have biases; as bias says if absent"},
    {"dropout", DL_BOOL, AT(dropout), 0, 0, true, NULL, "whether there is dropout; true if absent"},
    {"attention_dropout", DL_BOOL, AT(attention_dropout), 0, 0, true, NULL,
     "whether scores of attention have dropout; as dropout says if absent"},
    {"ffn_dropout", DL_BOOL, AT(ffn_dropout), 0, 0, true, NULL,
     "with dropout: what the function between the linear layers makes has it, too (T5, nn.Transformer of PyTorch); "
     "false if absent"},
    {"causal", DL_BOOL, AT(causal), 0, 0, true, NULL, "tokens attend only to earlier ones; true if absent"},
    {"tied_embedding", DL_BOOL, AT(tied_embedding), 0, 0, true, NULL,
     "the head shares the weights of the embedding; true if absent"},
    {"embedding_norm", DL_BOOL, AT(embedding_norm), 0, 0, true, NULL, "a norm after the embedding; false if absent"},
    {"final_norm", DL_BOOL, AT(final_norm), 0, 0, true, NULL, "a norm before the head; true if absent"},
    {"qk_norm", DL_BOOL, AT(qk_norm), 0, 0, true, NULL, "norms of the queries and keys of each head; false if absent"},
    {"joint_qk_norm", DL_BOOL, AT(joint_qk_norm), 0, 0, true, NULL,
     "with qk_norm: over all heads of a token at once, as OLMo 2 has them; false if absent"},
    {"post_norms", DL_BOOL, AT(post_norms), 0, 0, true, NULL,
     "a norm behind each half of a block, too, before it is added (Gemma 2); false if absent"},
    {"layer_scale", DL_BOOL, AT(layer_scale), 0, 0, true, NULL,
     "a learned factor of each channel behind each half of a block (DINOv2); false if absent"},
    {"logit_cap", DL_BOOL, AT(logit_cap), 0, 0, true, NULL,
     "a tanh that keeps logits below a number (Gemma 2); false if absent"},
    {"head_transform", DL_BOOL, AT(head_transform), 0, 0, true, NULL,
     "one more linear layer and norm in the head (BERT); false if absent"},
    {"token_types", DL_INT, AT(token_types), 0, MAX_SIZE, true, NULL,
     "kinds of tokens with an embedding each (BERT); 0 if absent"},
    {"patch", DL_INT, AT(patch), 1, MAX_SIZE, true, NULL,
     "of a vision transformer: values of a patch, which a linear layer makes a token of; tokens are words if absent"},
    {"experts", DL_INT, AT(experts), 2, MAX_SIZE, true, NULL, "routed experts of a layer; none if absent"},
    {"top_k", DL_INT, AT(top_k), 1, MAX_SIZE, true, NULL, "experts that a token is routed to; needed with experts"},
    {"expert_groups", DL_INT, AT(expert_groups), 1, MAX_SIZE, true, NULL,
     "groups of neighbouring experts, a few of which are chosen for a token first; 1 if absent"},
    {"top_groups", DL_INT, AT(top_groups), 1, MAX_SIZE, true, NULL,
     "of these groups, those that a token is routed to; needed with expert_groups"},
    {"expert_ffn", DL_INT, AT(expert_ffn), 1, MAX_SIZE, true, NULL, "ffn of an expert; ffn if absent"},
    {"expert_hidden", DL_INT, AT(expert_hidden), 1, MAX_SIZE, true, NULL,
     "width that tokens are brought to before they go to routed experts, and back from (LatentMoE); hidden if absent"},
    {"shared_experts", DL_INT, AT(shared_experts), 0, MAX_SIZE, true, NULL,
     "experts that all tokens go to; 0 if absent"},
    {"shared_ffn", DL_INT, AT(shared_ffn), 1, MAX_SIZE, true, NULL, "ffn of each of these; expert_ffn if absent"},
    {"dense_layers", DL_INT, AT(dense_layers), 0, MAX_LAYERS, true, NULL, "first blocks without experts; 0 if absent"},
    {"moe_every", DL_INT, AT(moe_every), 1, MAX_LAYERS, true, NULL,
     "the last of so many blocks has experts; 1 if absent"},
    {"window", DL_INT, AT(window), 1, MAX_SIZE, true, NULL,
     "tokens attend to so many, themselves and those before them; to all before them if absent"},
    {"full_attention_every", DL_INT, AT(full_attention_every), 1, MAX_LAYERS, true, NULL,
     "with window: the last of so many blocks attends to all; none does if absent"},
    {"capacity_factor", DL_NUMBER, AT(capacity_factor), 1, MAX_SIZE, true, NULL,
     "tokens that experts compute over those of an even load; as many as are routed if absent"},
    {"routes_by_gemms", DL_BOOL, AT(routes_by_gemms), 0, 0, true, NULL,
     "tokens reach the places of their experts, and come back, by GEMMs with one-hot matrices (GShard; MaxText with a "
     "capacity), not by copies; false if absent"},
    {"q_rank", DL_INT, AT(q_rank), 1, MAX_SIZE, true, NULL,
     "of latent attention: width of queries; full width if absent"},
    {"kv_rank", DL_INT, AT(kv_rank), 1, MAX_SIZE, true, NULL,
     "of latent attention: width of keys and values; no latent attention if absent"},
    {"rope_size", DL_INT, AT(rope_size), 1, MAX_SIZE, true, NULL,
     "of latent attention: rotated part of a head, added; 0 if absent"},
    {"value_size", DL_INT, AT(value_size), 1, MAX_SIZE, true, NULL, "width of a head's values; head_size if absent"},
    {"parallel_norms", DL_INT, AT(parallel_norms), 1, 2, true, NULL,
     "attention and feed-forward side by side on the input of a block, after one norm (GPT-J, PaLM) or one each "
     "(GPT-NeoX), their results summed together; one after the other if absent"},
    {"mtp_layers", DL_INT, AT(mtp_layers), 0, MAX_LAYERS, true, NULL,
     "modules that predict one further token each (DeepSeek-V3): a linear layer, a block and the head again; 0 if "
     "absent"},
    {"mtp_wide", DL_BOOL, AT(mtp_wide), 0, 0, true, NULL,
     "their products stay in bf16 where others are quantised (Megatron-Core: keep_mtp_spec_in_bf16); false if absent"},
    {"pattern", DL_TEXT, AT(pattern), 0, 0, true, NULL,
     "layers one by one, a letter with a norm and a residual each: M for the mixer of a state space (Mamba-2), * for "
     "attention, - for a feed-forward, E for experts (Nemotron-H's hybrid_override_pattern); blocks of attention and "
     "feed-forward if absent"},
    {"state_heads", DL_INT, AT(state_heads), 1, MAX_SIZE, true, NULL, "of M: heads; needed with it"},
    {"state_head_size", DL_INT, AT(state_head_size), 1, MAX_SIZE, true, NULL, "of M: width of a head; needed with it"},
    {"state_size", DL_INT, AT(state_size), 1, MAX_SIZE, true, NULL,
     "of M: state of a column of a head; needed with it"},
    {"state_groups", DL_INT, AT(state_groups), 1, MAX_SIZE, true, NULL,
     "of M: groups of heads that share what goes into their states and out of them; 1 if absent"},
    {"state_window", DL_INT, AT(state_window), 1, MAX_SIZE, true, NULL,
     "of M: tokens that the short convolution sees; 4 if absent"},
    {"state_chunk", DL_INT, AT(state_chunk), 1, MAX_SIZE, true, NULL,
     "of M: tokens of a chunk of the scan, over which the kernels go at once; the smaller of 128 and seq if "
     "absent"},
};

void dl_block_begin(struct dl_block *b, struct dl_layer *layer, const char *name)
{
    dl_tape_begin(&b->tape, layer, name);
    b->tape.frozen = dl_block_is_frozen(b);
    b->tape.is_below = b->tape.frozen && b->is_first;
    layer->output_elements = b->elements;
}

void dl_block_end(struct dl_block *b, struct dl_arena *arena)
{
    b->tape.layer->is_block = true;
    b->tape.layer->saved.input_bytes = DL_ACTIVATION_BYTES * b->elements;
    dl_tape_end(&b->tape, arena);
}

/* What a block of multi-token prediction begins with (DeepSeek-V3, arXiv 2412.19437, 2.2): the vector of a token and
 * the embedding of the next, each after a norm, become one. The table is the embedding's. */
static void join_next_token(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden, joined = 2;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"look-up", DL_ACTIVATION, .forward = 2 * b->elements,
                                                  .weight_gradient = 3 * b->elements, .operation = "embedding"});
    dl_block_norm(b, "embedding_norm", hidden);
    dl_block_norm(b, "hidden_norm", hidden);
    dl_block_save_operand(b, joined * b->elements, DL_ACTIVATION, false, DL_NO_TARGET);
    dl_block_linear(b, "join", hidden, joined * hidden, dl_of_no_pair, DL_NO_TARGET);
}

/* Both take the input of the block; partial sums of both are added before they leave (GPT-J; GPT-NeoX, Black et al.
 * 2022, arXiv 2204.06745, 2.1; PaLM, arXiv 2204.02311, 2). What two norms are given is kept once. */
static void add_halves_in_parallel(struct dl_block *b)
{
    const double hidden = (double)b->o->hidden;
    dl_block_norm(b, "norm1", hidden);
    if (b->o->parallel_norms == 2) dl_block_add_norm(b, "norm2", DL_ACTIVATION, b->elements, hidden);
    b->sums_later = true;
    dl_block_attend(b);
    b->sums_later = false;
    if (b->o->parallel_norms == 2) {
        dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_TARGET_FC1);
        dl_tape_enter(&b->tape, b->elements);
    }
    dl_block_feed(b);
    dl_block_residual(b);
    dl_block_residual(b);
}

/* Beside an encoder. */
static bool is_decoder(const struct dl_block *b) { return b->o->encoder_layers && !b->is_encoder; }

static void build_block(struct dl_block *b, bool has_experts, bool predicts, struct dl_layer *layer,
                        struct dl_arena *arena)
{
    dl_block_begin(b, layer, "block");
    if (predicts) join_next_token(b);
    if (is_decoder(b) && b->is_first) dl_block_end_encoder(b);
    if (b->o->parallel_norms) {
        add_halves_in_parallel(b);
    } else {
        dl_block_attention(b);
        if (is_decoder(b)) dl_block_cross_attention(b);
        if (has_experts)
            dl_block_experts(b);
        else
            dl_block_feed_forward(b);
    }
    dl_block_end(b, arena);
    layer->is_further = predicts;
}

static struct dl_transformer completed(const struct dl_transformer *given)
{
    const int64_t ffn_of_hidden = 4; /* Vaswani et al. 2017, and GPT since */
    struct dl_transformer o = *given;
    if (!o.ffn) o.ffn = ffn_of_hidden * o.hidden;
    if (!o.heads) o.heads = 1; /* nothing attends */
    if (!o.kv_heads) o.kv_heads = o.heads;
    if (!o.head_size) o.head_size = o.hidden / o.heads;
    if (!o.state_groups) o.state_groups = 1;
    if (!o.state_window) o.state_window = 4; /* Mamba-2 (arXiv 2405.21060), and mamba_ssm's default */
    if (!o.state_chunk) o.state_chunk = dl_pattern_chunk(given);
    if (!o.value_size) o.value_size = o.head_size;
    if (!o.expert_ffn) o.expert_ffn = o.ffn;
    if (!o.shared_ffn) o.shared_ffn = o.expert_ffn;
    if (!o.expert_hidden) o.expert_hidden = o.hidden;
    if (!o.expert_groups) o.expert_groups = o.top_groups = 1;
    o.key_copies = 1;
    return o;
}

static bool block_has_experts(const struct dl_transformer *o, int64_t block)
{
    if (o->pattern) return dl_pattern_has(o, 'E'); /* of a block that predicts */
    return o->experts && block >= o->dense_layers && (block - o->dense_layers + 1) % o->moe_every == 0;
}

/* A window that holds the whole sample is none. */
static bool block_has_window(const struct dl_transformer *o, int64_t block)
{
    if (o->window == 0 || o->window >= o->seq) return false;
    return o->full_attention_every == 0 || (block + 1) % o->full_attention_every != 0;
}

/* Blocks that are alike are the same one: with windows or without, with experts or without. */
static void lay_blocks(struct dl_block *b, int64_t n, struct dl_layer *out, struct dl_arena *arena)
{
    struct dl_layer made[2][2];
    bool is_made[2][2] = {{false}};
    for (int64_t i = 0; i < n; i++) {
        const bool in_windows = block_has_window(b->o, i), has_experts = block_has_experts(b->o, i);
        struct dl_layer *const block = &made[in_windows][has_experts];
        b->in_windows = in_windows;
        b->is_first = i == 0;
        if (!is_made[in_windows][has_experts]) build_block(b, has_experts, false, block, arena);
        /* Below the first nothing is trained, or the encoder ends in it. */
        is_made[in_windows][has_experts] = !(b->is_first && (dl_block_is_frozen(b) || is_decoder(b)));
        out[i] = *block;
    }
    b->in_windows = b->is_first = false;
}

static void lay_encoder(struct dl_block *b, struct dl_layer *out, struct dl_arena *arena)
{
    b->is_encoder = true;
    dl_block_turn_to_encoder(b);
    lay_blocks(b, b->o->encoder_layers, out, arena);
    b->is_encoder = false;
    dl_block_turn_to_decoder(b);
}

static void set_flop(const struct dl_transformer *o, struct dl_model *out)
{
    const double passes = 3; /* backward has two products for each of forward, but for the first layer */
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) {
        double forward = 0, unneeded = 0;
        for (size_t i = 0; i < out->n_layers; i++) {
            forward += dl_layer_model_flop(&out->layers[i], dl_expert_padding(o), (enum dl_flop_count)count);
            unneeded += dl_layer_unneeded_flop(&out->layers[i], (enum dl_flop_count)count);
        }
        const double first = dl_layer_model_flop(&out->layers[0], 1, (enum dl_flop_count)count);
        out->model_flop_per_sample[count] = (passes * forward - first - unneeded) / out->samples;
    }
}

static void lay_model(const struct dl_transformer *o, const struct dl_build *build, struct dl_model *out)
{
    struct dl_block b = {.o = o, .samples = build->samples};
    dl_block_turn_to_decoder(&b);
    b.flash = build->flash && !(build->unfused_groups && o->kv_heads < o->heads);
    b.gathers_key_heads = build->gathers_key_heads;
    if (!out->lacks_adapters) b.adapters = build->adapters;
    b.apart = build->projections_apart && o->projections == DL_APART;
    const size_t n_encoding = (size_t)o->encoder_layers, n_blocks = n_encoding + (size_t)(o->layers + o->mtp_layers);
    struct dl_layer predicting = {0};
    if (o->mtp_layers) build_block(&b, block_has_experts(o, o->layers - 1), true, &predicting, build->arena);
    if (o->mtp_wide) dl_layer_widen(&predicting, build->arena);

    out->n_layers = n_blocks + 2;
    out->layers = dl_arena_alloc(build->arena, out->n_layers * sizeof *out->layers);
    dl_block_build_embedding(&b, &out->layers[0], build->arena);
    if (o->encoder_layers) lay_encoder(&b, &out->layers[1], build->arena);
    if (o->pattern)
        dl_pattern_lay(&b, &out->layers[1], build->arena);
    else
        lay_blocks(&b, o->layers, &out->layers[1 + n_encoding], build->arena);
    for (int64_t i = 0; i < o->mtp_layers; i++) out->layers[1 + o->layers + i] = predicting;
    dl_block_build_head(&b, &out->layers[1 + n_blocks], build->arena);
}

/* Ranks beyond the heads of keys and values share these evenly, or not at all. */
static int64_t count_key_copies(const struct dl_transformer *o, int64_t ranks)
{
    const bool shares = !o->kv_rank && ranks > o->kv_heads && ranks % o->kv_heads == 0 && o->heads % ranks == 0;
    return shares ? ranks / o->kv_heads : 1;
}

static enum dl_status build(const void *options, const struct dl_build *build, struct dl_model *out,
                            struct dl_error *err)
{
    if (dl_transformer_check(options, build, err)) return err->status;
    struct dl_transformer o = completed(options);
    if (!json_object_get(build->doc.value, "qkv_bias")) o.qkv_bias = o.bias;
    if (build->without_dropout && !json_object_get(build->doc.value, "dropout")) o.dropout = false;
    o.ffn_dropout &= o.dropout;
    if (!json_object_get(build->doc.value, "attention_dropout")) o.attention_dropout = o.dropout;
    out->lacks_adapters = dl_transformer_lacks_adapters(&o);
    lay_model(&o, build, out);
    out->tokens_per_sample = (double)(o.encoder_seq + o.seq);
    out->has_encoder = o.encoder_layers > 0;
    out->hidden = (double)o.hidden;
    out->tied_embedding = o.tied_embedding;
    out->routing =
        (struct dl_routing){(double)o.experts, (double)o.top_k, (double)o.expert_groups, (double)o.top_groups};
    set_flop(&o, out); /* of the model, not of its copies */
    o.key_copies = count_key_copies(&o, build->head_ways);
    if (o.key_copies == 1) return DL_OK;
    const double without_copies = dl_model_parameters(out);
    lay_model(&o, build, out);
    out->key_copies = (uint32_t)o.key_copies;
    out->copied_parameters = dl_model_parameters(out) - without_copies;
    return DL_OK;
}

const struct dl_workload_kind dl_workload_transformer = {
    .name = "transformer",
    .doc = "GPT, BERT, T5, Llama, ViT, mixtures of experts and hybrids with state spaces",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct dl_transformer),
    .defaults = &defaults,
    .build = build,
};
