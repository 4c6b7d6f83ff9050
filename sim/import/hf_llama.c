/* hf_llama.c - Llama, Mistral and Mixtral: RMSNorm before each half, rotary positions, a gated feed-forward half. */
#include "sim/import/hf_models.h"

static const struct dl_hf_word gates[] = {
    {"silu", "swiglu"}, {"swish", "swiglu"}, {"gelu", "geglu"}, {"gelu_new", "geglu"}, {"gelu_pytorch_tanh", "geglu"},
    {NULL, NULL}};

static const char of_positions[] =
    "rotations by other angles cost the same, but for yarn with Megatron: set positions to \"yarn\"";
static const char of_strategy[] = "belongs to the strategy";

static const struct dl_hf_key decoder_keys[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_COUNT("num_key_value_heads", "kv_heads", NULL),
    HF_COUNT("head_dim", "head_size", ""),
    HF_LENGTH("max_position_embeddings"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("hidden_act", "activation", "\"silu\"", gates),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_LEFT_OUT("rope_scaling", of_positions),
    HF_LEFT_OUT("rope_parameters", of_positions),
    HF_LEFT_OUT("rope_interleave", of_positions),
    HF_LEFT_OUT("rope_interleaved", of_positions),
    HF_LEFT_OUT("use_mrope", of_positions),
    HF_LEFT_OUT("pretraining_tp", of_strategy),
    HF_FINISHED("sliding_window"),
    HF_FINISHED("use_sliding_window"),
    HF_FINISHED("max_window_layers"),
    HF_FINISHED("layer_types"),
};
const struct dl_hf_keys dl_hf_decoder_keys = DL_HF_KEYS(decoder_keys);

/* Some blocks of Qwen have a window and some have none: either way it is not used if no sequence is longer. */
enum dl_status dl_hf_finish_window(struct dl_hf *hf, struct dl_error *err)
{
    static const char *const keys[] = {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"};
    const struct dl_json window = dl_hf_get(hf, "sliding_window");
    const bool is_off = json_is_false(dl_hf_get(hf, "use_sliding_window").value);
    if (window.value && !json_is_integer(window.value)) return dl_wrong_type(window, "a whole number, or null", err);
    const bool is_used = window.value && !is_off && json_integer_value(window.value) < dl_hf_count(hf, "seq");
    for (size_t i = 0; i < DL_COUNT(keys); i++)
        dl_hf_leave_out(hf, keys[i], is_used,
                        is_used ? "attention is computed over all earlier tokens, also those before the window; with "
                                  "sequences up to the window it is the same"
                                : "no sequence is longer than the window");
    return DL_OK;
}

static const char *const llama_architectures[] = {"LlamaForCausalLM", NULL};
static const struct dl_hf_key llama[] = {
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_IS("attention_bias", "false", "only queries, keys and values may have biases of their own"),
    HF_IS("mlp_bias", "false", "the feed-forward half has biases only if all linear layers have"),
};
const struct dl_hf_model dl_hf_llama = {
    .model_type = "llama",
    .architectures = llama_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(llama),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const mistral_architectures[] = {"MistralForCausalLM", NULL};
const struct dl_hf_model dl_hf_mistral = {
    .model_type = "mistral",
    .architectures = mistral_architectures,
    .always = "{" DL_HF_DECODER "}",
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const mixtral_architectures[] = {"MixtralForCausalLM", NULL};
static const struct dl_hf_key mixtral[] = {
    HF_COUNT("num_local_experts", "experts", NULL),
    HF_COUNT("num_experts_per_tok", "top_k", NULL),
    HF_LEFT_OUT("router_aux_loss_coef", "a number in the loss"),
    HF_LEFT_OUT("output_router_logits", "a number in the loss"),
    HF_LEFT_OUT("router_jitter_noise", "noise on the router's input is not a kernel of its own"),
};
const struct dl_hf_model dl_hf_mixtral = {
    .model_type = "mixtral",
    .architectures = mixtral_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(mixtral),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};
