/* megatron_workload.c - the model that Megatron's flags describe, as a workload. */
#include <stdlib.h>
#include <string.h>

#include "sim/import/megatron.h"

static void set_count(const struct dl_megatron_reading *r, const char *key, int64_t value)
{
    if (value) json_object_set_new(r->out->workload, key, json_integer(value));
}

static void set_word(const struct dl_megatron_reading *r, const char *key, const char *value)
{
    json_object_set_new(r->out->workload, key, json_string(value));
}

static void set_bool(const struct dl_megatron_reading *r, const char *key, bool value)
{
    json_object_set_new(r->out->workload, key, json_boolean(value));
}

/* ---- vocabulary ---- */

/* Vocabularies that the kind of tokenizer fixes. Bert: google-research/bert. */
static const struct {
    const char *name;
    int64_t vocab; /* 0: any */
    int64_t more;  /* than --vocab-size says */
} tokenizers[] = {
    {"GPT2BPETokenizer", 50257, 0},  {"BertWordPieceLowerCase", 30522, 0},
    {"BertWordPieceCase", 28996, 0}, {"Llama2Tokenizer", 32000, 0},
    {"NullTokenizer", 0, 1}, /* an end of document */
};

static int64_t raw_vocab(const struct dl_megatron *m)
{
    const char *const usual = tokenizers[m->model != DL_MEGATRON_GPT].name; /* of its program */
    const char *const name = m->tokenizer ? m->tokenizer : usual;
    for (size_t i = 0; i < DL_COUNT(tokenizers); i++)
        if (strcmp(tokenizers[i].name, name) == 0)
            return m->vocab ? m->vocab + tokenizers[i].more : tokenizers[i].vocab;
    return m->vocab;
}

/* Padded as Megatron-LM does: to a multiple that every tensor rank gets an equal part of. */
static enum dl_status set_vocab(const struct dl_megatron_reading *r, json_t *facts, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    static const int64_t usual_multiple = 128;
    const int64_t raw = raw_vocab(m), tensor = m->tensor ? m->tensor : 1;
    const int64_t multiple = (m->vocab_multiple ? m->vocab_multiple : usual_multiple) * tensor;
    if (m->padded_vocab) {
        set_count(r, "vocab", m->padded_vocab);
        return DL_OK;
    }
    if (!raw)
        return dl_fail(err, DL_KEY, dl_megatron_place(r, "tokenizer-type"),
                       "the flags do not say how many tokens %.60s has; add --vocab-size", m->tokenizer);
    const int64_t all = raw + m->vocab_extra;
    set_count(r, "vocab", (all + multiple - 1) / multiple * multiple);
    json_object_set_new(
        facts, "vocab",
        json_string(dl_arena_format(r->arena, "%s: %lld, padded to a multiple of %lld",
                                    m->vocab ? "derived" : "assumed", (long long)all, (long long)multiple)));
    return DL_OK;
}

/* ---- parts ---- */

static void set_attention(const struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    const int64_t head = m->heads ? m->hidden / m->heads : 0;
    if (m->latent) { /* Megatron-LM, multi-latent attention: its defaults */
        set_count(r, "q_rank", m->q_rank);
        set_count(r, "kv_rank", m->kv_rank ? m->kv_rank : 32);
        set_count(r, "head_size", m->qk_head ? m->qk_head : 128);
        set_count(r, "rope_size", m->rope_head ? m->rope_head : 64);
        set_count(r, "value_size", m->value_head ? m->value_head : 128);
        return;
    }
    if (m->grouped_queries) set_count(r, "kv_heads", m->query_groups ? m->query_groups : 1);
    if (m->kv_channels && m->kv_channels != head) set_count(r, "head_size", m->kv_channels);
    if (m->qk_norm) set_bool(r, "qk_norm", true);
}

static void set_feed_forward(const struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    static const int64_t gated_multiple = 64; /* Megatron-LM: two thirds of 4 hidden, in 64s */
    const int64_t usual = m->swiglu ? 4 * m->hidden * 2 / 3 / gated_multiple * gated_multiple : 0;
    set_count(r, "ffn", m->ffn ? m->ffn : usual);
    if (m->swiglu) set_word(r, "activation", "swiglu");
    if (m->quick_geglu) set_word(r, "activation", "geglu");
    if (m->squared_relu) set_word(r, "activation", "squared_relu");
}

static void set_positions(const struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    if (m->rotary || m->positions == DL_POSITIONS_ROPE)
        set_word(r, "positions", "rotary");
    else if (m->positions == DL_POSITIONS_YARN)
        set_word(r, "positions", "yarn");
    else if (m->positions == DL_POSITIONS_RELATIVE)
        set_word(r, "positions", "relative");
    else if (m->no_positions || m->positions == DL_POSITIONS_NONE)
        set_word(r, "positions", "none");
    else if (m->max_positions && m->max_positions != (m->encoder_seq > m->seq ? m->encoder_seq : m->seq))
        dl_megatron_leave(r, "--max-position-embeddings",
                          dl_arena_format(r->arena, "%lld", (long long)m->max_positions), true,
                          "dlsim has a position for each token of a sample");
}

/* Both are 0.1 unless they are given. */
static void set_dropout(const struct dl_megatron_reading *r)
{
    const bool hidden = r->m->hidden_dropout != 0, attention = r->m->attention_dropout != 0;
    if (!hidden) set_bool(r, "dropout", false);
    if (hidden != attention) set_bool(r, "attention_dropout", attention);
}

