/* attention.c - self-attention with any number of key-value heads, and the latent attention of DeepSeek-V2 and V3. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

static bool is_latent(const struct dl_transformer *o) { return o->kv_rank > 0; }

/* What a head multiplies queries and keys by, and values. */
static double key_size(const struct dl_transformer *o)
{
    return (double)(o->head_size + (is_latent(o) ? o->rope_size : 0));
}

static double value_size(const struct dl_transformer *o) { return (double)o->value_size; }

/* The keys of DeepSeek's heads share the part that is rotated, but are multiplied as if they did not. Of each other
 * head there are as many copies as ranks need it. */
static double key_heads(const struct dl_transformer *o)
{
    return (double)(is_latent(o) ? o->heads : o->kv_heads * o->key_copies);
}

/* Latent: down to small vectors in every device, then up to the heads of each (DeepSeek-V2, arXiv 2405.04434, 2.1). */
static void latent_queries_keys_values(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double q = (double)o->q_rank, kv = (double)o->kv_rank, rope = (double)o->rope_size;
    if (q > 0) {
        dl_block_linear(b, "q_down", q, (double)o->hidden, dl_of_no_pair, DL_NO_TARGET);
        b->tape.module = DL_MODULE_LATENT_UP;
        dl_block_norm(b, "q_norm", q);
        dl_block_save_operand(b, b->tokens * q, DL_ACTIVATION, false, DL_NO_TARGET); /* of q_up */
        b->tape.module = DL_NO_MODULE;
    }
    dl_block_linear(b, "kv_down", kv + rope, (double)o->hidden, dl_of_no_pair, DL_NO_TARGET);
    b->tape.module = DL_MODULE_LATENT_UP;
    dl_block_norm(b, "kv_norm", kv);
    dl_block_save_operand(b, b->tokens * kv, DL_ACTIVATION, false, DL_NO_TARGET);
    const double queries_from = q > 0 ? q : (double)o->hidden;
    dl_tape_enter(&b->tape, b->tokens * (queries_from + kv + rope));
    dl_block_linear(b, "q_up", (double)o->heads * key_size(o), queries_from, dl_first_of_pair, DL_NO_TARGET);
    dl_block_linear(b, "kv_up", (double)o->heads * ((double)o->head_size + value_size(o)), kv, dl_first_of_pair,
                    DL_NO_TARGET);
}

/* With fewer heads of keys than ranks each rank multiplies with a copy of its head, so that gradients of the copies'
 * results are summed. Or ranks divide all columns, which belong to nobody's heads then, so that all results are
 * gathered (Megatron-Core, transformer/attention.py, get_query_key_value_tensors). */
struct dl_branch dl_block_queries(const struct dl_block *b, const char *name)
{
    const struct dl_transformer *const o = b->o;
    const double outputs = (double)(o->heads * o->head_size);
    const bool gathers = o->key_copies > 1 && b->gathers_key_heads;
    return (struct dl_branch){name, outputs, .for_key_heads = gathers ? b->tokens * outputs : 0};
}

struct dl_branch dl_block_keys(const struct dl_block *b, const char *name)
{
    const struct dl_transformer *const o = b->o;
    const double outputs = (double)(o->kv_heads * o->head_size);
    return (struct dl_branch){name, b->gathers_key_heads ? outputs : outputs * (double)o->key_copies,
                              .for_key_heads = o->key_copies > 1 ? b->tokens * outputs : 0};
}

static void joined_queries_keys_values(struct dl_block *b)
{
    const struct dl_branch each[] = {dl_block_queries(b, "q"), dl_block_keys(b, "k"), dl_block_keys(b, "v")};
    dl_block_branches(b, &(struct dl_branches){"qkv", each, DL_COUNT(each), b->o->qkv_bias, DL_TARGET_QKV});
}

/* The norm before two products is a kernel of its own, that before one a part of it (Megatron-Core's layers of
 * Transformer Engine, models/gpt/gpt_layer_specs.py). */
static enum dl_block_module norm_module(const struct dl_transformer *o)
{
    return is_latent(o) ? DL_MODULE_NORM : DL_NO_MODULE;
}

static bool is_rotary(const struct dl_transformer *o) { return o->positions == DL_ROTARY || o->positions == DL_YARN; }

/* Queries, keys and values come of one product, and the first two are rotated. */
static bool rotates_parts(const struct dl_block *b)
{
    return is_rotary(b->o) && !is_latent(b->o) && !b->apart && !b->crosses;
}

/* Scaled cosines and sines of YaRN have a name of their own, as fused kernels may not know them; those of latent
 * attention look them up in tables. */
static void rotate(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const bool is_scaled = o->positions == DL_YARN;
    if (!is_rotary(o)) return;
    const double rotated = (double)(is_latent(o) ? o->rope_size : o->head_size);
    const double moved = 2 * b->tokens * ((double)o->heads + key_heads(o)) * rotated;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){is_scaled && !is_latent(o) ? "yarn" : "rotary", DL_INSIDE,
                                                  .forward = moved, .input_gradient = moved, .operation = "rotary",
                                                  .rotates_parts = rotates_parts(b)});
}

/* Rows are those of a head, or of all heads of a token. */
static void norm_heads(struct dl_block *b, const char *name, double heads)
{
    if (b->o->joint_qk_norm)
        dl_block_joint_norm(b, name, heads);
    else
        dl_block_head_norm(b, name, heads, (double)b->o->head_size);
}

static void queries_keys_values(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    b->tape.module = norm_module(o);
    dl_block_save_operand(b, b->elements, DL_ACTIVATION, false, DL_TARGET_QKV);
    b->tape.module = DL_NO_MODULE;
    b->tape.result = DL_RESULT_QKV;
    if (is_latent(o))
        latent_queries_keys_values(b);
    else
        joined_queries_keys_values(b);
    b->tape.result = DL_NO_RESULT;
    if (o->qk_norm) {
        norm_heads(b, "q_norm", (double)o->heads);
        norm_heads(b, "k_norm", key_heads(o));
    }
    rotate(b);
}

