/* hf_models.c - the model types of Hugging Face that are known, and the keys that all their files may have. */
#include "sim/import/hf_models.h"

#include <string.h>

static const struct dl_hf_model *const models[] = {
    &dl_hf_llama,     &dl_hf_mistral,   &dl_hf_mixtral,     &dl_hf_gemma,       &dl_hf_gemma2,     &dl_hf_gemma3,
    &dl_hf_granite,   &dl_hf_phi3,      &dl_hf_olmo2,       &dl_hf_olmoe,       &dl_hf_qwen2,      &dl_hf_qwen3,
    &dl_hf_qwen2_moe, &dl_hf_qwen3_moe, &dl_hf_deepseek_v2, &dl_hf_deepseek_v3, &dl_hf_nemotron_h, &dl_hf_gpt_oss,
    &dl_hf_gpt2,      &dl_hf_gptj,      &dl_hf_gpt_neox,    &dl_hf_gpt_bigcode, &dl_hf_starcoder2, &dl_hf_opt,
    &dl_hf_bloom,     &dl_hf_falcon,    &dl_hf_phi,         &dl_hf_stablelm,    &dl_hf_bert,       &dl_hf_roberta,
    &dl_hf_vit,       &dl_hf_dinov2,    &dl_hf_t5,
};

const struct dl_hf_model *dl_hf_model_find(const char *model_type)
{
    for (size_t i = 0; i < DL_COUNT(models); i++)
        if (strcmp(models[i]->model_type, model_type) == 0) return models[i];
    return NULL;
}

size_t dl_hf_model_names(const char ***names, struct dl_arena *arena)
{
    *names = dl_arena_alloc(arena, sizeof models);
    for (size_t i = 0; i < DL_COUNT(models); i++) (*names)[i] = models[i]->model_type;
    return DL_COUNT(models);
}

static const char of_tokens[] = "ids of tokens: none costs more than another";
static const char of_generation[] = "settings of generation, not of training";
static const char of_start[] = "values at the start of training cost no time";
static const char of_numbers[] = "a number in a formula, whatever it is";
static const char of_library[] = "about files and the library that reads them";
static const char of_strategy[] = "belongs to the strategy";
static const char of_labels[] = "names of labels";
static const char of_outputs[] = "what a call hands out";
static const char only_decoders[] = "only the model by itself is known, not one beside an encoder";

