/* hf_olmo.c - OLMo 2 and OLMoE: queries and keys are normed, over all heads of a token at once. */
#include "sim/import/hf_models.h"

static const char only_qkv[] = "only queries, keys and values may have biases of their own";

/* OLMo 2 has its norms behind each half, not before it: as many, and as much is kept. */
static const char *const olmo2_architectures[] = {"Olmo2ForCausalLM", NULL};
static const struct dl_hf_key olmo2[] = {
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_IS("attention_bias", "false", only_qkv),
};
const struct dl_hf_model dl_hf_olmo2 = {
    .model_type = "olmo2",
    .architectures = olmo2_architectures,
    .always = "{" DL_HF_DECODER ", \"qk_norm\": true, \"joint_qk_norm\": true}",
    .keys = DL_HF_KEYS(olmo2),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const olmoe_architectures[] = {"OlmoeForCausalLM", NULL};
static const struct dl_hf_key olmoe[] = {
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_COUNT("num_experts", "experts", NULL),
    HF_COUNT("num_experts_per_tok", "top_k", NULL),
    HF_IS("attention_bias", "false", only_qkv),
    HF_DIFFERS("clip_qkv", "null", "", "queries, keys and values are not clipped here"),
    HF_LEFT_OUT("norm_topk_prob", "a number in the router's formula"),
    HF_LEFT_OUT("router_aux_loss_coef", "a number in the loss"),
    HF_LEFT_OUT("output_router_logits", "a number in the loss"),
};
const struct dl_hf_model dl_hf_olmoe = {
    .model_type = "olmoe",
    .architectures = olmoe_architectures,
    .always = "{" DL_HF_DECODER ", \"qk_norm\": true, \"joint_qk_norm\": true}",
    .keys = DL_HF_KEYS(olmoe),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};
