/* search_strategy.h - a point of a search as a strategy file and in words. */
#ifndef DL_STUDY_SEARCH_STRATEGY_H
#define DL_STUDY_SEARCH_STRATEGY_H

#include "sim/core/texts.h"
#include "sim/study/search_space.h"

/* Refuse what --fix cannot set in a strategy: unknown keys, and those that are options of the search. */
enum dl_status dl_search_check_fixes(const struct dl_texts *fixes, struct dl_error *err);

/* The same with a value that is JSON: words may come without their quotes. In the arena. */
const char *dl_search_with_json(const char *fix, struct dl_arena *arena);
/* Whether it is of this key or this entry of the stack. */
bool dl_search_fixes_key(const char *fix, const char *key);
/* Whether it is of an entry of the stack that says how a model is spread, not what of it is trained. */
bool dl_search_fixes_spread(const char *fix);
/* Put it into a strategy, with its entry if the search has none such. */
enum dl_status dl_search_apply(struct dl_json doc, const char *fix, struct dl_arena *arena, struct dl_error *err);

/* The keys of `base`, those of the point, and what is fixed beside its axes, as far as it has the entries: a new
 * object. */
json_t *dl_search_strategy(const json_t *base, const struct dl_space_point *p, const struct dl_texts *fixes,
                           struct dl_arena *arena, struct dl_error *err);
/* How ranks are placed, which no strategy file says; NULL: as usual. */
const char *dl_search_placement(const struct dl_space_point *p);
/* "tensor 8, pipeline 2 1f1b, data 4, micro-batch 1", in the arena. */
const char *dl_search_words(const struct dl_space_point *p, struct dl_arena *arena);

#endif
