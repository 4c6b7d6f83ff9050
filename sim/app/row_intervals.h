/* row_intervals.h - intervals of predicted steps, to count how many measured steps lie within them. */
#ifndef DL_APP_ROW_INTERVALS_H
#define DL_APP_ROW_INTERVALS_H

#include "sim/app/training_row.h"
#include "sim/report/validation.h"

/* Rows that were predicted get low_s and high_s, by the constants as `set` leaves them and by what is known of the
 * model; some hundred runs each. */
enum dl_status dl_bound_rows(const struct dl_training_rows *rows, const char *engine, size_t n_workers,
                             const struct dl_texts *set, struct dl_compared *compared, struct dl_error *err);

#endif