/* Tokens of a sample that its queries meet. */
static double keys_of(const struct dl_block *b) { return b->crosses ? (double)b->o->encoder_seq : b->seq; }

static bool is_masked(const struct dl_block *b) { return b->causal && !b->crosses; }

static bool has_position_bias(const struct dl_block *b) { return b->o->positions == DL_RELATIVE && !b->crosses; }

/* A number for each head and distance, the same for all samples (Raffel et al. 2020, arXiv 1910.10683, 2.1); its
 * gradient is that of the scores, summed over samples. */
static void add_position_bias(struct dl_block *b, double scores)
{
    const double biases = scores / b->samples;
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"position_bias", DL_INSIDE, .forward = 2 * scores + biases,
                                                  .weight_gradient = scores + 2 * biases, .only_adds = true});
}

/* Scores in memory, one kernel a product. Dropout keeps a mask and what is left beside the softmax: 5 a s^2 b bytes;
 * without it the softmax is all that backward needs: 2 a s^2 b. */
static void unfused_scores(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double heads = b->samples * (double)o->heads, seq = b->seq, keys = keys_of(b), scores = heads * seq * keys;
    const double mask = DL_MASK_BYTES / DL_ACTIVATION_BYTES;
    const dl_dimensions each = DL_BY_SAMPLE | DL_BY_INNER;
    const struct dl_kernel_dimensions scores_by = {.batch = each, .m = DL_BY_TOKEN, .n = DL_BY_TOKEN};
    const struct dl_kernel_dimensions context_by = {.batch = each, .m = DL_BY_TOKEN, .k = DL_BY_TOKEN};
    double *const saved = &dl_tape_saved(&b->tape)->scores_bytes;
    dl_tape_product(&b->tape, &(struct dl_product){"scores", heads, seq, keys, key_size(o), scores_by,
                                                   .of_activations = true, .masked = is_masked(b)});
    if (has_position_bias(b)) add_position_bias(b, scores);
    dl_tape_pass(&b->tape, &(struct dl_tape_pass){"softmax", DL_INSIDE, .forward = 2 * scores,
                                                  .input_gradient = 3 * scores, .width = keys, .matrices = heads});
    *saved += DL_ACTIVATION_BYTES * scores;
    if (o->attention_dropout) {
        const double moved = (2 + mask) * scores;
        dl_tape_pass(&b->tape, &(struct dl_tape_pass){"scores_dropout", DL_INSIDE, .forward = moved,
                                                      .input_gradient = moved, .operation = "dropout"});
        *saved += (DL_ACTIVATION_BYTES + DL_MASK_BYTES) * scores;
    }
    b->tape.result = DL_RESULT_CONTEXT;
    dl_tape_product(&b->tape, &(struct dl_product){"context", heads, seq, value_size(o), keys, context_by,
                                                   .of_activations = true, .masked = is_masked(b)});
}

/* Keys that a query meets on average: the first ones of a window meet fewer. What kernels go through beyond the edges
 * of windows is a matter of devices. */
static double keys_seen(const struct dl_block *b)
{
    const double window = (double)b->o->window;
    return b->in_windows ? window - window * (window - 1) / (2 * b->seq) : keys_of(b);
}

static void fused_attention(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    b->tape.result = DL_RESULT_CONTEXT;
    dl_tape_attention(&b->tape, &(struct dl_kernel){.batch = b->samples * (double)o->heads,
                                                    .m = b->seq,
                                                    .n = keys_seen(b),
                                                    .k = (key_size(o) + value_size(o)) / 2,
                                                    .causal = is_masked(b) && !b->in_windows,
                                                    .window = b->in_windows ? (double)o->window : 0,
                                                    .kv_share = key_heads(o) / (double)o->heads,
                                                    .drops = o->attention_dropout,
                                                    .rotates_parts = rotates_parts(b)});
}

void dl_block_attend_to(struct dl_block *b)
{
    const struct dl_transformer *const o = b->o;
    const double heads = (double)o->heads, context = heads * value_size(o);
    const double queries = b->tokens * heads * key_size(o);
    const double keys_values = b->samples * keys_of(b) * key_heads(o) * (key_size(o) + value_size(o));
    dl_tape_saved(&b->tape)->inside_bytes += DL_ACTIVATION_BYTES * (queries + keys_values);
    b->tape.module = DL_NO_MODULE;
    dl_block_save_operand(b, b->tokens * context, DL_INSIDE, b->flash,
                          DL_TARGET_PROJECTION); /* its own backward needs it, too */
    b->tape.module = DL_MODULE_CORE_ATTENTION;
    if (b->flash && !has_position_bias(b))
        fused_attention(b);
    else
        unfused_scores(b);
    b->tape.module = DL_NO_MODULE;
    b->tape.result = DL_RESULT_PROJECTION;
    dl_block_linear(b, "projection", (double)o->hidden, context, dl_second_of_pair, DL_TARGET_PROJECTION);
    b->tape.result = DL_NO_RESULT;
}

void dl_block_attend(struct dl_block *b)
{
    b->tape.layer->key_heads = key_heads(b->o);
    queries_keys_values(b);
    dl_block_attend_to(b);
}

void dl_block_attention(struct dl_block *b)
{
    b->tape.module = norm_module(b->o);
    dl_block_norm(b, "norm1", (double)b->o->hidden);
    b->tape.module = DL_NO_MODULE;
    dl_block_attend(b);
    dl_block_finish_half(b, "norm1_after");
}
