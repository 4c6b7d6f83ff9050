/* discrepancy.h - how far the model itself was from measured steps, with its constants at their best.
 *
 * A file (schema dlsim/discrepancy/1, written by validation/discrepancy) has a spread for each software on each
 * system with enough measured steps, for models with and without experts, and one for all others, from tables that
 * nothing was fitted to. A spread is the root of the mean square of ln(predicted / measured) over its rows. That of
 * ratios is of ln of the predicted over the measured ratio, for two ways to train one model.
 *
 * The rule to remember: few rows determine a spread badly, so an interval from them is wider, by Student's t. */
#ifndef DL_REPORT_DISCREPANCY_H
#define DL_REPORT_DISCREPANCY_H

#include "sim/core/json.h"

/* What is predicted: files by their names. */
struct dl_setup {
    const char *software, *system;
    bool experts; /* in the model */
};

bool dl_is_same_setup(const struct dl_setup *a, const struct dl_setup *b);

struct dl_discrepancy {
    struct dl_setup of;
    bool elsewhere; /* there are no rows of it: the spread is that of others */
    double spread, ratio_spread;
    int64_t rows, ratio_rows; /* that tell these: as many as are independent. 0: nothing is known */
};

/* Its names must outlive the result. */
enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err);

/* Half of the interval that holds ln(measured / predicted) with 95 %, of a step and of the ratio of two; 0 if nothing
 * is known. Where nobody saw ratios, the two steps are taken to err by themselves. */
double dl_discrepancy_half_width(const struct dl_discrepancy *d);
double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d);

json_t *dl_discrepancy_json(const struct dl_discrepancy *d);

#endif
