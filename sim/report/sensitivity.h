/* sensitivity.h - how the step depends on the constants it rests on, and how sure it therefore is.
 *
 * The elasticity of a constant is the percent of the step for one percent more of it, from whole runs with the
 * constant made larger and smaller. The step scales with all times up and all rates down, so by Euler's theorem the
 * elasticities of times less those of rates sum to 1 if no constant was forgotten and no run jumped.
 *
 * Each constant has an interval that contains it in 95 % of cases: that of its fact, else a width by its grade.
 * Constants count as independent and the step as linear in them:
 *
 *     (constants_s_high - step_s) / step_s = sqrt(sum of (elasticity x relative half-width)^2)
 *
 * What the model leaves out comes on top, see discrepancy.h, as one more independent error:
 *
 *     ln(step_s_high / step_s)^2 = ln(constants_s_high / step_s)^2 + (half-width of the model)^2
 *
 * The rule to remember: with nothing known of the model, the interval covers only what constants leave open. */
#ifndef DL_REPORT_SENSITIVITY_H
#define DL_REPORT_SENSITIVITY_H

#include "sim/core/facts.h"
#include "sim/report/discrepancy.h"

/* What happens to seconds if a constant doubles: they double, halve, or neither is sure. */
enum dl_dimension { DL_TIME, DL_RATE, DL_FACTOR };

struct dl_effect {
    const char *path; /* as --set takes it */
    const char *of;   /* the link or the operation that it belongs to; NULL: as the path says */
    enum dl_dimension dimension;
    enum dl_grade grade;
    double value, low, high;
    bool by_grade; /* the file says no interval */
    /* The constant made smaller, larger, and both. The first two are far apart where a maximum or a choice turns. */
    double below, above, elasticity;
};

struct dl_sensitivity {
    struct dl_effect *items;  /* those with an effect, the largest first */
    size_t n;                 /* in the list */
    size_t n_runs;            /* that it took */
    size_t n_unfelt, n_fixed; /* constants without any effect, and those that no run could change */
    double step_s, step_s_low, step_s_high;
    double constants_s_low, constants_s_high; /* by the constants alone */
    struct dl_discrepancy model;
    double sum;            /* of times less rates */
    double by_grade_share; /* of the squared half-width of the step, from intervals that no file says */
};

/* Give it the interval of its grade. */
void dl_effect_set_usual_interval(struct dl_effect *e);

/* Sort the effects, in the arena or elsewhere, and combine them. */
struct dl_sensitivity dl_sensitivity_of(double step_s, struct dl_effect *effects, size_t n);
/* Cover what is open of ln(step_s) by measured steps. Their errors contain those of their constants, so that the two
 * are not added; where the constants leave more open, that stands. */
void dl_sensitivity_cover(struct dl_sensitivity *s, struct dl_open model);
/* Add as squares what the model itself leaves open of ln(step_s), about its middle: of ratios, whose constants partly
 * cancel. */
void dl_sensitivity_widen(struct dl_sensitivity *s, struct dl_open model);

void dl_sensitivity_print(const struct dl_sensitivity *s);
/* Add step_s_low, step_s_high and the list to a report. */
void dl_sensitivity_add_json(const struct dl_sensitivity *s, json_t *report);

#endif
