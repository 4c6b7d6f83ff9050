/* hf_deepseek.c - DeepSeek-V2 and V3: latent attention, routed and shared experts, the first blocks without. */
#include "sim/import/hf_models.h"

#include <string.h>

static const char of_loss[] = "a number in the loss";
static const char of_router[] = "a number in the router's formula";
static const char follows[] = "follows from other keys";

static const struct dl_hf_key keys[] = {
    HF_COUNT("kv_lora_rank", "kv_rank", NULL),
    HF_COUNT("q_lora_rank", "q_rank", ""),
    HF_COUNT("qk_nope_head_dim", "head_size", NULL),
    HF_COUNT("qk_rope_head_dim", "rope_size", NULL),
    HF_COUNT("v_head_dim", "value_size", NULL),
    HF_COUNT("n_routed_experts", "experts", NULL),
    HF_COUNT("num_experts_per_tok", "top_k", NULL),
    HF_COUNT("moe_intermediate_size", "expert_ffn", NULL),
    HF_COUNT("n_shared_experts", "shared_experts", "0"),
    HF_COUNT("first_k_dense_replace", "dense_layers", NULL),
    HF_IS("moe_layer_freq", "1", "all blocks after the first ones have experts"),
    HF_IS("attention_bias", "false", "latent attention has no biases"),
    HF_IS("mlp_bias", "false", "the feed-forward half has biases only if all linear layers have"),
    HF_FINISHED("topk_method"),
    HF_FINISHED("n_group"),
    HF_FINISHED("topk_group"),
    HF_DIFFERS("num_nextn_predict_layers", "0", "",
               "the module that predicts a further token is not in the workload, nor in the model that transformers "
               "builds; trained with it, there is one more block and head"),
    HF_LEFT_OUT("num_key_value_heads", "latent attention has keys and values for each head"),
    HF_LEFT_OUT("head_dim", follows),
    HF_LEFT_OUT("qk_head_dim", follows),
    HF_LEFT_OUT("aux_loss_alpha", of_loss),
    HF_LEFT_OUT("seq_aux", of_loss),
    HF_LEFT_OUT("router_aux_loss_coef", of_loss),
    HF_LEFT_OUT("output_router_logits", of_loss),
    HF_LEFT_OUT("routed_scaling_factor", of_router),
    HF_LEFT_OUT("scoring_func", of_router),
    HF_LEFT_OUT("norm_topk_prob", of_router),
    HF_LEFT_OUT("ep_size", "belongs to the strategy"),
};

/* How experts are chosen: of all, or of those in the best groups only. */
static enum dl_status finish_groups(struct dl_hf *hf, bool uses_groups, struct dl_error *err)
{
    static const struct {
        const char *key, *to;
    } groups[] = {{"n_group", "expert_groups"}, {"topk_group", "top_groups"}};
    for (size_t i = 0; i < DL_COUNT(groups); i++) {
        const struct dl_json from = dl_hf_get(hf, groups[i].key);
        if (!uses_groups) {
            dl_hf_leave_out(hf, groups[i].key, false, "experts are chosen from all groups");
            continue;
        }
        if (!json_is_integer(from.value)) return dl_hf_refuse(hf, groups[i].key, err, "must be there, a whole number");
        json_object_set(hf->out->workload, groups[i].to, from.value);
    }
    return DL_OK;
}

static enum dl_status finish(struct dl_hf *hf, const char *usual_method, struct dl_error *err)
{
    static const struct {
        const char *name;
        bool uses_groups;
    } methods[] = {{"greedy", false}, {"group_limited_greedy", true}, {"noaux_tc", true}};
    const struct dl_json method = dl_hf_get(hf, "topk_method");
    if (dl_hf_finish_window(hf, err)) return err->status;
    if (method.value && !json_is_string(method.value)) return dl_wrong_type(method, "a string", err);
    const char *const name = method.value ? json_string_value(method.value) : usual_method;
    for (size_t i = 0; i < DL_COUNT(methods); i++)
        if (strcmp(methods[i].name, name) == 0) return finish_groups(hf, methods[i].uses_groups, err);
    return dl_hf_refuse(hf, "topk_method", err, "must be greedy, group_limited_greedy or noaux_tc, got '%.60s'", name);
}

static enum dl_status finish_v2(struct dl_hf *hf, struct dl_error *err) { return finish(hf, "greedy", err); }
static enum dl_status finish_v3(struct dl_hf *hf, struct dl_error *err) { return finish(hf, "noaux_tc", err); }

static const char *const v2_architectures[] = {"DeepseekV2ForCausalLM", NULL};
const struct dl_hf_model dl_hf_deepseek_v2 = {
    .model_type = "deepseek_v2",
    .architectures = v2_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(keys),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_v2,
};

static const char *const v3_architectures[] = {"DeepseekV3ForCausalLM", NULL};
const struct dl_hf_model dl_hf_deepseek_v3 = {
    .model_type = "deepseek_v3",
    .architectures = v3_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(keys),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_v3,
};
