/* hf_gemma.c - Gemma, Granite and Phi-3: decoders as Llama, with defaults and numbers of their own. */
#include "sim/import/hf_models.h"

const char dl_hf_no_bias[] = "only queries, keys and values may have biases of their own";
static const char of_numbers[] = "a number in a formula, whatever it is";

const struct dl_hf_word dl_hf_gelu_gates[] = {{"gelu", "geglu"}, {"gelu_pytorch_tanh", "geglu"}, {NULL, NULL}};
static const char *const gemma_architectures[] = {"GemmaForCausalLM", NULL};
static const struct dl_hf_key gemma[] = {DL_HF_OF_GEMMA};
const struct dl_hf_model dl_hf_gemma = {
    .model_type = "gemma",
    .architectures = gemma_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(gemma),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const granite_architectures[] = {"GraniteForCausalLM", NULL};
static const struct dl_hf_key granite[] = {
    HF_IS("attention_bias", "false", dl_hf_no_bias),
    HF_IS("mlp_bias", "false", "the feed-forward half has biases only if all linear layers have"),
    HF_LEFT_OUT("attention_multiplier", of_numbers),
    HF_LEFT_OUT("embedding_multiplier", of_numbers),
    HF_LEFT_OUT("logits_scaling", of_numbers),
    HF_LEFT_OUT("residual_multiplier", of_numbers),
};
const struct dl_hf_model dl_hf_granite = {
    .model_type = "granite",
    .architectures = granite_architectures,
    .always = "{" DL_HF_DECODER "}",
    .keys = DL_HF_KEYS(granite),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};

static const char *const phi3_architectures[] = {"Phi3ForCausalLM", NULL};
static const struct dl_hf_key phi3[] = {
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_DROPOUT("resid_pdrop", "0.0"),
    HF_DROPOUT("embd_pdrop", "0.0"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_IS("attention_bias", "false", dl_hf_no_bias),
    HF_DIFFERS("partial_rotary_factor", "1", "", dl_hf_part_is_rotated),
    HF_LEFT_OUT("original_max_position_embeddings", "rotations by other angles cost the same"),
};
const struct dl_hf_model dl_hf_phi3 = {
    .model_type = "phi3",
    .architectures = phi3_architectures,
    .always = "{\"norm\": \"rmsnorm\", \"positions\": \"rotary\", \"projections\": \"joined\", \"bias\": false}",
    .keys = DL_HF_KEYS(phi3),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};
