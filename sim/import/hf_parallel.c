/* hf_parallel.c - Falcon, Phi and StableLM: LayerNorm, rotary positions, halves of a block that may stand side by side.
 */
#include "sim/import/hf_models.h"

static void set_norms(struct dl_hf *hf, int n)
{
    json_object_set_new(hf->out->workload, "parallel_norms", json_integer(n));
}

/* ---- Falcon ---- */

/* In the new architecture each half has a norm of its own, and heads of keys have groups; before it all queries may
 * share one head. */
static enum dl_status finish_falcon(struct dl_hf *hf, struct dl_error *err)
{
    bool is_new = false, is_parallel = true, shares_keys = true;
    if (dl_hf_flag(hf, "new_decoder_architecture", &is_new, err) ||
        dl_hf_flag(hf, "parallel_attn", &is_parallel, err) || dl_hf_flag(hf, "multi_query", &shares_keys, err))
        return err->status;
    int64_t norms = is_new ? 2 : 1;
    if (dl_hf_get(hf, "num_ln_in_parallel_attn").value && dl_hf_need_count(hf, "num_ln_in_parallel_attn", &norms, err))
        return err->status;
    if (norms < 1 || norms > 2) return dl_hf_refuse(hf, "num_ln_in_parallel_attn", err, "must be 1 or 2");
    if (is_new || is_parallel) set_norms(hf, is_new ? (int)norms : 1);
    if (is_new) {
        int64_t keys = dl_hf_count(hf, "heads");
        if (dl_hf_get(hf, "num_kv_heads").value && dl_hf_need_count(hf, "num_kv_heads", &keys, err)) return err->status;
        json_object_set_new(hf->out->workload, "kv_heads", json_integer(keys));
        dl_hf_leave_out(hf, "multi_query", false, "not read in the new architecture");
        dl_hf_leave_out(hf, "parallel_attn", false, "the new architecture has its halves side by side");
        return DL_OK;
    }
    if (shares_keys) json_object_set_new(hf->out->workload, "kv_heads", json_integer(1));
    dl_hf_leave_out(hf, "num_kv_heads", false, "not read in the old architecture");
    dl_hf_leave_out(hf, "num_ln_in_parallel_attn", false, "not read in the old architecture");
    return DL_OK;
}

static const char *const falcon_architectures[] = {"FalconForCausalLM", NULL};
static const struct dl_hf_key falcon[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("ffn_hidden_size", "ffn", ""),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_COUNT("vocab_size", "vocab", NULL),
    {.key = "max_position_embeddings", .meaning = DL_HF_LENGTH, .to = "seq", .absent = "2048"},
    HF_WORD("activation", "activation", "\"gelu\"", dl_hf_functions),
    HF_FLAG("bias", "bias", "false"),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_DROPOUT("hidden_dropout", "0.0"),
    HF_SCORES("attention_dropout", "0.0"),
    HF_IS("alibi", "false", "positions are rotations; biases of scores by their distance are not in a workload"),
    HF_FINISHED("new_decoder_architecture"),
    HF_FINISHED("parallel_attn"),
    HF_FINISHED("multi_query"),
    HF_FINISHED("num_kv_heads"),
    HF_FINISHED("num_ln_in_parallel_attn"),
    HF_LEFT_OUT("apply_residual_connection_post_layernorm", "not read by the class"),
    HF_LEFT_OUT("rope_scaling", "rotations by other angles cost the same"),
    HF_LEFT_OUT("rope_parameters", "rotations by other angles cost the same"),
};
const struct dl_hf_model dl_hf_falcon = {
    .model_type = "falcon",
    .architectures = falcon_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"projections\": \"joined\"}",
    .keys = DL_HF_KEYS(falcon),
    .finish = finish_falcon,
};

/* ---- Phi ---- */

static enum dl_status finish_phi(struct dl_hf *hf, struct dl_error *err)
{
    dl_hf_leave_out(hf, "vocab_size", true, "the head's bias is not in the workload: vocab_size parameters");
    return dl_hf_finish_window(hf, err);
}

static const char *const phi_architectures[] = {"PhiForCausalLM", NULL};
static const struct dl_hf_key phi[] = {
    HF_WORD("hidden_act", "activation", "\"gelu_new\"", dl_hf_functions),
    HF_COUNT("num_key_value_heads", "kv_heads", ""),
    HF_DROPOUT("resid_pdrop", "0.0"),
    HF_DIFFERS("embd_pdrop", "0", "", "dropout of the embedding alone is not in the workload"),
    HF_DIFFERS("partial_rotary_factor", "1", "0.5", dl_hf_part_is_rotated),
    HF_IS("qk_layernorm", "false", "norms of queries and keys have no bias here"),
};
const struct dl_hf_model dl_hf_phi = {
    .model_type = "phi",
    .architectures = phi_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"projections\": \"apart\", \"bias\": true,"
              " \"parallel_norms\": 1}",
    .keys = DL_HF_KEYS(phi),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_phi,
};

/* ---- StableLM ---- */

static enum dl_status finish_stablelm(struct dl_hf *hf, struct dl_error *err)
{
    bool is_parallel = false;
    if (dl_hf_flag(hf, "use_parallel_residual", &is_parallel, err)) return err->status;
    if (is_parallel) set_norms(hf, 1);
    return dl_hf_finish_window(hf, err);
}

static const char *const stablelm_architectures[] = {"StableLmForCausalLM", NULL};
static const struct dl_hf_key stablelm[] = {
    HF_FLAG("use_qkv_bias", "qkv_bias", "false"),
    HF_FINISHED("use_parallel_residual"),
    HF_DIFFERS("hidden_dropout", "0", "", "dropout of the feed-forward half alone is not in the workload"),
    HF_DIFFERS("partial_rotary_factor", "1", "0.25", dl_hf_part_is_rotated),
    HF_IS("qk_layernorm", "false", "norms of queries and keys have no bias of their own here"),
    HF_LEFT_OUT("norm_eps", "a number in a formula, whatever it is"),
};
const struct dl_hf_model dl_hf_stablelm = {
    .model_type = "stablelm",
    .architectures = stablelm_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"rotary\", \"projections\": \"apart\", \"bias\": false,"
              " \"dropout\": false}",
    .keys = DL_HF_KEYS(stablelm),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_stablelm,
};
