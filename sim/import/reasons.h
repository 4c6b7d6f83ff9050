/* reasons.h - keys of other tools that nothing is made of, each with why. */
#ifndef DL_IMPORT_REASONS_H
#define DL_IMPORT_REASONS_H

#include "sim/import/import.h"

struct dl_reason {
    bool refuses; /* the run would be another one: no file of dlsim says it */
    bool matters; /* time or memory depend on it a little */
    const char *why;
    const char *names; /* with blanks between; one that ends in * stands for all that begin so */
};
/* NULL: none names it. */
const struct dl_reason *dl_reason_of(const struct dl_reason *reasons, size_t n, const char *name);

/* What a reader knows of a tree of keys, by names such as "zero_optimization.stage". */
struct dl_known_keys {
    const char *tool;  /* for errors */
    const char *taken; /* as the names of a reason */
    const struct dl_reason *reasons;
    size_t n_reasons;
};
/* List every key that is left out; refuse every one that is not known, or that has no counterpart. A key that is known
 * is not looked into. */
enum dl_status dl_check_keys(struct dl_json tree, const struct dl_known_keys *known, struct dl_arena *arena,
                             struct dl_imported *out, struct dl_error *err);
/* The value at such a name; NULL: none. */
struct dl_json dl_key_at(struct dl_json tree, const char *name, struct dl_arena *arena);

#endif
