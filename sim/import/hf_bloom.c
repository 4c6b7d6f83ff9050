/* hf_bloom.c - BLOOM: a norm behind the embedding, scores biased by their distance, queries, keys and values joined. */
#include "sim/import/hf_models.h"

static const char not_read[] = "not read by the class";

/* Each size has two names. */
static enum dl_status finish(struct dl_hf *hf, struct dl_error *err)
{
    static const struct {
        const char *to, *key;
    } needed[] = {{"layers", "n_layer"}, {"hidden", "hidden_size"}, {"heads", "n_head"}};
    for (size_t i = 0; i < DL_COUNT(needed); i++)
        if (!dl_hf_count(hf, needed[i].to))
            return dl_hf_refuse(hf, needed[i].key, err, "must be there: the model type bloom needs it");
    return DL_OK;
}

static const char *const architectures[] = {"BloomForCausalLM", NULL};
static const struct dl_hf_key keys[] = {
    HF_COUNT("n_layer", "layers", ""),
    HF_COUNT("num_hidden_layers", "layers", ""),
    HF_COUNT("hidden_size", "hidden", ""),
    HF_COUNT("n_embed", "hidden", ""),
    HF_COUNT("n_head", "heads", ""),
    HF_COUNT("num_attention_heads", "heads", ""),
    HF_COUNT("vocab_size", "vocab", NULL),
    {.key = "seq_length", .meaning = DL_HF_LENGTH, .to = "seq", .absent = "2048"},
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_DROPOUT("hidden_dropout", "0.0"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_IS("apply_residual_connection_post_layernorm", "false", "what goes around a half is what its norm is given"),
    HF_IS("slow_but_exact", "false", "products are not cut as in the training of 2022"),
    HF_LEFT_OUT("pretraining_tp", "belongs to the strategy"),
    HF_LEFT_OUT("n_inner", not_read),
    HF_LEFT_OUT("attention_softmax_in_fp32", not_read),
    HF_LEFT_OUT("bias_dropout_fusion", not_read),
    HF_LEFT_OUT("masked_softmax_fusion", not_read),
    HF_LEFT_OUT("offset_alibi", not_read),
    HF_LEFT_OUT("skip_bias_add", not_read),
    HF_LEFT_OUT("skip_bias_add_qkv", not_read),
};
const struct dl_hf_model dl_hf_bloom = {
    .model_type = "bloom",
    .architectures = architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"alibi\", \"bias\": true, \"embedding_norm\": true}",
    .keys = DL_HF_KEYS(keys),
    .finish = finish,
};
