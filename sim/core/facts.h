/* facts.h - where the numbers of a file come from, and how sure they are.
 *
 * Any object may hold "facts": for its keys (or "*" for all of them) "grade: source", for example
 * {"bandwidth_bytes_per_s": "published: OLCF user guide"}. Of a key that is one number the fact may also say an
 * interval that holds the true value with 95 %, in the unit of the key:
 * {"start_s": {"grade": "measured", "source": "one-node runs", "low": 8e-6, "high": 1.1e-5}}.
 * A figure found by looking at measured times has the grade "fitted", which needs an object that says to what:
 * {"tile_s": {"grade": "fitted", "to": "other_times", "half": "fit", "rows": "products", "source": "how"}}.
 * The rule to remember: a fact of a key holds for all below it, but for objects with facts of their own. A table, which
 * has "columns" and "rows", holds measurements: its numbers need no facts. */
#ifndef DL_CORE_FACTS_H
#define DL_CORE_FACTS_H

#include "sim/core/json.h"

/* No facts at all: assumed. */
enum dl_grade { DL_MEASURED, DL_PUBLISHED, DL_DERIVED, DL_FITTED, DL_ASSUMED, DL_N_GRADES };
const char *dl_grade_name(enum dl_grade grade);

/* What a figure was fitted to: steps that `dlsim validate` compares with, which is why it counts these figures, or
 * others, such as times of kernels. Half of the rows may be fitted to; with both in sight none is left to judge by. */
struct dl_fitted {
    bool to_validation_rows;
    bool by_both_halves;
    const char *rows; /* which, in words */
};

struct dl_fact {
    const char *where;
    const char *text; /* "assumed: why" */
    enum dl_grade grade;
    bool stated;       /* false: the file says nothing about this figure */
    double value;      /* of the figure */
    bool has_interval; /* low and high are said */
    double low, high;
};

/* Whether the "facts" of an object, if it has any, are well-formed; dl_read does this by itself. */
enum dl_status dl_json_check_facts(struct dl_json object, struct dl_arena *arena, struct dl_error *err);

/* The grade that an object's facts give to one of its keys. */
enum dl_grade dl_json_grade(const json_t *object, const char *key);

/* Whether a fact that has been checked is of the grade fitted, and to what; `out` lives as long as the fact. */
bool dl_fact_is_fitted(const json_t *fact, struct dl_fitted *out);

/* A value is about to change: its interval, which was that of the old one, is taken out of the fact. */
void dl_json_drop_interval(json_t *object, const char *key);

/* Call visit for every number of the document, in the order of the file. */
void dl_json_facts(struct dl_json doc, struct dl_arena *arena, void (*visit)(void *user, const struct dl_fact *fact),
                   void *user);
/* The same without objects that only a whole run depends on, such as "reliability" and "node_power" of a system. */
void dl_json_facts_of_step(struct dl_json doc, struct dl_arena *arena,
                           void (*visit)(void *user, const struct dl_fact *fact), void *user);

#endif
