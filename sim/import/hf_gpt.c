/* hf_gpt.c - GPT-2 and GPT-NeoX: LayerNorm, biases everywhere, a feed-forward half without a gate. */
#include "sim/import/hf_models.h"

static const struct dl_hf_word functions[] = {{"gelu", "gelu"},      {"gelu_new", "gelu"},
                                              {"gelu_fast", "gelu"}, {"gelu_pytorch_tanh", "gelu"},
                                              {"relu", "relu"},      {NULL, NULL}};

static const char of_numbers[] = "a number in a formula, whatever it is";
static const char of_summary[] = "of a head for classification, which this class does not have";

static const char *const gpt2_architectures[] = {"GPT2LMHeadModel", NULL};
static const struct dl_hf_key gpt2[] = {
    HF_COUNT("n_layer", "layers", NULL),
    HF_COUNT("n_embd", "hidden", NULL),
    HF_COUNT("n_inner", "ffn", ""),
    HF_COUNT("n_head", "heads", NULL),
    HF_LENGTH("n_positions"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("activation_function", "activation", "\"gelu_new\"", functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_DROPOUT("resid_pdrop", "0.1"),
    HF_DROPOUT("embd_pdrop", "0.1"),
    HF_DROPOUT("attn_pdrop", "0.1"),
    HF_LEFT_OUT("n_ctx", "an older name of n_positions"),
    HF_LEFT_OUT("scale_attn_weights", of_numbers),
    HF_LEFT_OUT("scale_attn_by_inverse_layer_idx", of_numbers),
    HF_IS("reorder_and_upcast_attn", "false", "scores have the precision of the strategy"),
    HF_LEFT_OUT("summary_activation", of_summary),
    HF_LEFT_OUT("summary_first_dropout", of_summary),
    HF_LEFT_OUT("summary_proj_to_labels", of_summary),
    HF_LEFT_OUT("summary_type", of_summary),
    HF_LEFT_OUT("summary_use_proj", of_summary),
    HF_LEFT_OUT("n_special", "ids of tokens: none costs more than another"),
    HF_LEFT_OUT("predict_special_tokens", "ids of tokens: none costs more than another"),
};
const struct dl_hf_model dl_hf_gpt2 = {
    .model_type = "gpt2",
    .architectures = gpt2_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"bias\": true}",
    .keys = DL_HF_KEYS(gpt2),
};

static const char *const neox_architectures[] = {"GPTNeoXForCausalLM", NULL};
static const struct dl_hf_key neox[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_LENGTH("max_position_embeddings"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("hidden_act", "activation", "\"gelu\"", functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_IS("attention_bias", "true", "all linear layers have biases"),
    HF_DROPOUT("hidden_dropout", "0.0"),
    HF_DROPOUT("attention_dropout", "0.0"),
    HF_FINISHED("use_parallel_residual"),
    HF_FINISHED("rotary_pct"),
    HF_LEFT_OUT("rotary_emb_base", "rotations by other angles cost the same"),
    HF_LEFT_OUT("rope_scaling", "rotations by other angles cost the same"),
    HF_LEFT_OUT("classifier_dropout", of_summary),
};

static enum dl_status finish_neox(struct dl_hf *hf, struct dl_error *err)
{
    (void)err;
    const bool is_sequential = json_is_false(dl_hf_get(hf, "use_parallel_residual").value);
    dl_hf_leave_out(hf, "use_parallel_residual", !is_sequential,
                    is_sequential ? "the halves of a block follow each other, as here"
                                  : "the halves of a block follow each other here: with tensor parallelism their sums "
                                    "are not made together");
    dl_hf_leave_out(hf, "rotary_pct", true, "all of a head is rotated here, which moves a little more memory");
    return DL_OK;
}

const struct dl_hf_model dl_hf_gpt_neox = {
    .model_type = "gpt_neox",
    .architectures = neox_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"bias\": true}",
    .keys = DL_HF_KEYS(neox),
    .finish = finish_neox,
};
