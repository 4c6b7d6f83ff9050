/* inherit.h - a data file that says "like": NAME has the keys of that file of its folder, but for those it has itself.
 * That file may be like another.
 *
 * The rule to remember: a value of its own replaces the inherited one; objects are joined key by key, and a list whose
 * last element is "..." goes on with the elements of the inherited list. */
#ifndef DL_CORE_INHERIT_H
#define DL_CORE_INHERIT_H

#include "sim/core/json.h"

/* The files that a document is like, one through the other: their names, the nearest first. */
enum { DL_MOST_LIKE = 8 };
struct dl_lineage {
    const char *names[DL_MOST_LIKE];
    int n;
};

/* Complete the document in place, if it has "like", which is then gone; `folder` is the shipped one, `what` the word of
 * errors for its files. */
enum dl_status dl_json_inherit(struct dl_json doc, const char *folder, const char *what, struct dl_arena *arena,
                               struct dl_error *err);
/* The same; the lineage tells which files it took. */
enum dl_status dl_json_inherit_from(struct dl_json doc, const char *folder, const char *what, struct dl_arena *arena,
                                    struct dl_lineage *lineage, struct dl_error *err);

#endif
