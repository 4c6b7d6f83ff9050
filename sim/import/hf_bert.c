/* hf_bert.c - BERT, RoBERTa and ViT: encoders, all of whose tokens attend to all. */
#include "sim/import/hf_models.h"

#include <string.h>

static const struct dl_hf_key encoder_keys[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_WORD("hidden_act", "activation", "\"gelu\"", dl_hf_functions),
};
static const struct dl_hf_keys shared = DL_HF_KEYS(encoder_keys);

/* ---- BERT ---- */

#define BERT_ENCODER                                                                                                   \
    "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"projections\": \"apart\", \"causal\": false,"             \
    " \"embedding_norm\": true, \"final_norm\": false, \"head_transform\": true}"
/* Keys of RoBERTa, too. */
#define BERT_KEYS                                                                                                      \
    HF_LENGTH("max_position_embeddings"), HF_COUNT("vocab_size", "vocab", NULL),                                       \
        HF_COUNT("type_vocab_size", "token_types", "2"), HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),     \
        HF_DROPOUT("hidden_dropout_prob", "0.1"), HF_SCORES("attention_probs_dropout_prob", "0.1"),                    \
        HF_IS("position_embedding_type", "\"absolute\"", "positions are learned, one vector each"),                    \
        HF_LEFT_OUT("classifier_dropout", "of a head for classification, which this class does not have")

static const char of_pooler[] = "of the pooler, which is not in the workload";
static const char *const bert_architectures[] = {"BertForMaskedLM", "BertForPreTraining", NULL};
static const struct dl_hf_key bert[] = {
    BERT_KEYS,
    HF_LEFT_OUT("directionality", "the mask is that of an encoder in any case"),
    HF_LEFT_OUT("pooler_fc_size", of_pooler),
    HF_LEFT_OUT("pooler_num_attention_heads", of_pooler),
    HF_LEFT_OUT("pooler_num_fc_layers", of_pooler),
    HF_LEFT_OUT("pooler_size_per_head", of_pooler),
    HF_LEFT_OUT("pooler_type", of_pooler),
};

static enum dl_status finish_bert(struct dl_hf *hf, struct dl_error *err)
{
    (void)err;
    const char *const class = json_string_value(json_array_get(dl_hf_get(hf, "architectures").value, 0));
    if (class && strcmp(class, bert_architectures[1]) == 0)
        dl_hf_leave_out(hf, "architectures", true,
                        "the pooler and the head that tells the next sentence are not in the workload: on one token of "
                        "a sample, hidden_size^2 + 3 hidden_size + 2 parameters");
    return DL_OK;
}

const struct dl_hf_model dl_hf_bert = {
    .model_type = "bert",
    .architectures = bert_architectures,
    .always = BERT_ENCODER,
    .keys = DL_HF_KEYS(bert),
    .shared = &shared,
    .finish = finish_bert,
};

/* ---- RoBERTa ---- */

/* Positions are counted from the id of padding on, which has a vector of its own, as the ids before it have. */
static enum dl_status finish_roberta(struct dl_hf *hf, struct dl_error *err)
{
    int64_t padding = 1;
    if (dl_hf_get(hf, "pad_token_id").value && dl_hf_need_count(hf, "pad_token_id", &padding, err)) return err->status;
    const int64_t vectors = dl_hf_count(hf, "seq"), unused = padding + 1;
    if (vectors <= unused)
        return dl_hf_refuse(hf, "max_position_embeddings", err, "must be above pad_token_id + 1, %lld, got %lld",
                            (long long)unused, (long long)vectors);
    json_object_set_new(hf->out->workload, "seq", json_integer(vectors - unused));
    dl_hf_leave_out(hf, "pad_token_id", true,
                    "positions up to that of padding are not in the workload: hidden_size parameters each");
    return DL_OK;
}

static const char *const roberta_architectures[] = {"RobertaForMaskedLM", NULL};
static const struct dl_hf_key roberta[] = {
    BERT_KEYS,
    HF_FINISHED("pad_token_id"),
};
const struct dl_hf_model dl_hf_roberta = {
    .model_type = "roberta",
    .architectures = roberta_architectures,
    .always = BERT_ENCODER,
    .keys = DL_HF_KEYS(roberta),
    .shared = &shared,
    .finish = finish_roberta,
};

/* ---- ViT ---- */

static const char *const vit_architectures[] = {"ViTForImageClassification", NULL};
static const struct dl_hf_key vit[] = {
    HF_FLAG("qkv_bias", "qkv_bias", "true"),
    HF_DROPOUT("hidden_dropout_prob", "0.0"),
    HF_SCORES("attention_probs_dropout_prob", "0.0"),
    HF_FINISHED("image_size"),
    HF_FINISHED("patch_size"),
    HF_FINISHED("num_channels"),
    HF_FINISHED("id2label"),
    HF_FINISHED("num_labels"),
    HF_LEFT_OUT("encoder_stride", "of a decoder of masked images, which this class does not have"),
    HF_LEFT_OUT("pooler_act", of_pooler),
    HF_LEFT_OUT("pooler_output_size", of_pooler),
};

static int64_t count_or(const struct dl_hf *hf, const char *key, int64_t usual)
{
    const struct dl_json value = dl_hf_get(hf, key);
    return value.value ? json_integer_value(value.value) : usual; /* 0: no whole number */
}

/* Two, if the file names none, as in transformers. */
static int64_t count_classes(const struct dl_hf *hf)
{
    const struct dl_json names = dl_hf_get(hf, "id2label");
    enum { usual = 2 };
    return json_is_object(names.value) ? (int64_t)json_object_size(names.value) : count_or(hf, "num_labels", usual);
}

/* Squares that cover the image, and the token of the class. */
static enum dl_status finish_vit(struct dl_hf *hf, struct dl_error *err)
{
    enum { largest = 65536, usual_image = 224, usual_patch = 16, usual_channels = 3 };
    const int64_t image = count_or(hf, "image_size", usual_image), patch = count_or(hf, "patch_size", usual_patch),
                  channels = count_or(hf, "num_channels", usual_channels), classes = count_classes(hf);
    if (image < 1 || image > largest)
        return dl_hf_refuse(hf, "image_size", err, "must be a whole number in [1, %d]", largest);
    if (patch < 1 || patch > image || image % patch)
        return dl_hf_refuse(hf, "patch_size", err, "must divide image_size, %lld", (long long)image);
    if (channels < 1 || channels > largest)
        return dl_hf_refuse(hf, "num_channels", err, "must be a whole number in [1, %d]", largest);
    if (classes < 1) return dl_hf_refuse(hf, "num_labels", err, "must be a whole number above 0");
    const int64_t across = image / patch;
    json_object_set_new(hf->out->workload, "seq", json_integer(across * across + 1));
    json_object_set_new(hf->out->workload, "patch", json_integer(patch * patch * channels));
    json_object_set_new(hf->out->workload, "vocab", json_integer(classes));
    return DL_OK;
}

const struct dl_hf_model dl_hf_vit = {
    .model_type = "vit",
    .architectures = vit_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"projections\": \"apart\", \"causal\": false,"
              " \"tied_embedding\": false}",
    .seq_fact = "derived: the patches of an image, (image_size / patch_size)^2, and the class token",
    .keys = DL_HF_KEYS(vit),
    .shared = &shared,
    .finish = finish_vit,
};
