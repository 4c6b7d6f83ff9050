/* search_report.h - the answer of `dlsim search`: what was looked at, what is best, and why.
 *
 * The rule to remember: candidates are ordered by the objective, then by the step, then by the number of their point,
 * so that the answer does not depend on who was ready first. */
#ifndef DL_REPORT_SEARCH_REPORT_H
#define DL_REPORT_SEARCH_REPORT_H

#include "sim/core/json.h"
#include "sim/program/program.h"
#include "sim/report/refusals.h"

/* How sure a step is, with 95 %, and whether it is longer or shorter than that of the first. */
struct dl_candidate_interval {
    bool is_known;
    double step_s_low, step_s_high;
    double of_first, of_first_low, of_first_high; /* its step over that of the first */
    bool told_apart;                              /* the interval of this ratio leaves out 1 */
};

/* A point that fits into memory. */
struct dl_candidate {
    uint64_t point;
    const char *words;
    const char *placement; /* NULL: the usual */
    double screened_s;     /* its step by the analytic engine */
    double step_s;         /* the same, or as simulated with the network */
    double mfu, tokens_per_s, peak_bytes;
    double left_fraction;          /* of the memory of a device of the fullest stage */
    double energy_j, cost_usd;     /* of a step; 0: not known */
    double exposed_s[DL_N_CAUSES]; /* of step_s */
    struct dl_candidate_interval interval;
    double cost; /* by the objective; for dl_candidates_sort */
};

struct dl_search_report {
    const char *workload, *topology, *software, *objective;
    uint64_t n_devices, global_batch;
    uint64_t n_space;                  /* combinations of all values */
    const struct dl_refusals *refused; /* by rules, and by what reads strategies */
    const struct dl_refusals *lost;    /* ended without an answer */
    uint64_t n_unfit;                  /* too large for the memory of a device */
    uint64_t n_looked_at;              /* those that no rule refuses */
    struct dl_candidate *screened;     /* in order */
    size_t n_screened;
    struct dl_candidate *simulated; /* in order */
    size_t n_simulated;
    size_t n_screened_before, n_simulated_before; /* of those looked at, and simulated: taken out of a database */
    size_t n_told;                                /* of these: have an interval */
    size_t n_interval_runs;                       /* with a changed constant, by the analytic engine */
    double screening_s, simulating_s, intervals_s;
    size_t n_workers;
    const char *output; /* where the winner was written to; NULL: nowhere */
};

/* The names of objectives, which end with NULL. */
extern const char *const dl_objectives[];
/* What an objective cannot do without. */
enum dl_objective_need { DL_NEEDS_NOTHING, DL_NEEDS_TOKENS, DL_NEEDS_POWER, DL_NEEDS_PRICES };
enum dl_objective_need dl_objective_needs(const char *objective);
void dl_candidates_sort(struct dl_candidate *candidates, size_t n, const char *objective);

/* Those of `screened` that none other is both faster and smaller than, the fastest first; for dl_free. */
const struct dl_candidate **dl_search_front(const struct dl_search_report *r, size_t *n);

void dl_search_report_text(const struct dl_search_report *r);
json_t *dl_search_report_json(const struct dl_search_report *r);

#endif