static void set_bert(const struct dl_megatron_reading *r)
{
    if (r->m->model != DL_MEGATRON_BERT) return;
    set_bool(r, "causal", false);
    set_bool(r, "head_transform", true);
    set_count(r, "token_types", 2);
    if (!r->m->no_binary_head)
        dl_megatron_leave(r, "binary head", NULL, true, "dlsim has no head for the next sentence");
}

/* ---- experts ---- */

/* Of all of them, whose number Megatron-LM does not know: as many as others of that width, or one. */
static void set_shared_experts(const struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    const int64_t each = m->expert_ffn ? m->expert_ffn : m->ffn ? m->ffn : 4 * m->hidden;
    if (!m->shared_ffn) return;
    const bool are_several = m->shared_ffn % each == 0;
    set_count(r, "shared_experts", are_several ? m->shared_ffn / each : 1);
    if (!are_several) set_count(r, "shared_ffn", m->shared_ffn);
}

static enum dl_status set_expert_layers(const struct dl_megatron_reading *r, struct dl_error *err)
{
    int64_t every = 1;
    const int64_t dense = r->m->moe_layers ? dl_megatron_dense_layers(r->m->moe_layers, r->m->layers, &every) : 0;
    if (dense < 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "moe-layer-freq"),
                       "must be a number, or dense layers before all with experts, as in ([0]*3+[1]*9), for the %lld "
                       "layers; got '%.100s'",
                       (long long)r->m->layers, r->m->moe_layers);
    set_count(r, "dense_layers", dense);
    if (every > 1) set_count(r, "moe_every", every);
    return DL_OK;
}

static enum dl_status set_experts(const struct dl_megatron_reading *r, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    if (!m->experts) return DL_OK;
    set_count(r, "experts", m->experts);
    set_count(r, "top_k", m->top_k ? m->top_k : 2);
    if (m->expert_ffn != m->ffn) set_count(r, "expert_ffn", m->expert_ffn);
    if (m->router_groups && m->router_top_groups && m->router_groups > 1) {
        set_count(r, "expert_groups", m->router_groups);
        set_count(r, "top_groups", m->router_top_groups);
    }
    if (m->capacity > 0) json_object_set_new(r->out->workload, "capacity_factor", json_real(m->capacity));
    set_shared_experts(r);
    return set_expert_layers(r, err);
}

/* ---- the whole ---- */

/* What belongs to T5 makes it that, whatever the program is called; elsewhere the encoder's flags are other names for
 * the model's (Megatron-LM, training/arguments.py, validate_args). */
enum dl_status dl_megatron_settle_encoder(const struct dl_megatron_reading *r, struct dl_error *err)
{
    struct dl_megatron *const m = r->m;
    if (m->decoder_layers || m->decoder_seq) m->model = DL_MEGATRON_T5;
    if (!m->layers) m->layers = m->encoder_layers;
    if (!m->seq) m->seq = m->encoder_seq;
    const bool has_decoder = m->model == DL_MEGATRON_T5;
    m->encoder_layers = has_decoder ? m->layers : 0;
    m->encoder_seq = has_decoder ? m->seq : 0;
    if (has_decoder && m->decoder_layers) m->layers = m->decoder_layers;
    if (has_decoder) m->seq = m->decoder_seq;
    if (!(m->encoder_stages > 0)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "encoder-pipeline-model-parallel-size"),
                   "must be 0: dlsim divides no model with an encoder and a decoder into stages, got %g",
                   m->encoder_stages);
}

static enum dl_status check_needed(const struct dl_megatron_reading *r, struct dl_error *err)
{
    const bool has_decoder = r->m->model == DL_MEGATRON_T5;
    const struct {
        const char *flag;
        int64_t value;
    } needed[] = {{"num-layers", r->m->layers},
                  {"hidden-size", r->m->hidden},
                  {"num-attention-heads", r->m->heads},
                  {"encoder-seq-length", has_decoder ? r->m->encoder_seq : 1},
                  {has_decoder ? "decoder-seq-length" : "seq-length", r->m->seq}};
    const size_t told = err->n_told;
    for (size_t i = 0; i < DL_COUNT(needed); i++) {
        if (needed[i].value) continue;
        dl_fail(err, DL_KEY, dl_megatron_place(r, needed[i].flag), "must be given: the model needs it");
        if (!dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

enum dl_status dl_megatron_workload(struct dl_megatron_reading *r, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    if (check_needed(r, err)) return err->status;
    json_t *const facts = json_pack("{ss}", "*", "published: the flags, and Megatron-LM's defaults");
    r->out->workload =
        json_pack("{ss ss ss so}", "schema", "dlsim/workload/1", "source",
                  dl_arena_format(r->arena, "%s, %s", r->where, r->out->what), "kind", "transformer", "facts", facts);
    set_count(r, "layers", m->layers);
    set_count(r, "encoder_layers", m->encoder_layers);
    set_count(r, "mtp_layers", m->mtp_layers);
    set_count(r, "hidden", m->hidden);
    set_count(r, "heads", m->heads);
    set_count(r, "seq", m->seq);
    set_count(r, "encoder_seq", m->encoder_seq);
    const size_t told = err->n_told;
    if (set_vocab(r, facts, err) && !dl_go_on(err)) return err->status;
    set_attention(r);
    set_feed_forward(r);
    set_positions(r);
    if (m->norm == DL_NORM_RMS) set_word(r, "norm", "rmsnorm");
    if (m->no_bias) set_bool(r, "bias", false);
    if (m->no_bias && m->qkv_bias) set_bool(r, "qkv_bias", true);
    if (m->untied) set_bool(r, "tied_embedding", false);
    set_dropout(r);
    set_bert(r);
    if (set_experts(r, err) && !dl_go_on(err)) return err->status;
    return dl_stop_if_told(err, told);
}
