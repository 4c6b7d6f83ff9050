/* columns.h - JSON values as SQLite's: numbers and strings as they are, true and false as 1 and 0, lists and objects as
 * their text. */
#ifndef DL_SWEEP_COLUMNS_H
#define DL_SWEEP_COLUMNS_H

#include <jansson.h>
#include <sqlite3.h>

void dl_bind_json(sqlite3_stmt *statement, int parameter, const json_t *value);
/* The value of a column of the current row: a number, a string, or null. */
json_t *dl_column_json(sqlite3_stmt *statement, int column);

#endif
