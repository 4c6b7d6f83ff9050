/* torchtitan.h - what the two halves of the reader of torchtitan's configurations share. */
#ifndef DL_IMPORT_TORCHTITAN_H
#define DL_IMPORT_TORCHTITAN_H

#include "sim/import/import.h"

struct dl_torchtitan {
    struct dl_json config;
    struct dl_arena *arena;
    struct dl_imported *out;
    struct dl_error *err;
    int64_t tensor, pipeline, context, shard, replicate; /* shard -1: what is left */
    int64_t batch, microbatch; /* samples of a rank; a pipeline cuts them into micro-batches, else all are one */
};

/* Words, with what each becomes. */
struct dl_titan_word {
    const char *word, *here;
};

/* Values by name, "training.seq_len"; what is wrong with one is in err. */
int64_t dl_titan_count(const struct dl_torchtitan *r, const char *name, int64_t absent);
bool dl_titan_truth(const struct dl_torchtitan *r, const char *name);
const char *dl_titan_text(const struct dl_torchtitan *r, const char *name, const char *absent);
/* What the word there becomes; where there is none, what the first does. */
const char *dl_titan_word(const struct dl_torchtitan *r, const char *name, const struct dl_titan_word *words, size_t n);
/* List something that would change time or memory. */
void dl_titan_differs(const struct dl_torchtitan *r, const char *key, const char *value, const char *why);

/* Fill the strategy of `out`, after the workload if there is one. */
enum dl_status dl_titan_strategy(struct dl_torchtitan *r);

#endif
