/* training_row_fields.h - the keys of a training row, for the readers of tables; training_row.h is for everyone else.
 */
#ifndef DL_STUDY_TRAINING_ROW_FIELDS_H
#define DL_STUDY_TRAINING_ROW_FIELDS_H

#include "sim/study/training_row.h"

/* The first are the columns that a CSV file must have, whether or not anything stands in them. */
enum { DL_ROW_REQUIRED_COLUMNS = 30, DL_ROW_FIELDS = 53 };
extern const struct dl_field dl_training_row_fields[DL_ROW_FIELDS];

/* Let the file of a workload say what it says in place of the row. */
void dl_training_row_use_workload(json_t *row, const char *workload);

/* Add the row that the object says; of a pair, what is measured is for the caller to add. */
enum dl_status dl_training_row_add(struct dl_json object, enum dl_quantity quantity, struct dl_arena *arena,
                                   struct dl_training_rows *rows, struct dl_error *err);

#endif
