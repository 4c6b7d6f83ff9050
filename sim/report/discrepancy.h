/* discrepancy.h - how far the model itself was from measured steps, with its constants at their best.
 *
 * A file (schema dlsim/discrepancy/1, written by validation/discrepancy) has a spread for each family of measured steps
 * (one table of one publication), of each software on each system in it, for models with and without experts. A spread
 * is the root of the mean square of ln(predicted / measured) over the rows. That of ratios is of ln of the predicted
 * over the measured ratio, for two ways to train one model.
 *
 * The rule to remember: families are independent, rows of one are not. So a family counts once, however many rows it
 * has, and nobody is taken to be surer than all families together are, unless three of their own say so. */
#ifndef DL_REPORT_DISCREPANCY_H
#define DL_REPORT_DISCREPANCY_H

#include "sim/core/json.h"

/* What is predicted: files by their names. */
struct dl_setup {
    const char *software, *system;
    bool experts;       /* in the model */
    const char *family; /* of measured steps, which shall not count; NULL: all count */
};

bool dl_is_same_setup(const struct dl_setup *a, const struct dl_setup *b); /* of whatever family */

struct dl_discrepancy {
    struct dl_setup of;
    double spread, ratio_spread;
    int64_t families, ratio_rows; /* that tell these: as many as are independent. 0: nothing is known */
    double own_spread;            /* of the rows of this software on this system */
    int64_t own_rows;
};

/* Its names must outlive the result. */
enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err);

/* Half of the interval that holds ln(measured / predicted) with 95 %, by Student's t; 0 if nothing is known. */
double dl_discrepancy_interval(double spread, int64_t n_independent);
/* That of a step and of the ratio of two. Where nobody saw ratios, the two steps are taken to err by themselves. */
double dl_discrepancy_half_width(const struct dl_discrepancy *d);
double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d);

json_t *dl_discrepancy_json(const struct dl_discrepancy *d);

#endif
