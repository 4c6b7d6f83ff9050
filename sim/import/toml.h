/* toml.h - TOML as far as training configurations have it: tables, dotted keys, strings on one line, numbers, true and
 * false, arrays, inline tables. Dates, strings over several lines and arrays of tables are refused by line. */
#ifndef DL_IMPORT_TOML_H
#define DL_IMPORT_TOML_H

#include "sim/core/json.h"

/* The text, which ends with a NUL, as an object for json_decref; NULL: err says the line and what is wrong. */
json_t *dl_toml_read(const char *text, const char *where, struct dl_arena *arena, struct dl_error *err);

#endif
