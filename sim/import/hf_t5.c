/* hf_t5.c - T5: an encoder and a decoder with RMSNorm, no biases, and scores biased by their distance. */
#include "sim/import/hf_models.h"

static const struct dl_hf_word functions[] = {
    {"relu", "relu"}, {"gated-gelu", "geglu"}, {"gated-silu", "swiglu"}, {NULL, NULL}};

/* Of the feed-forward half, the key feed_forward_proj says what these do. */
static const char said_twice[] = "feed_forward_proj says the same";

/* Biases by distance do not bound the length of a text; 512 is what the models were trained with. */
static enum dl_status finish(struct dl_hf *hf, struct dl_error *err)
{
    static const char both[] = "texts and answers are taken to have so many tokens each; those of a training may be "
                               "shorter (--set workload.encoder_seq=N --set workload.seq=N)";
    const int64_t usual = 512, given = dl_hf_count(hf, "seq"), seq = given ? given : usual;
    if (!dl_hf_count(hf, "layers"))
        json_object_set(hf->out->workload, "layers", json_object_get(hf->out->workload, "encoder_layers"));
    json_object_set_new(hf->out->workload, "seq", json_integer(seq));
    json_object_set_new(hf->out->workload, "encoder_seq", json_integer(seq));
    if (json_is_true(json_object_get(hf->out->workload, "dropout")))
        json_object_set_new(hf->out->workload, "ffn_dropout", json_true());
    dl_hf_leave_out(hf, "n_positions", true, both);
    return err->status;
}

static const char *const architectures[] = {"T5ForConditionalGeneration", "T5WithLMHeadModel", NULL};
static const struct dl_hf_key keys[] = {
    HF_COUNT("num_layers", "encoder_layers", NULL),
    HF_COUNT("num_decoder_layers", "layers", ""),
    HF_COUNT("d_model", "hidden", NULL),
    HF_COUNT("d_ff", "ffn", NULL),
    HF_COUNT("d_kv", "head_size", NULL),
    HF_COUNT("num_heads", "heads", NULL),
    HF_COUNT("vocab_size", "vocab", NULL),
    HF_COUNT("n_positions", "seq", ""),
    HF_WORD("feed_forward_proj", "activation", "\"relu\"", functions),
    HF_FLAG("tie_word_embeddings", "tied_embedding", "true"),
    HF_DROPOUT("dropout_rate", "0.1"),
    HF_IS("is_encoder_decoder", "true", "the encoder by itself is another model"),
    HF_IS("relative_attention_num_buckets", "32", "scores have a bias for each of 32 ranges of distances"),
    HF_LEFT_OUT("relative_attention_max_distance", "which distances share a bias costs no time"),
    HF_LEFT_OUT("is_gated_act", said_twice),
    HF_LEFT_OUT("dense_act_fn", said_twice),
    HF_LEFT_OUT("classifier_dropout", "of a head for classification, which this class does not have"),
    HF_LEFT_OUT("output_past", "of generation"),
};

const struct dl_hf_model dl_hf_t5 = {
    .model_type = "t5",
    .architectures = architectures,
    .always = "{\"norm\": \"rmsnorm\", \"positions\": \"relative\", \"projections\": \"apart\", \"bias\": false}",
    .seq_fact = "assumed: what the models were trained with; training may use others",
    .keys = DL_HF_KEYS(keys),
    .finish = finish,
};
