/* ranking.h - two promises of a validation: to rank ways to train as measured, and to say which of them have enough
 * memory.
 *
 * A cell holds the measured runs of one model and batch on as many devices: what one would choose among. Its rank
 * correlation is Spearman's, of predicted with measured steps. Its regret is how much longer the run takes that is
 * predicted to be the fastest than the one that is. */
#ifndef DL_REPORT_RANKING_H
#define DL_REPORT_RANKING_H

#include "sim/report/validation.h"

struct dl_ranking {
    size_t n_cells;  /* with two runs or more: those that have a regret */
    size_t n_ranked; /* with four runs or more, and not all alike: those that have a rank correlation */
    double mean_correlation, median_correlation, mean_regret, median_regret; /* NAN if there are none */
};
struct dl_ranking dl_ranking_of(const struct dl_compared *const *rows, size_t n);

/* A choice as `dlsim search` makes it: of all runs of a cell, those that ran out of memory too, the one that is
 * predicted to be the fastest among those said to fit. */
struct dl_choices {
    size_t n_cells;                    /* where some were measured, and others said to have run out of memory */
    size_t n_out;                      /* the choice had run out of memory */
    size_t n_none;                     /* all are said not to fit */
    double mean_regret, median_regret; /* of choices that ran; NAN if there are none */
};
struct dl_choices dl_choices_of(const struct dl_compared *const *rows, size_t n);

/* What became of the runs, by whether they were said to fit. Rows that failed are in none. */
struct dl_memory_verdicts {
    size_t ran_fits, ran_does_not, out_fits, out_does_not;
};
struct dl_memory_verdicts dl_memory_verdicts_of(const struct dl_compared *const *rows, size_t n);

/* Errors of predicted reserved bytes, of rows that were predicted and say theirs. */
struct dl_reserved_errors {
    size_t n;
    double mean, bias; /* NAN if there are none */
};
struct dl_reserved_errors dl_reserved_errors_of(const struct dl_compared *const *rows, size_t n);

/* All of each family that has them. */
void dl_promises_text(const struct dl_validation *v);
void dl_promises_add_json(const struct dl_row_family *f, json_t *family);

#endif
