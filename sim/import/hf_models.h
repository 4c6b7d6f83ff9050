/* hf_models.h - what the keys of a Hugging Face config.json mean, one table for each model type.
 *
 * The rule to remember: every key of the file is found in the tables of its model type or in those that all share, or
 * the file is refused. To add a model type: a struct dl_hf_model, and one line in hf_models.c. */
#ifndef DL_IMPORT_HF_MODELS_H
#define DL_IMPORT_HF_MODELS_H

#include "sim/import/import.h"

enum dl_hf_meaning {
    DL_HF_COUNT,   /* a whole number, the key `to` of the workload */
    DL_HF_LENGTH,  /* a whole number, the longest sequence: the key `seq`, told because training may use shorter ones */
    DL_HF_FLAG,    /* true or false, the key `to` */
    DL_HF_WORD,    /* one of `words`, as the key `to` */
    DL_HF_IS,      /* must be what `absent` says; anything else is refused with `why` */
    DL_HF_DIFFERS, /* as here if it is `same`; otherwise listed with `why`, as what makes a difference */
    DL_HF_DROPOUT, /* a probability, the key `dropout`: all of them above 0, or none */
    DL_HF_SCORES,  /* the same of attention's scores alone, the key `attention_dropout` where that differs */
    DL_HF_FINISHED, /* what it means, the model's `finish` says */
    DL_HF_LEFT_OUT, /* has no counterpart, and neither time nor memory depends on it: listed with `why` */
};

struct dl_hf_word {
    const char *word, *here;
};

/* null in the file is the same as no key. */
struct dl_hf_key {
    const char *key;
    enum dl_hf_meaning meaning;
    const char *to;
    const char *absent; /* the default of the model type, in JSON; "": then the workload has no such key either; NULL:
                           the key must be there. DL_HF_LEFT_OUT and DL_HF_FINISHED need none */
    const char *same;   /* DL_HF_DIFFERS: in JSON */
    const char *why;
    const struct dl_hf_word *words; /* ends with NULL */
};

/* Lines of a table. */
#define HF_COUNT(key_, to_, absent_)                                                                                   \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_COUNT, .to = (to_), .absent = (absent_)                                        \
    }
#define HF_LENGTH(key_)                                                                                                \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_LENGTH, .to = "seq"                                                            \
    }
#define HF_FLAG(key_, to_, absent_)                                                                                    \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_FLAG, .to = (to_), .absent = (absent_)                                         \
    }
#define HF_WORD(key_, to_, absent_, words_)                                                                            \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_WORD, .to = (to_), .absent = (absent_), .words = (words_)                      \
    }
#define HF_IS(key_, value_, why_)                                                                                      \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_IS, .absent = (value_), .why = (why_)                                          \
    }
#define HF_DIFFERS(key_, same_, absent_, why_)                                                                         \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_DIFFERS, .same = (same_), .absent = (absent_), .why = (why_)                   \
    }
#define HF_DROPOUT(key_, absent_)                                                                                      \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_DROPOUT, .absent = (absent_)                                                   \
    }
#define HF_SCORES(key_, absent_)                                                                                       \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_SCORES, .absent = (absent_)                                                    \
    }
#define HF_FINISHED(key_)                                                                                              \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_FINISHED                                                                       \
    }
#define HF_LEFT_OUT(key_, why_)                                                                                        \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_LEFT_OUT, .why = (why_)                                                        \
    }

struct dl_hf_keys {
    const struct dl_hf_key *items;
    size_t n;
};
#define DL_HF_KEYS(array)                                                                                              \
    {                                                                                                                  \
        (array), DL_COUNT(array)                                                                                       \
    }

/* A file that is being read. */
struct dl_hf {
    const struct dl_hf_model *model;
    struct dl_json config;
    struct dl_imported *out; /* with the workload */
    struct dl_arena *arena;
};

struct dl_hf_model {
    const char *model_type;
    const char *const *architectures; /* those that are built, by the class that has the head; ends with NULL */
    const char *always;               /* JSON: keys of every workload of this type */
    const char *seq_fact;   /* OPTIONAL: where the length of a sequence is from; NULL: it is the longest possible */
    struct dl_hf_keys keys; /* its own; they go before those that it shares */
    const struct dl_hf_keys *shared;                                  /* OPTIONAL: with its like */
    enum dl_status (*finish)(struct dl_hf *hf, struct dl_error *err); /* OPTIONAL: what no key says by itself */
};
const struct dl_hf_model *dl_hf_model_find(const char *model_type);
/* The names of all, for errors; how many. */
size_t dl_hf_model_names(const char ***names, struct dl_arena *arena);

