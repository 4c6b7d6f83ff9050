/* budget.h - how much of the error of a family of rows each part of the step can account for.
 *
 * For each row it is known what each part adds. A part accounts for errors as far as one factor on what it adds, the
 * same for all rows of the family and never negative, reduces their squares (relative to the measured step). The part
 * that explains most comes first, then the one that explains most of the rest, as long as chance would hardly do as
 * much. The remainder is unexplained: noise, and mechanisms that are missing or differ from row to row. An analysis
 * only: nothing of it goes back into a prediction. */
#ifndef DL_REPORT_BUDGET_H
#define DL_REPORT_BUDGET_H

#include "sim/report/validation.h"

struct dl_part_budget {
    double added;           /* mean share of the predicted step */
    double ideal_mape;      /* with the part at its best */
    double factor;          /* alone: that leaves the least squares; 1 if the part adds nothing */
    double mape;            /* with this factor */
    double share;           /* of the sum of squares, beside the parts that come before it */
    double factor_together; /* of all parts that have a share, the best; 1 if it has none */
};

struct dl_budget {
    size_t n; /* rows whose parts are known; 0: all else is 0 */
    double mape;
    struct dl_part_budget parts[DL_N_PARTS];
    double unexplained; /* all shares and this sum to 1, if there is any error */
    double left_mape;   /* with the factors together */
};

struct dl_budget dl_budget_of(const struct dl_compared *const *rows, size_t n);
void dl_budget_text(const struct dl_validation *v);
json_t *dl_budget_json(const struct dl_budget *b);

#endif
