/* megatron_export.h - a strategy and its workload as flags of Megatron-LM.
 *
 * The rule to remember: what the flags cannot say is listed, as on the way in; reading back flags without such a list
 * gives the same strategy and workload. */
#ifndef DL_IMPORT_MEGATRON_EXPORT_H
#define DL_IMPORT_MEGATRON_EXPORT_H

#include "sim/import/import.h"
#include "sim/import/shell.h"

struct dl_megatron_export {
    struct dl_json strategy, workload; /* whole: nothing is inherited any more */
    int64_t devices;                   /* those of the strategy, or more than it says; 0: the product of the ways */
    struct dl_arena *arena;
    struct dl_shell_words flags; /* "--flag value" each; for dl_free */
    struct dl_imported without;  /* a list of what has no counterpart, for dl_imported_release */
    bool is_bert, has_encoder;
};
/* Fails only where a document is not what its schema says. */
enum dl_status dl_megatron_export(struct dl_megatron_export *x, struct dl_error *err);
/* The launch command, with what has no counterpart as comments before it. */
void dl_megatron_export_print(const struct dl_megatron_export *x, FILE *to);
void dl_megatron_export_release(struct dl_megatron_export *x);

/* ---- for its parts ---- */

void dl_megatron_put(struct dl_megatron_export *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* List a key of an object as without counterpart. */
void dl_megatron_without(struct dl_megatron_export *x, struct dl_json object, const char *key, const char *why);
int64_t dl_megatron_count(struct dl_json object, const char *key, int64_t absent);
bool dl_megatron_is(struct dl_json object, const char *key, const char *word);
bool dl_megatron_true(struct dl_json object, const char *key, bool absent);
/* List every key of an object that is not among `known` (ends with NULL). */
void dl_megatron_without_others(struct dl_megatron_export *x, struct dl_json object, const char *const *known,
                                const char *why);

void dl_megatron_export_workload(struct dl_megatron_export *x);
void dl_megatron_export_strategy(struct dl_megatron_export *x);

#endif
