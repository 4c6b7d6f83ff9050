/* hf_llama.c - Llama and its like: RMSNorm before each half, rotary positions, a gated feed-forward half. */
#include "sim/import/hf_models.h"

static const struct dl_hf_word gates[] = {
    {"silu", "swiglu"}, {"swish", "swiglu"}, {"gelu", "geglu"}, {"gelu_new", "geglu"}, {"gelu_pytorch_tanh", "geglu"},
    {NULL, NULL}};

static const char of_positions[] = "where rotations turn: it costs the same whatever the angles";
static const char all_or_none[] = "biases are those of all linear layers or of none";

static const struct dl_hf_key shared[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_COUNT("head_dim", "head_size", ""),
    HF_COUNT("max_position_embeddings", "seq", NULL),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("hidden_act", "activation", "\"silu\"", gates),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_IS("attention_dropout", "0", "dropout of the scores alone is not known"),
    HF_LEFT_OUT("rope_scaling", of_positions),
    HF_LEFT_OUT("rope_parameters", of_positions),
    HF_LEFT_OUT("pretraining_tp", "belongs to the strategy"),
};

static const char *const llama_architectures[] = {"LlamaForCausalLM", NULL};
static const struct dl_hf_key llama[] = {
    HF_IS("attention_bias", "false", all_or_none),
    HF_IS("mlp_bias", "false", all_or_none),
};
const struct dl_hf_model dl_hf_llama = {
    .model_type = "llama",
    .architectures = llama_architectures,
    .always = "{\"norm\": \"rmsnorm\", \"positions\": \"rotary\", \"projections\": \"apart\", \"bias\": false,"
              " \"dropout\": false}",
    .keys = {DL_HF_KEYS(llama), DL_HF_KEYS(shared)},
};
