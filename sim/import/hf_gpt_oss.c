/* hf_gpt_oss.c - gpt-oss: experts with biases and a clamped gate, every other block in windows, scaled rotations. */
#include "sim/import/hf_models.h"

static const char of_numbers[] = "a number in a formula, whatever it is";

static enum dl_status finish(struct dl_hf *hf, struct dl_error *err)
{
    enum { usual_window = 128, every_other = 2 };
    const char *const key = dl_hf_name_of(hf, "num_experts_per_tok", "experts_per_token");
    int64_t top_k = dl_hf_count(hf, "top_k");
    if (dl_hf_get(hf, key).value && dl_hf_need_count(hf, key, &top_k, err)) return err->status;
    json_object_set_new(hf->out->workload, "top_k", json_integer(top_k));
    dl_hf_leave_out(hf, "num_local_experts", true,
                    "biases of the router and sinks of attention are not in the workload: a parameter for each expert "
                    "and head of a block");
    return dl_hf_finish_layer_types(hf, usual_window, every_other, err);
}

static const char *const architectures[] = {"GptOssForCausalLM", NULL};
static const struct dl_hf_key keys[] = {
    HF_COUNT("num_local_experts", "experts", NULL),
    HF_COUNT("num_experts_per_tok", "top_k", "4"),
    HF_COUNT("head_dim", "head_size", "64"),
    HF_IS("hidden_act", "\"silu\"", "the gate is a clamped SwiGLU"),
    HF_IS("attention_bias", "true", "all linear layers have biases"),
    HF_FINISHED("experts_per_token"),
    HF_LEFT_OUT("swiglu_limit", of_numbers),
    HF_LEFT_OUT("swiglu_alpha", of_numbers),
    HF_LEFT_OUT("initial_context_length", "rotations by other angles cost the same"),
    HF_LEFT_OUT("router_aux_loss_coef", "a number in the loss"),
    HF_LEFT_OUT("output_router_logits", "a number in the loss"),
    HF_FINISHED("sliding_window_pattern"),
};
const struct dl_hf_model dl_hf_gpt_oss = {
    .model_type = "gpt_oss",
    .architectures = architectures,
    .always =
        "{\"norm\": \"rmsnorm\", \"positions\": \"yarn\", \"projections\": \"apart\", \"bias\": true, \"dropout\": "
        "false, \"activation\": \"clamped_swiglu\"}",
    .keys = DL_HF_KEYS(keys),
    .shared = &dl_hf_decoder_keys,
    .finish = finish,
};
