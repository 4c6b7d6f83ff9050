/* csv.h - tables of texts as RFC 4180 has them: commas between cells, quotes around those that hold commas, quotes
 * (doubled) or ends of lines. The first line names the columns; all others have as many cells. */
#ifndef DL_CORE_CSV_H
#define DL_CORE_CSV_H

#include <stddef.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

struct dl_csv {
    size_t n_columns, n_rows; /* without the first line */
    const char **columns;     /* their names */
    const char **cells;       /* row by row; "" where nothing stands */
    const size_t *lines;      /* of the file, on which each row begins */
};

/* `name` is the file's, for errors ("rows.csv:12: ..."). What the table points to lives in the arena. Where errors are
 * told (error.h) the table has the lines that are right; without columns there is none. */
enum dl_status dl_csv_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                            struct dl_csv *out, struct dl_error *err);

/* The place of a row, "rows.csv:12". */
const char *dl_csv_place(const struct dl_csv *table, const char *name, size_t row, struct dl_arena *arena);

#endif
