/* hf_gpt.c - GPT-2, GPT-J, OPT, GPT-NeoX and StarCoder: LayerNorm, biases everywhere, a feed-forward half without a
 * gate. */
#include "sim/import/hf_models.h"

static const char of_numbers[] = "a number in a formula, whatever it is";
static const char of_summary[] = "of a head for classification, which this class does not have";

static const char *const gpt2_architectures[] = {"GPT2LMHeadModel", NULL};
static const struct dl_hf_key gpt2_keys[] = {
    HF_COUNT("n_layer", "layers", NULL),
    HF_COUNT("n_embd", "hidden", NULL),
    HF_COUNT("n_inner", "ffn", ""),
    HF_COUNT("n_head", "heads", NULL),
    HF_LENGTH("n_positions"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("activation_function", "activation", "\"gelu_new\"", dl_hf_functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_DROPOUT("resid_pdrop", "0.1"),
    HF_DROPOUT("embd_pdrop", "0.1"),
    HF_SCORES("attn_pdrop", "0.1"),
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
static const struct dl_hf_keys gpt2 = DL_HF_KEYS(gpt2_keys);
const struct dl_hf_model dl_hf_gpt2 = {
    .model_type = "gpt2",
    .architectures = gpt2_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"bias\": true}",
    .shared = &gpt2,
};

/* ---- GPT-J ---- */

static enum dl_status finish_gptj(struct dl_hf *hf, struct dl_error *err)
{
    (void)err;
    dl_hf_leave_out(hf, "vocab_size", true,
                    "the head's bias is not in the workload, but one that the projection of attention does not have: "
                    "vocab_size parameters, and n_embd in a block");
    return DL_OK;
}

static const char *const gptj_architectures[] = {"GPTJForCausalLM", NULL};
static const struct dl_hf_key gptj[] = {
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_DROPOUT("resid_pdrop", "0.0"),
    HF_DROPOUT("embd_pdrop", "0.0"),
    HF_SCORES("attn_pdrop", "0.0"),
    HF_DIFFERS("rotary_dim", "null", "64", dl_hf_part_is_rotated),
    HF_LEFT_OUT("rotary", "not read by the class"),
};
const struct dl_hf_model dl_hf_gptj = {
    .model_type = "gptj",
    .architectures = gptj_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"projections\": \"apart\", \"bias\": true,"
              " \"qkv_bias\": false, \"parallel_norms\": 1}",
    .keys = DL_HF_KEYS(gptj),
    .shared = &gpt2,
    .finish = finish_gptj,
};

/* ---- OPT ---- */

static enum dl_status finish_opt(struct dl_hf *hf, struct dl_error *err)
{
    const struct dl_json width = dl_hf_get(hf, "word_embed_proj_dim");
    if (width.value && json_integer_value(width.value) != dl_hf_count(hf, "hidden"))
        return dl_hf_refuse(hf, "word_embed_proj_dim", err,
                            "must be hidden_size, %lld: embeddings are as wide as blocks",
                            (long long)dl_hf_count(hf, "hidden"));
    dl_hf_leave_out(hf, "max_position_embeddings", true,
                    "two more positions, which no token has, are not in the workload: hidden_size parameters each");
    return DL_OK;
}

static const char *const opt_architectures[] = {"OPTForCausalLM", NULL};
static const struct dl_hf_key opt[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("ffn_dim", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_LENGTH("max_position_embeddings"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("activation_function", "activation", "\"relu\"", dl_hf_functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_FLAG("enable_bias", "bias", "true"),
    HF_DROPOUT("dropout", "0.1"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_IS("do_layer_norm_before", "true", "norms come before each half of a block"),
    HF_IS("layer_norm_elementwise_affine", "true", "norms have gains and biases"),
    HF_IS("_remove_final_layer_norm", "false", "there is a norm before the head"),
    HF_IS("layerdrop", "0", "all blocks run in every step"),
    HF_FINISHED("word_embed_proj_dim"),
    HF_LEFT_OUT("init_std", "values at the start of training cost no time"),
    HF_LEFT_OUT("activation_dropout", "not read by the class"),
};
const struct dl_hf_model dl_hf_opt = {
    .model_type = "opt",
    .architectures = opt_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"projections\": \"apart\"}",
    .keys = DL_HF_KEYS(opt),
    .finish = finish_opt,
};

/* Both halves of a block take its input, after a norm each. */
static enum dl_status finish_neox(struct dl_hf *hf, struct dl_error *err)
{
    bool is_parallel = true;
    if (dl_hf_flag(hf, "use_parallel_residual", &is_parallel, err)) return err->status;
    if (is_parallel) json_object_set_new(hf->out->workload, "parallel_norms", json_integer(2));
    return DL_OK;
}

static const char *const neox_architectures[] = {"GPTNeoXForCausalLM", NULL};
static const struct dl_hf_key neox[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_LENGTH("max_position_embeddings"),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_WORD("hidden_act", "activation", "\"gelu\"", dl_hf_functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "false"),
    HF_IS("attention_bias", "true", "all linear layers have biases"),
    HF_DROPOUT("hidden_dropout", "0.0"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_FINISHED("use_parallel_residual"),
    HF_DIFFERS("rotary_pct", "1", "0.25", dl_hf_part_is_rotated),
    HF_LEFT_OUT("rotary_emb_base", "rotations by other angles cost the same"),
    HF_LEFT_OUT("rope_scaling",
                "rotations by other angles cost the same, but for yarn with Megatron: set positions to \"yarn\""),
    HF_LEFT_OUT("classifier_dropout", of_summary),
};

const struct dl_hf_model dl_hf_gpt_neox = {
    .model_type = "gpt_neox",
    .architectures = neox_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"bias\": true}",
    .keys = DL_HF_KEYS(neox),
    .finish = finish_neox,
};

/* All queries share the keys and values of one head, or each has its own. */
static enum dl_status finish_bigcode(struct dl_hf *hf, struct dl_error *err)
{
    bool shares_keys = true;
    if (dl_hf_flag(hf, "multi_query", &shares_keys, err)) return err->status;
    if (shares_keys) json_object_set_new(hf->out->workload, "kv_heads", json_integer(1));
    return DL_OK;
}

static const char *const bigcode_architectures[] = {"GPTBigCodeForCausalLM", NULL};
static const struct dl_hf_key bigcode[] = {
    HF_WORD("activation_function", "activation", "\"gelu_pytorch_tanh\"", dl_hf_functions),
    HF_FINISHED("multi_query"),
    HF_LEFT_OUT("attention_softmax_in_fp32", of_numbers),
    HF_LEFT_OUT("scale_attention_softmax_in_fp32", of_numbers),
    HF_LEFT_OUT("inference_runner", "settings of generation, not of training"),
    HF_LEFT_OUT("max_batch_size", "settings of generation, not of training"),
    HF_LEFT_OUT("max_sequence_length", "settings of generation, not of training"),
    HF_LEFT_OUT("pad_key_length", "settings of generation, not of training"),
    HF_LEFT_OUT("pre_allocate_kv_cache", "settings of generation, not of training"),
    HF_LEFT_OUT("validate_runner_input", "settings of generation, not of training"),
};
const struct dl_hf_model dl_hf_gpt_bigcode = {
    .model_type = "gpt_bigcode",
    .architectures = bigcode_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"bias\": true}",
    .keys = DL_HF_KEYS(bigcode),
    .shared = &gpt2,
    .finish = finish_bigcode,
};

static const char *const starcoder2_architectures[] = {"Starcoder2ForCausalLM", NULL};
static const struct dl_hf_key starcoder2[] = {
    HF_WORD("hidden_act", "activation", "\"gelu_pytorch_tanh\"", dl_hf_functions),
    HF_WORD("activation_function", "activation", "", dl_hf_functions), /* an older name */
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_FLAG("use_bias", "bias", "true"),
    HF_DROPOUT("residual_dropout", "0.0"),
    HF_DROPOUT("embedding_dropout", "0.0"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_IS("mlp_type", "\"default\"", "the feed-forward half has no gate"),
    HF_IS("norm_type", "\"layer_norm\"", "norms are LayerNorm"),
    HF_LEFT_OUT("norm_epsilon", of_numbers),
    HF_LEFT_OUT("attention_softmax_in_fp32", of_numbers),
    HF_LEFT_OUT("scale_attention_softmax_in_fp32", of_numbers),
    HF_LEFT_OUT("scale_attn_weights", of_numbers),
};
const struct dl_hf_model dl_hf_starcoder2 = {
    .model_type = "starcoder2",
    .architectures = starcoder2_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"projections\": \"apart\"}",
    .keys = DL_HF_KEYS(starcoder2),
    .shared = &dl_hf_decoder_keys,
    .finish = dl_hf_finish_window,
};