static const struct dl_hf_key common[] = {
    HF_LEFT_OUT("_name_or_path", of_library),
    HF_LEFT_OUT("transformers_version", of_library),
    HF_LEFT_OUT("auto_map", of_library),
    HF_LEFT_OUT("_attn_implementation_autoset", of_library),
    HF_LEFT_OUT("_commit_hash", of_library),
    HF_LEFT_OUT("is_llama_config", of_library),
    HF_LEFT_OUT("unsloth_version", of_library),
    HF_LEFT_OUT("unsloth_fixed", of_library),
    HF_LEFT_OUT("torchscript", of_library),
    HF_LEFT_OUT("tf_legacy_loss", of_library),
    HF_LEFT_OUT("torch_dtype", of_strategy),
    HF_LEFT_OUT("dtype", of_strategy),
    HF_LEFT_OUT("quantization_config", of_strategy),
    HF_LEFT_OUT("use_bfloat16", of_strategy),
    HF_LEFT_OUT("gradient_checkpointing", of_strategy),
    HF_LEFT_OUT("quantization", of_strategy),
    HF_LEFT_OUT("_flash_attn_2_enabled", of_strategy),
    HF_LEFT_OUT("attn_implementation", of_strategy),
    HF_LEFT_OUT("_attn_implementation", of_strategy),
    HF_LEFT_OUT("bos_token_id", of_tokens),
    HF_LEFT_OUT("eos_token_id", of_tokens),
    HF_LEFT_OUT("pad_token_id", of_tokens),
    HF_LEFT_OUT("sep_token_id", of_tokens),
    HF_LEFT_OUT("unk_token_id", of_tokens),
    HF_LEFT_OUT("decoder_start_token_id", of_tokens),
    HF_LEFT_OUT("tokenizer_class", of_tokens),
    HF_LEFT_OUT("use_cache", of_generation),
    HF_LEFT_OUT("do_sample", of_generation),
    HF_LEFT_OUT("temperature", of_generation),
    HF_LEFT_OUT("top_k", of_generation),
    HF_LEFT_OUT("top_p", of_generation),
    HF_LEFT_OUT("num_beams", of_generation),
    HF_LEFT_OUT("max_length", of_generation),
    HF_LEFT_OUT("min_length", of_generation),
    HF_LEFT_OUT("length_penalty", of_generation),
    HF_LEFT_OUT("repetition_penalty", of_generation),
    HF_LEFT_OUT("no_repeat_ngram_size", of_generation),
    HF_LEFT_OUT("early_stopping", of_generation),
    HF_LEFT_OUT("task_specific_params", of_generation),
    HF_LEFT_OUT("output_past", of_generation),
    HF_LEFT_OUT("num_beam_groups", of_generation),
    HF_LEFT_OUT("num_return_sequences", of_generation),
    HF_LEFT_OUT("diversity_penalty", of_generation),
    HF_LEFT_OUT("typical_p", of_generation),
    HF_LEFT_OUT("encoder_no_repeat_ngram_size", of_generation),
    HF_LEFT_OUT("bad_words_ids", of_generation),
    HF_LEFT_OUT("remove_invalid_values", of_generation),
    HF_LEFT_OUT("exponential_decay_length_penalty", of_generation),
    HF_LEFT_OUT("suppress_tokens", of_generation),
    HF_LEFT_OUT("begin_suppress_tokens", of_generation),
    HF_LEFT_OUT("forced_bos_token_id", of_generation),
    HF_LEFT_OUT("forced_eos_token_id", of_generation),
    HF_LEFT_OUT("return_dict_in_generate", of_generation),
    HF_LEFT_OUT("output_scores", of_generation),
    HF_LEFT_OUT("prefix", of_generation),
    HF_LEFT_OUT("initializer_range", of_start),
    HF_LEFT_OUT("initializer_factor", of_start),
    HF_LEFT_OUT("output_attentions", of_outputs),
    HF_LEFT_OUT("output_hidden_states", of_outputs),
    HF_LEFT_OUT("return_dict", of_outputs),
    HF_LEFT_OUT("id2label", of_labels),
    HF_LEFT_OUT("label2id", of_labels),
    HF_LEFT_OUT("problem_type", of_labels),
    HF_LEFT_OUT("finetuning_task", of_labels),
    HF_LEFT_OUT("rms_norm_eps", of_numbers),
    HF_LEFT_OUT("layer_norm_eps", of_numbers),
    HF_LEFT_OUT("layer_norm_epsilon", of_numbers),
    HF_LEFT_OUT("rope_theta", of_numbers),
    HF_IS("is_encoder_decoder", "false", only_decoders),
    HF_IS("add_cross_attention", "false", only_decoders),
    HF_IS("cross_attention_hidden_size", "null", only_decoders),
    HF_IS("tie_encoder_decoder", "false", only_decoders),
    HF_IS("is_decoder", "false", "the mask of attention is that of the model type"),
    HF_IS("pruned_heads", "{}", "all blocks have the same heads"),
    HF_IS("chunk_size_feed_forward", "0", "the feed-forward half is not computed in pieces"),
};

const struct dl_hf_keys dl_hf_common = DL_HF_KEYS(common);

const char dl_hf_part_is_rotated[] = "all of a head is rotated here, which moves a little more memory";

const struct dl_hf_word dl_hf_functions[] = {{"gelu", "gelu"},      {"gelu_new", "gelu"},
                                             {"gelu_fast", "gelu"}, {"gelu_pytorch_tanh", "gelu"},
                                             {"relu", "relu"},      {NULL, NULL}};
