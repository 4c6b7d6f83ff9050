/* row_intervals.h - intervals of predicted steps, to count how many measured steps lie within them. */
#ifndef DL_APP_ROW_INTERVALS_H
#define DL_APP_ROW_INTERVALS_H

#include "sim/app/row_trials.h"

/* Rows that were predicted get low_s and high_s, by the constants as --set leaves them and by what is known of the
 * model; some hundred runs each. `like` says how to run. A row of which a run takes longer than the limit gets none;
 * *n_late is how many these are. */
enum dl_status dl_bound_rows(const struct dl_row_trials *like, struct dl_compared *compared, size_t *n_late,
                             struct dl_error *err);

#endif
