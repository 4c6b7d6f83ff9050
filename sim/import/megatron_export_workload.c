/* megatron_export_workload.c - a transformer as Megatron's flags of the model. */
#include <string.h>

#include "sim/import/megatron_export.h"

static const char no_flag[] = "Megatron-LM has no flag for it";

/* Whole numbers that have a flag of their own; of_decoder: another one beside an encoder. */
static const struct {
    const char *key, *flag, *of_decoder;
} counts[] = {
    {"layers", "num-layers", "decoder-num-layers"},
    {"hidden", "hidden-size", NULL},
    {"heads", "num-attention-heads", NULL},
    {"seq", "seq-length", "decoder-seq-length"},
    {"vocab", "padded-vocab-size", NULL},
    {"experts", "num-experts", NULL},
    {"top_k", "moe-router-topk", NULL},
    {"mtp_layers", "mtp-num-layers", NULL},
    {"expert_ffn", "moe-ffn-hidden-size", NULL},
    {"expert_groups", "moe-router-num-groups", NULL},
    {"top_groups", "moe-router-group-topk", NULL},
    {"q_rank", "q-lora-rank", NULL},
    {"kv_rank", "kv-lora-rank", NULL},
    {"rope_size", "qk-pos-emb-head-dim", NULL},
    {"value_size", "v-head-dim", NULL},
    {"encoder_layers", "encoder-num-layers", NULL},
    {"encoder_seq", "encoder-seq-length", NULL},
};

/* Values that have one; NULL: none says it. Absent keys are as in dlsim, which has Megatron's defaults for these. */
static const struct {
    const char *key, *value, *flags;
} values[] = {
    {"norm", "\"layernorm\"", ""},
    {"norm", "\"rmsnorm\"", "--normalization RMSNorm"},
    {"activation", "\"gelu\"", ""},
    {"activation", "\"swiglu\"", "--swiglu"},
    {"activation", "\"geglu\"", "--quick-geglu"},
    {"activation", "\"squared_relu\"", "--squared-relu"},
    {"positions", "\"rotary\"", "--position-embedding-type rope"},
    {"positions", "\"yarn\"", "--position-embedding-type yarn"},
    {"positions", "\"none\"", "--position-embedding-type none"},
    {"positions", "\"relative\"", "--position-embedding-type relative"},
    {"positions", "\"learned\"", ""},
    {"bias", "true", ""},
    {"bias", "false", "--disable-bias-linear"},
    {"qkv_bias", "true", "--add-qkv-bias"},
    {"qkv_bias", "false", ""},
    {"dropout", "true", ""},
    {"dropout", "false", "--hidden-dropout 0"},
    {"attention_dropout", "true", ""},
    {"attention_dropout", "false", "--attention-dropout 0"},
    {"tied_embedding", "true", ""},
    {"tied_embedding", "false", "--untie-embeddings-and-output-weights"},
    {"embedding_norm", "false", ""},
    {"final_norm", "true", ""},
    {"qk_norm", "true", "--qk-layernorm"},
    {"qk_norm", "false", ""},
};

static void put_values(struct dl_megatron_export *x)
{
    for (size_t i = 0; i < DL_COUNT(values); i++) {
        const json_t *const value = json_object_get(x->workload.value, values[i].key);
        if (value && *values[i].flags && strcmp(dl_shown_value(value, x->arena), values[i].value) == 0)
            dl_megatron_put(x, "%s", values[i].flags);
    }
}

/* What the file does not say of scores it says of all. */
static void put_attention_dropout(struct dl_megatron_export *x)
{
    const bool is_told = json_object_get(x->workload.value, "attention_dropout");
    if (!is_told && !dl_megatron_true(x->workload, "dropout", true)) dl_megatron_put(x, "--attention-dropout 0");
}

/* Learned positions are as many as tokens of the longer sequence. */
static void put_positions(struct dl_megatron_export *x)
{
    const bool learned =
        !json_object_get(x->workload.value, "positions") || dl_megatron_is(x->workload, "positions", "learned");
    const int64_t seq = dl_megatron_count(x->workload, "seq", 0);
    const int64_t encoder_seq = dl_megatron_count(x->workload, "encoder_seq", 0);
    if (learned)
        dl_megatron_put(x, "--max-position-embeddings %lld", (long long)(encoder_seq > seq ? encoder_seq : seq));
}

static void put_heads(struct dl_megatron_export *x)
{
    const int64_t kv_heads = dl_megatron_count(x->workload, "kv_heads", 0);
    const int64_t head = dl_megatron_count(x->workload, "head_size", 0);
    const bool latent = dl_megatron_count(x->workload, "kv_rank", 0) > 0;
    if (latent) dl_megatron_put(x, "--multi-latent-attention");
    if (kv_heads) dl_megatron_put(x, "--group-query-attention --num-query-groups %lld", (long long)kv_heads);
    if (head) dl_megatron_put(x, "--%s %lld", latent ? "qk-head-dim" : "kv-channels", (long long)head);
}

static int64_t ffn_of(const struct dl_megatron_export *x)
{
    return dl_megatron_count(x->workload, "ffn", 4 * dl_megatron_count(x->workload, "hidden", 0));
}