extern const struct dl_hf_keys dl_hf_common;       /* keys that every config.json may have */
extern const struct dl_hf_word dl_hf_functions[];  /* names of functions between two products without a gate */
extern const struct dl_hf_word dl_hf_gelu_gates[]; /* and of those with one that is a GELU */
extern const char dl_hf_no_bias[];                 /* why products of blocks may have none */
extern const char dl_hf_part_is_rotated[];         /* why a part of heads that is rotated differs */

/* What finish() asks for and says. */
struct dl_json dl_hf_get(const struct dl_hf *hf, const char *key);     /* value NULL: absent, or null */
int64_t dl_hf_count(const struct dl_hf *hf, const char *workload_key); /* of the workload so far; 0: absent */
/* A whole number of the file that must be there, 0 or more. */
enum dl_status dl_hf_need_count(const struct dl_hf *hf, const char *key, int64_t *count, struct dl_error *err);
/* True or false of the file; what *value is where it is absent. */
enum dl_status dl_hf_flag(const struct dl_hf *hf, const char *key, bool *value, struct dl_error *err);
/* So many shared experts, whose width `width_key` of the file says. */
enum dl_status dl_hf_set_shared_experts(struct dl_hf *hf, const char *width_key, int64_t n, struct dl_error *err);
void dl_hf_leave_out(struct dl_hf *hf, const char *key, bool matters, const char *why);

/* Refuse a key of the file, which need not be there. */
enum dl_status dl_hf_refuse(const struct dl_hf *hf, const char *key, struct dl_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The model types, by the file that they are in. */
extern const struct dl_hf_model dl_hf_llama, dl_hf_mistral, dl_hf_mixtral;
extern const struct dl_hf_model dl_hf_gemma, dl_hf_granite, dl_hf_phi3;
extern const struct dl_hf_model dl_hf_gemma2, dl_hf_gemma3, dl_hf_olmo2, dl_hf_olmoe, dl_hf_gpt_oss;
extern const struct dl_hf_model dl_hf_gptj, dl_hf_bloom;
extern const struct dl_hf_model dl_hf_qwen2, dl_hf_qwen3, dl_hf_qwen2_moe, dl_hf_qwen3_moe;
extern const struct dl_hf_model dl_hf_deepseek_v2, dl_hf_deepseek_v3, dl_hf_nemotron_h;
extern const struct dl_hf_model dl_hf_gpt2, dl_hf_gpt_neox, dl_hf_gpt_bigcode, dl_hf_starcoder2;
extern const struct dl_hf_model dl_hf_opt, dl_hf_falcon, dl_hf_phi, dl_hf_stablelm;
extern const struct dl_hf_model dl_hf_bert, dl_hf_roberta, dl_hf_vit, dl_hf_dinov2, dl_hf_t5;

#define DL_HF_DECODER                                                                                                  \
    "\"norm\": \"rmsnorm\", \"positions\": \"rotary\", \"projections\": \"apart\", \"bias\": false, \"dropout\": "     \
    "false"

/* Keys that all decoders with RMSNorm, rotary positions and a gated feed-forward half have, and a finish() that says
 * what becomes of their sliding window. */
extern const struct dl_hf_keys dl_hf_decoder_keys;
enum dl_status dl_hf_finish_window(struct dl_hf *hf, struct dl_error *err);
/* Blocks with windows among others that attend to all: by layer_types, by a key that says the last of how many does, or
 * by `every` where the file has neither; of the class's own width where it says none. */
enum dl_status dl_hf_finish_layer_types(struct dl_hf *hf, int64_t window, int64_t every, struct dl_error *err);
/* Under which of two names the file has a key: that of today goes before, and is the answer where it has neither. */
const char *dl_hf_name_of(struct dl_hf *hf, const char *key, const char *older);

/* Lines of a table: what all Gemma have otherwise than Llama. */
#define DL_HF_OF_GEMMA                                                                                                 \
    HF_WORD("hidden_act", "activation", "\"gelu_pytorch_tanh\"", dl_hf_gelu_gates),                                    \
        HF_WORD("hidden_activation", "activation", "", dl_hf_gelu_gates), /* goes before hidden_act */                 \
        HF_FLAG("tie_word_embeddings", "tied_embedding", "true"), HF_COUNT("head_dim", "head_size", "256"),            \
        HF_IS("attention_bias", "false", dl_hf_no_bias)

extern const struct dl_hf_keys dl_hf_encoder_keys; /* sizes of an encoder's blocks */

#endif
