/* explain.h - an answer as a sum of terms: each a formula with its numbers put in, down to the figures of the files.
 *
 * The rule to remember: a term's seconds are its expression evaluated, and the terms up to a sum make that sum. What a
 * formula does not have, such as waiting for links, is a term without an expression that says what is known of it. */
#ifndef DL_REPORT_EXPLAIN_H
#define DL_REPORT_EXPLAIN_H

#include "sim/core/facts.h"

/* A figure of a file. */
struct dl_cited {
    const char *where, *fact; /* file and JSON pointer; "grade: source" */
    double value;
};

struct dl_term {
    const char *part;       /* "latency", "compute" */
    const char *what;       /* in words */
    const char *expression; /* "30 * 2e-06"; NULL: it is what the simulation differs from the formula by */
    double seconds;
    size_t first_cited, n_cited;
};

struct dl_sum {
    const char *what;
    double seconds;
    size_t first_term, end_term;
};

struct dl_explanation {
    struct dl_arena *arena; /* for texts; must outlive it */
    struct dl_fact *facts;  /* of the files that were read for it */
    size_t n_facts, facts_capacity;
    struct dl_term *terms;
    size_t n_terms, terms_capacity;
    size_t *cited; /* figures, by term */
    size_t n_cited, cited_capacity;
    struct dl_cited *figures; /* each once */
    size_t n_figures, figures_capacity;
    struct dl_sum *sums;
    size_t n_sums, sums_capacity;
};

void dl_explanation_init(struct dl_explanation *e, struct dl_arena *arena);
void dl_explanation_release(struct dl_explanation *e);
/* The document's figures can be cited from now on. */
void dl_explain_read(struct dl_explanation *e, struct dl_json doc);

/* A number as it stands in expressions; it lives in the arena. */
const char *dl_explain_number(const struct dl_explanation *e, double x);

/* Texts must outlive the explanation; those made with dl_arena_format in its arena do. */
void dl_explain_term(struct dl_explanation *e, const char *part, double seconds, const char *what,
                     const char *expression);
/* Cite the number at this place for the last term; what is no number, or absent, is not cited. */
void dl_explain_cite(struct dl_explanation *e, struct dl_json at);
/* Cite all numbers below this place. */
void dl_explain_cite_below(struct dl_explanation *e, struct dl_json at);
/* Cite figures of links of this kind: those of the value, else all, whose key ends with this. */
void dl_explain_cite_link(struct dl_explanation *e, struct dl_json system_doc, const char *kind, double value,
                          const char *ending);

/* What all terms so far, or those since the sum before this one, make. */
enum dl_sum_from { DL_SUM_ALL, DL_SUM_LAST };
void dl_explain_sum(struct dl_explanation *e, enum dl_sum_from from, double seconds, const char *what);
/* Of the terms with that part. */
double dl_explained_s(const struct dl_explanation *e, const char *part);

void dl_explanation_print(const struct dl_explanation *e);
json_t *dl_explanation_json(const struct dl_explanation *e);

#endif
