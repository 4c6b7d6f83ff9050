/* row_intervals.h - intervals of predicted steps, to count how many measured steps lie within them. */
#ifndef DL_STUDY_ROW_INTERVALS_H
#define DL_STUDY_ROW_INTERVALS_H

#include "sim/study/row_trials.h"

struct dl_bounding_request {
    const struct dl_row_trials *like; /* how to run */
    const char *engine; /* whose intervals are taken, in proportion to its step; NULL: the one that ran the rows */
    const char *const *left_out; /* by row: the family whose errors its interval must not know; NULL: it knows all */
};

/* Rows that were predicted get low_s and high_s, by the constants as --set leaves them and by what is known of the
 * model; some forty runs each. A row of which a run takes
 * longer than the limit gets none; *n_late is how many these are. */
enum dl_status dl_bound_rows(const struct dl_bounding_request *request, struct dl_compared *compared, size_t *n_late,
                             struct dl_error *err);

#endif
