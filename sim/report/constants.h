/* constants.h - the constants of input files that were found by looking at measured steps.
 *
 * A fact says so where its source begins with "fitted to the half of the published steps" (the half that may be) or
 * with "chosen by the published steps" (both halves in sight). Files that share a constant say the same value: it
 * counts once. */
#ifndef DL_REPORT_CONSTANTS_H
#define DL_REPORT_CONSTANTS_H

#include "sim/core/facts.h"

struct dl_constant {
    const char *where, *key, *value; /* the place that was first to have it; the value is JSON */
    bool chosen;
    const struct dl_constant *next;
};

struct dl_constants {
    const struct dl_constant *first;
    size_t n, n_chosen; /* of these, by both halves */
    struct dl_arena *arena;
};

/* Add those of a document, which need not outlive them. */
void dl_constants_add(struct dl_constants *c, struct dl_json doc);
void dl_constants_join(struct dl_constants *c, const struct dl_constants *others);
json_t *dl_constants_json(const struct dl_constants *c);

#endif
