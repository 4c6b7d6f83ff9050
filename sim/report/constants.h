/* constants.h - the constants of input files that were found by looking at measured steps.
 *
 * Their facts have the grade fitted, to validation_rows (sim/core/facts.h). A constant that several files share with
 * the same value counts once. */
#ifndef DL_REPORT_CONSTANTS_H
#define DL_REPORT_CONSTANTS_H

#include "sim/core/facts.h"

struct dl_constant {
    const char *where, *key, *value; /* the place that was first to have it; the value is JSON */
    bool chosen;                     /* with both halves of the rows in sight */
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
