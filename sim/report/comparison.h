/* comparison.h - whether two predicted runs can be told apart.
 *
 * Errors common to both runs cancel. A constant that the two reports share counts by the difference of its
 * elasticities. The errors of the model, if the same software runs on the same system, count by how much they differ
 * between two ways to train one model. So the interval of the ratio is usually narrower than those of the two steps.
 * The rule to remember: the reports must have been made with --sensitivity, because that is what is compared. */
#ifndef DL_REPORT_COMPARISON_H
#define DL_REPORT_COMPARISON_H

#include "sim/report/sensitivity.h"

/* A report of `dlsim run --sensitivity --json`, as far as it counts here. */
struct dl_told_run {
    const char *name;     /* of its file */
    const json_t *inputs; /* what it was asked; NULL: an old report does not say */
    double samples_per_s;
    struct dl_effect *effects;
    size_t n_effects;
    struct dl_setup setup;
    double half_width, ratio_half_width; /* of the model */
};

/* Texts stay those of the document. */
enum dl_status dl_told_run_read(struct dl_json report, struct dl_arena *arena, struct dl_told_run *out,
                                struct dl_error *err);

/* The same of a run that is at hand, with the effects and the model's errors of the sensitivity. */
struct dl_told_run dl_told_run_of(const char *name, double samples_per_s, const struct dl_sensitivity *s);

/* Of samples a second, the second's over the first's. */
struct dl_comparison {
    const struct dl_told_run *first, *second;
    struct dl_sensitivity speedup; /* in place of seconds: step_s is the ratio, and so on */
    double half_width;             /* of the model */
};

/* Effects live in the arena. */
struct dl_comparison dl_compare_runs(const struct dl_told_run *first, const struct dl_told_run *second,
                                     struct dl_arena *arena);
/* Whether 1 lies outside of the interval. */
bool dl_told_apart(const struct dl_comparison *c);

void dl_comparison_print(const struct dl_comparison *c);
json_t *dl_comparison_json(const struct dl_comparison *c);

#endif
