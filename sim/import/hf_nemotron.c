/* hf_nemotron.c - Nemotron-H and Nemotron 3: layers written down one by one, mixers of state spaces among them. */
#include <string.h>

#include "sim/import/hf_models.h"

static const char of_router[] = "a number in the router's formula";
static const char of_start[] = "numbers that training starts with";
static const char of_steps[] = "numbers of the scan, whose work does not depend on them";
static const char of_generation[] = "for generating text";
static const char no_biases[] = "linear layers of these models have no biases";

static const struct dl_hf_word activations[] = {{"relu2", "squared_relu"}, {"relu", "relu"}, {NULL, NULL}};

static const struct dl_hf_key keys[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_COUNT("num_key_value_heads", "kv_heads", NULL),
    HF_LENGTH("max_position_embeddings"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("mlp_hidden_act", "activation", "\"relu2\"", activations),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_COUNT("mamba_num_heads", "state_heads", NULL),
    HF_COUNT("mamba_head_dim", "state_head_size", NULL),
    HF_COUNT("ssm_state_size", "state_size", NULL),
    HF_COUNT("n_groups", "state_groups", NULL),
    HF_COUNT("conv_kernel", "state_window", "4"),
    HF_COUNT("chunk_size", "state_chunk", "128"),
    HF_FINISHED("hybrid_override_pattern"),
    HF_FINISHED("head_dim"),
    HF_FINISHED("attention_head_dim"),
    HF_FINISHED("n_routed_experts"),
    HF_FINISHED("num_experts_per_tok"),
    HF_FINISHED("moe_intermediate_size"),
    HF_FINISHED("moe_latent_size"),
    HF_FINISHED("n_shared_experts"),
    HF_FINISHED("moe_shared_expert_intermediate_size"),
    HF_IS("n_group", "1", "experts are chosen from all of them"),
    HF_IS("topk_group", "1", "experts are chosen from all of them"),
    HF_IS("attention_bias", "false", no_biases),
    HF_IS("mlp_bias", "false", no_biases),
    HF_IS("use_bias", "false", no_biases),
    HF_IS("mamba_proj_bias", "false", no_biases),
    HF_IS("use_conv_bias", "true", "the short convolution has biases"),
    HF_IS("mamba_hidden_act", "\"silu\"", "the short convolution is followed by SiLU"),
    HF_IS("sliding_window", "null", "attention is to all earlier tokens"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_DIFFERS("hidden_dropout", "0", "", "dropout is not in the workload"),
    HF_DIFFERS("residual_in_fp32", "false", "", "the residual way is in the precision of activations here"),
    HF_DIFFERS("num_nextn_predict_layers", "0", "", "modules that predict further tokens are not in the workload"),
    HF_LEFT_OUT("mtp_hybrid_override_pattern", "layers of modules that predict further tokens"),
    HF_LEFT_OUT("expand", "follows from the heads of the mixer"),
    HF_LEFT_OUT("routed_scaling_factor", of_router),
    HF_LEFT_OUT("norm_topk_prob", of_router),
    HF_LEFT_OUT("moe_shared_expert_overlap", "belongs to the software"),
    HF_LEFT_OUT("use_mamba_kernels", "belongs to the software"),
    HF_LEFT_OUT("rescale_prenorm_residual", of_start),
    HF_LEFT_OUT("time_step_floor", of_start),
    HF_LEFT_OUT("time_step_max", of_start),
    HF_LEFT_OUT("time_step_min", of_start),
    HF_LEFT_OUT("time_step_rank", of_start),
    HF_LEFT_OUT("time_step_limit", of_steps),
    HF_LEFT_OUT("norm_eps", "a number of the norms, whose work does not depend on it"),
    HF_LEFT_OUT("partial_rotary_factor", "there are no positions"),
    HF_LEFT_OUT("num_logits_to_keep", of_generation),
    HF_LEFT_OUT("mamba_ssm_cache_dtype", of_generation),
};

/* A whole number of the file, if it has the key. */
static enum dl_status set_count(struct dl_hf *hf, const char *key, const char *to, struct dl_error *err)
{
    const struct dl_json from = dl_hf_get(hf, key);
    if (!from.value) return DL_OK;
    if (!json_is_integer(from.value)) return dl_wrong_type(from, "a whole number", err);
    json_object_set(hf->out->workload, to, from.value);
    return DL_OK;
}

static const char *const of_experts[] = {
    "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
    "moe_latent_size",  "n_shared_experts",    "moe_shared_expert_intermediate_size",
};

static enum dl_status finish_experts(struct dl_hf *hf, struct dl_error *err)
{
    static const struct {
        const char *key, *to;
    } needed[] = {
        {"n_routed_experts", "experts"}, {"num_experts_per_tok", "top_k"}, {"moe_intermediate_size", "expert_ffn"}};
    int64_t count;
    for (size_t i = 0; i < DL_COUNT(needed); i++) {
        if (dl_hf_need_count(hf, needed[i].key, &count, err)) return err->status;
        json_object_set_new(hf->out->workload, needed[i].to, json_integer(count));
    }
    if (set_count(hf, "moe_latent_size", "expert_hidden", err) || dl_hf_need_count(hf, "n_shared_experts", &count, err))
        return err->status;
    return dl_hf_set_shared_experts(hf, "moe_shared_expert_intermediate_size", count, err);
}

static enum dl_status finish(struct dl_hf *hf, struct dl_error *err)
{
    const struct dl_json pattern = dl_hf_get(hf, "hybrid_override_pattern");
    if (!json_is_string(pattern.value))
        return dl_hf_refuse(hf, "hybrid_override_pattern", err, "must be there, a letter for each layer");
    json_object_set(hf->out->workload, "pattern", pattern.value);
    if (set_count(hf, "attention_head_dim", "head_size", err) || set_count(hf, "head_dim", "head_size", err))
        return err->status;
    if (strchr(json_string_value(pattern.value), 'E')) return finish_experts(hf, err);
    for (size_t i = 0; i < DL_COUNT(of_experts); i++) dl_hf_leave_out(hf, of_experts[i], false, "no layer has experts");
    return DL_OK;
}

static const char *const architectures[] = {"NemotronHForCausalLM", NULL};
const struct dl_hf_model dl_hf_nemotron_h = {
    .model_type = "nemotron_h",
    .architectures = architectures,
    .always = "{\"norm\": \"rmsnorm\", \"positions\": \"none\", \"projections\": \"apart\", \"bias\": false, "
              "\"dropout\": false}",
    .keys = DL_HF_KEYS(keys),
    .finish = finish,
};
