/* hf_models.h - what the keys of a Hugging Face config.json mean, one table for each model type.
 *
 * The rule to remember: every key of the file is found in the tables of its model type or in those that all share, or
 * the file is refused. To add a model type: a struct dl_hf_model, and one line in hf_models.c. */
#ifndef DL_IMPORT_HF_MODELS_H
#define DL_IMPORT_HF_MODELS_H

#include "sim/import/import.h"

enum dl_hf_meaning {
    DL_HF_COUNT,    /* a whole number, the key `to` of the workload */
    DL_HF_FLAG,     /* true or false, the key `to` */
    DL_HF_WORD,     /* one of `words`, as the key `to` */
    DL_HF_IS,       /* must be what `absent` says; anything else is refused with `why` */
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
                           the key must be there. DL_HF_LEFT_OUT needs none */
    const char *why;
    const struct dl_hf_word *words; /* ends with NULL */
};

/* Lines of a table. */
#define HF_COUNT(key_, to_, absent_)                                                                                   \
    {                                                                                                                  \
        .key = (key_), .meaning = DL_HF_COUNT, .to = (to_), .absent = (absent_)                                        \
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

enum { DL_HF_TABLES = 2 };
struct dl_hf_model {
    const char *model_type;
    const char *const *architectures;     /* those that are built, by the class that has the head; ends with NULL */
    const char *always;                   /* JSON: keys of every workload of this type */
    struct dl_hf_keys keys[DL_HF_TABLES]; /* its own first, then those it shares with its like */
    enum dl_status (*finish)(struct dl_hf *hf, struct dl_error *err); /* OPTIONAL: what no key says by itself */
};
const struct dl_hf_model *dl_hf_model_find(const char *model_type);
/* The names of all, for errors; how many. */
size_t dl_hf_model_names(const char ***names, struct dl_arena *arena);

extern const struct dl_hf_keys dl_hf_common; /* keys that every config.json may have */

/* What finish() asks for and says. */
struct dl_json dl_hf_get(const struct dl_hf *hf, const char *key);     /* value NULL: absent, or null */
int64_t dl_hf_count(const struct dl_hf *hf, const char *workload_key); /* of the workload so far; 0: absent */
void dl_hf_leave_out(struct dl_hf *hf, const char *key, bool matters, const char *why);

/* The model types, by the family that shares keys. */
extern const struct dl_hf_model dl_hf_llama;

#endif
