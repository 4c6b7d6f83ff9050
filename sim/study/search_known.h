/* search_known.h - points of a search that a sweep has already run, out of its database.
 *
 * The rule to remember: a result is taken only if a run of today would have the same inputs, which the hash in its
 * answer tells: files that have changed since, and other versions of dlsim, do not count. */
#ifndef DL_STUDY_SEARCH_KNOWN_H
#define DL_STUDY_SEARCH_KNOWN_H

#include "sim/study/search_point.h"

struct dl_known;

/* Read those of the machine, model and software of the search. Names in the sweep are relative to the database. For
 * dl_known_free. */
enum dl_status dl_known_read(const char *path, const struct dl_search *s, struct dl_known **out, struct dl_error *err);
void dl_known_free(struct dl_known *known);

/* The result of a point by the engine of the search, as dl_search_run_point would give it, borrowed; NULL: it must be
 * run. */
json_t *dl_known_find(struct dl_known *known, const struct dl_search *s, uint64_t point);

#endif
