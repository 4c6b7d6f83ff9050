/* hf_bert.c - BERT and RoBERTa: encoders of words, all of whose tokens attend to all. */
#include "sim/import/hf_models.h"

#include <string.h>

static const struct dl_hf_key encoder_keys[] = {
    HF_COUNT("num_hidden_layers", "layers", NULL),
    HF_COUNT("hidden_size", "hidden", NULL),
    HF_COUNT("intermediate_size", "ffn", NULL),
    HF_COUNT("num_attention_heads", "heads", NULL),
    HF_WORD("hidden_act", "activation", "\"gelu\"", dl_hf_functions),
};
const struct dl_hf_keys dl_hf_encoder_keys = DL_HF_KEYS(encoder_keys);

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
    .shared = &dl_hf_encoder_keys,
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
    .shared = &dl_hf_encoder_keys,
    .finish = finish_roberta,
};
