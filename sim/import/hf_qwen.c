/* hf_qwen.c - Qwen 1.5 to 3, dense and with experts. Qwen2 has biases of queries, keys and values; Qwen3 norms them. */
#include "sim/import/hf_models.h"

static const char only_qkv[] = "only queries, keys and values may have biases of their own";
static const char of_loss[] = "a number in the loss";
static const char of_router[] = "a number in the router's formula";
static const char equal_blocks[] = "blocks with experts come at equal distances";

/* ---- dense ---- */

static const char *const qwen2_architectures[] = {"Qwen2ForCausalLM", NULL};
const struct dl_hf_model dl_hf_qwen2 = {
    .model_type = "qwen2",
    .architectures = qwen2_architectures,
    .always = "{" DL_HF_DECODER ", \"qkv_bias\": true}",
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const qwen3_architectures[] = {"Qwen3ForCausalLM", NULL};
static const struct dl_hf_key qwen3[] = {
    HF_COUNT("head_dim", "head_size", "128"),
    HF_IS("attention_bias", "false", only_qkv),
};
const struct dl_hf_model dl_hf_qwen3 = {
    .model_type = "qwen3",
    .architectures = qwen3_architectures,
    .always = "{" DL_HF_DECODER ", \"qk_norm\": true}",
    .keys = DL_HF_KEYS(qwen3),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

/* ---- with experts ---- */

#define OF_EXPERTS                                                                                                     \
    HF_COUNT("num_experts", "experts", NULL), HF_COUNT("num_experts_per_tok", "top_k", NULL),                          \
        HF_COUNT("moe_intermediate_size", "expert_ffn", NULL), HF_COUNT("decoder_sparse_step", "moe_every", "1"),      \
        HF_IS("mlp_only_layers", "[]", equal_blocks), HF_LEFT_OUT("norm_topk_prob", of_router),                        \
        HF_LEFT_OUT("router_aux_loss_coef", of_loss), HF_LEFT_OUT("output_router_logits", of_loss)

static enum dl_status finish_shared(struct dl_hf *hf, struct dl_error *err)
{
    static const char key[] = "shared_expert_intermediate_size";
    if (dl_hf_set_shared_experts(hf, key, 1, err)) return err->status;
    dl_hf_leave_out(hf, key, true,
                    "the gate of the shared expert is not in the workload: hidden_size parameters a block");
    return dl_hf_finish_window(hf, err);
}

static const char *const qwen2_moe_architectures[] = {"Qwen2MoeForCausalLM", NULL};
static const struct dl_hf_key qwen2_moe[] = {
    OF_EXPERTS,
    HF_FLAG("qkv_bias", "qkv_bias", "true"),
    HF_FINISHED("shared_expert_intermediate_size"),
};
const struct dl_hf_model dl_hf_qwen2_moe = {
    .model_type = "qwen2_moe",
    .architectures = qwen2_moe_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(qwen2_moe),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_shared,
};

static const char *const qwen3_moe_architectures[] = {"Qwen3MoeForCausalLM", NULL};
static const struct dl_hf_key qwen3_moe[] = {
    OF_EXPERTS,
    HF_IS("attention_bias", "false", only_qkv),
};
const struct dl_hf_model dl_hf_qwen3_moe = {
    .model_type = "qwen3_moe",
    .architectures = qwen3_moe_architectures,
    .always = "{" DL_HF_DECODER ", \"qk_norm\": true}",
    .keys = DL_HF_KEYS(qwen3_moe),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};
