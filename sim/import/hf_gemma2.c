/* hf_gemma2.c - Gemma 2 and 3: norms before and behind each half of a block, and blocks with windows among others. */
#include <string.h>

#include "sim/import/hf_models.h"

static const char of_numbers[] = "a number in a formula, whatever it is";
static const char by_one_kernel[] = "attention that is fused by PyTorch caps no scores";

/* The last of so many blocks attends to all; 0: none does. */
static void set_windows(struct dl_hf *hf, int64_t window, int64_t every)
{
    json_object_set_new(hf->out->workload, "window", json_integer(window));
    if (every > 0) json_object_set_new(hf->out->workload, "full_attention_every", json_integer(every));
}

static bool is_known(const json_t *types, size_t block)
{
    const char *const type = json_string_value(json_array_get(types, block));
    return type && (strcmp(type, "sliding_attention") == 0 || strcmp(type, "full_attention") == 0);
}

static bool attends_to_all(const json_t *types, size_t block)
{
    const char *const type = json_string_value(json_array_get(types, block));
    return type && strcmp(type, "full_attention") == 0;
}

/* Blocks by name: a workload has them at equal distances, the last of so many attends to all. */
static enum dl_status read_types(struct dl_hf *hf, struct dl_json types, int64_t *every, struct dl_error *err)
{
    const size_t n = json_array_size(types.value);
    if ((int64_t)n != dl_hf_count(hf, "layers"))
        return dl_hf_refuse(hf, "layer_types", err, "must be a list of as many names as there are blocks, %lld",
                            (long long)dl_hf_count(hf, "layers"));
    for (size_t i = 0; i < n; i++)
        if (!is_known(types.value, i))
            return dl_hf_refuse(hf, "layer_types", err, "block %zu must be sliding_attention or full_attention", i);
    size_t first = 0;
    while (first < n && !attends_to_all(types.value, first)) first++;
    for (size_t i = 0; i < n; i++)
        if (attends_to_all(types.value, i) != ((i + 1) % (first + 1) == 0))
            return dl_hf_refuse(hf, "layer_types", err,
                                "must have full_attention at equal distances, the last of so many blocks");
    *every = first < n ? (int64_t)first + 1 : 0;
    return DL_OK;
}

const char *dl_hf_name_of(struct dl_hf *hf, const char *key, const char *older)
{
    const bool has_key = json_object_get(hf->config.value, key), has_older = json_object_get(hf->config.value, older);
    if (has_key) dl_hf_leave_out(hf, older, false, "an older name, beside the one of today");
    return !has_key && has_older ? older : key;
}

enum dl_status dl_hf_finish_layer_types(struct dl_hf *hf, int64_t window, int64_t every, struct dl_error *err)
{
    const struct dl_json types = dl_hf_get(hf, "layer_types");
    const char *const window_key = dl_hf_name_of(hf, "sliding_window", "sliding_window_size"),
                      *const every_key = dl_hf_name_of(hf, "sliding_window_pattern", "_sliding_window_pattern");
    if (json_is_null(json_object_get(hf->config.value, window_key))) {
        dl_hf_leave_out(hf, "layer_types", false, "there is no window");
        return DL_OK;
    }
    if (dl_hf_get(hf, window_key).value && dl_hf_need_count(hf, window_key, &window, err)) return err->status;
    if (dl_hf_get(hf, every_key).value && dl_hf_need_count(hf, every_key, &every, err)) return err->status;
    if (types.value && read_types(hf, types, &every, err)) return err->status;
    if (window <= 0) return dl_hf_refuse(hf, window_key, err, "must be a whole number above 0, or null");
    set_windows(hf, window, every);
    return DL_OK;
}

#define OF_LATER_GEMMA                                                                                                 \
    DL_HF_OF_GEMMA, HF_LEFT_OUT("query_pre_attn_scalar", of_numbers),                                                  \
        HF_LEFT_OUT("attn_logit_softcapping", by_one_kernel), HF_FINISHED("final_logit_softcapping"),                  \
        HF_LEFT_OUT("cache_implementation", "settings of generation, not of training"),                                \
        HF_IS("use_bidirectional_attention", "false", "the mask of attention is that of the model type")

/* Logits are capped unless the file says null; without the key by `usual`. */
static void set_cap(struct dl_hf *hf, bool usual)
{
    const json_t *const cap = json_object_get(hf->config.value, "final_logit_softcapping");
    if (cap ? !json_is_null(cap) : usual) json_object_set_new(hf->out->workload, "logit_cap", json_true());
    dl_hf_leave_out(hf, "final_logit_softcapping", false, "logits are capped; by which number costs the same");
}

static enum dl_status finish_gemma2(struct dl_hf *hf, struct dl_error *err)
{
    enum { usual_window = 4096, every_other = 2 };
    set_cap(hf, true);
    return dl_hf_finish_layer_types(hf, usual_window, every_other, err);
}

static const char *const gemma2_architectures[] = {"Gemma2ForCausalLM", NULL};
static const struct dl_hf_key gemma2[] = {
    OF_LATER_GEMMA,
    HF_FINISHED("sliding_window_size"),
    HF_FINISHED("sliding_window_pattern"),
};
const struct dl_hf_model dl_hf_gemma2 = {
    .model_type = "gemma2",
    .architectures = gemma2_architectures,
    .always = "{" DL_HF_DECODER ", \"post_norms\": true}",
    .keys = DL_HF_KEYS(gemma2),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_gemma2,
};

static enum dl_status finish_gemma3(struct dl_hf *hf, struct dl_error *err)
{
    enum { usual_window = 4096, usual_distance = 6 };
    set_cap(hf, false);
    return dl_hf_finish_layer_types(hf, usual_window, usual_distance, err);
}

static const char *const gemma3_architectures[] = {"Gemma3ForCausalLM", NULL};
static const struct dl_hf_key gemma3[] = {
    OF_LATER_GEMMA,
    HF_FINISHED("sliding_window_pattern"),
    HF_FINISHED("_sliding_window_pattern"),
    HF_LEFT_OUT("rope_local_base_freq", of_numbers),
};
const struct dl_hf_model dl_hf_gemma3 = {
    .model_type = "gemma3_text",
    .architectures = gemma3_architectures,
    .always = "{" DL_HF_DECODER ", \"post_norms\": true, \"qk_norm\": true}",
    .keys = DL_HF_KEYS(gemma3),
    .shared = &dl_hf_decoder_keys,
    .finish = finish_gemma3,
};