static void put_experts(struct dl_megatron_export *x)
{
    const struct dl_json w = x->workload;
    const int64_t layers = dl_megatron_count(w, "layers", 0), dense = dl_megatron_count(w, "dense_layers", 0);
    const int64_t every = dl_megatron_count(w, "moe_every", 1), shared = dl_megatron_count(w, "shared_experts", 0);
    const int64_t each = dl_megatron_count(w, "expert_ffn", ffn_of(x));
    const double capacity = json_number_value(json_object_get(w.value, "capacity_factor"));
    if (dl_megatron_count(w, "experts", 0)) dl_megatron_put(x, "--moe-grouped-gemm");
    if (shared)
        dl_megatron_put(x, "--moe-shared-expert-intermediate-size %lld",
                        (long long)(shared * dl_megatron_count(w, "shared_ffn", each)));
    if (dense && every == 1)
        dl_megatron_put(x, "--moe-layer-freq '([0]*%lld+[1]*%lld)'", (long long)dense, (long long)(layers - dense));
    else if (every > 1 && !dense && layers % every == 0)
        dl_megatron_put(x, "--moe-layer-freq '([0]*%lld+[1]*1)*%lld'", (long long)(every - 1),
                        (long long)(layers / every));
    else if (every > 1)
        dl_megatron_without(x, w, "moe_every", "only where it divides the layers, without dense_layers");
    if (capacity > 0) dl_megatron_put(x, "--moe-expert-capacity-factor %g", capacity);
}

/* All that makes a model BERT, or nothing of it. */
static void put_bert(struct dl_megatron_export *x)
{
    const struct dl_json w = x->workload;
    const bool causal = dl_megatron_true(w, "causal", true), transform = dl_megatron_true(w, "head_transform", false);
    const int64_t types = dl_megatron_count(w, "token_types", 0);
    x->is_bert = !causal && transform && types == 2;
    if (x->is_bert) {
        dl_megatron_put(x, "--bert-no-binary-head");
        return;
    }
    if (!causal) dl_megatron_without(x, w, "causal", "only BERT's attention sees all tokens in Megatron-LM");
    if (transform) dl_megatron_without(x, w, "head_transform", no_flag);
    if (types) dl_megatron_without(x, w, "token_types", no_flag);
}

static void list_projections(struct dl_megatron_export *x)
{
    if (!dl_megatron_is(x->workload, "projections", "apart")) return;
    dl_megatron_without(x, x->workload, "projections", "Megatron-LM joins them");
    x->without.left_out[x->without.n_left_out - 1].matters = false; /* and so does its software file */
}

/* --add-qkv-bias adds some where there are no others. */
static void list_biases(struct dl_megatron_export *x)
{
    if (dl_megatron_true(x->workload, "bias", true) && !dl_megatron_true(x->workload, "qkv_bias", true))
        dl_megatron_without(x, x->workload, "qkv_bias", no_flag);
}

/* A value of a key that has flags for others only. */
static void list_values(struct dl_megatron_export *x)
{
    for (size_t i = 0; i < DL_COUNT(values); i++) {
        const json_t *const value = json_object_get(x->workload.value, values[i].key);
        bool is_first = true, is_listed = false;
        for (size_t k = 0; k < DL_COUNT(values); k++) {
            if (strcmp(values[k].key, values[i].key)) continue;
            is_first &= k >= i;
            is_listed |= value && strcmp(dl_shown_value(value, x->arena), values[k].value) == 0;
        }
        if (value && is_first && !is_listed) dl_megatron_without(x, x->workload, values[i].key, no_flag);
    }
}

/* They are not read back either. */
static void list_windows(struct dl_megatron_export *x)
{
    static const char *const keys[] = {"window", "full_attention_every"};
    for (size_t i = 0; i < DL_COUNT(keys); i++)
        if (json_object_get(x->workload.value, keys[i]))
            dl_megatron_without(x, x->workload, keys[i], "dlsim writes no flags of windows");
}

void dl_megatron_export_workload(struct dl_megatron_export *x)
{
    static const char *const of_parts[] = {"ffn",
                                           "kv_heads",
                                           "head_size",
                                           "capacity_factor",
                                           "shared_experts",
                                           "shared_ffn",
                                           "dense_layers",
                                           "moe_every",
                                           "causal",
                                           "head_transform",
                                           "token_types",
                                           "projections",
                                           "window",
                                           "full_attention_every"};
    const char *known[DL_COUNT(counts) + DL_COUNT(values) + DL_COUNT(of_parts) + 1] = {NULL};
    size_t n = 0;
    x->has_encoder = json_object_get(x->workload.value, "encoder_layers");
    for (size_t i = 0; i < DL_COUNT(of_parts); i++) known[n++] = of_parts[i];
    for (size_t i = 0; i < DL_COUNT(counts); i++) {
        const int64_t value = dl_megatron_count(x->workload, counts[i].key, 0);
        const bool has_other = x->has_encoder && counts[i].of_decoder;
        if (value) dl_megatron_put(x, "--%s %lld", has_other ? counts[i].of_decoder : counts[i].flag, (long long)value);
        known[n++] = counts[i].key;
    }
    for (size_t i = 0; i < DL_COUNT(values); i++) known[n++] = values[i].key;
    dl_megatron_put(x, "--ffn-hidden-size %lld", (long long)ffn_of(x));
    put_heads(x);
    put_positions(x);
    put_values(x);
    put_attention_dropout(x);
    put_experts(x);
    put_bert(x);
    list_projections(x);
    list_biases(x);
    list_values(x);
    list_windows(x);
    dl_megatron_without_others(x, x->workload, known, no_flag);
}
