/* row_columns.h - tables of measured steps whose columns have other names: what each of them is (schema
 * dlsim/columns/1).
 *
 * The rule to remember: a description is found by the columns of the table, all of them and no others, so that a table
 * is never read by a description that was made for another. */
#ifndef DL_STUDY_ROW_COLUMNS_H
#define DL_STUDY_ROW_COLUMNS_H

#include "sim/core/csv.h"
#include "sim/core/json.h"

struct dl_row_columns {
    struct dl_json columns; /* column -> key of a row, "" if it says nothing that a row could say */
    struct dl_json factors; /* column -> what its numbers are multiplied by; NULL: none */
    struct dl_json all;     /* keys that all rows have in common */
    struct dl_json
        cases;   /* [{"if": {column: text, ...}, "row": {key: value, ...}}, ...], or "leave_out": why; NULL: none */
    json_t *doc; /* for json_decref; NULL: the table has the columns of rows themselves */
};

enum dl_status dl_row_columns_read(struct dl_json doc, struct dl_arena *arena, struct dl_row_columns *out,
                                   struct dl_error *err);
/* The shipped description of the table's columns, if there is one. */
enum dl_status dl_row_columns_find(const struct dl_csv *table, struct dl_arena *arena, struct dl_row_columns *out,
                                   struct dl_error *err);
/* Why a line of such a table is no row; NULL: it is one. */
const char *dl_row_columns_left_out(const struct dl_row_columns *c, const struct dl_csv *table, size_t line);
/* The row that it is, as an object; a new reference. */
json_t *dl_row_columns_object(const struct dl_row_columns *c, const struct dl_csv *table, size_t line);

#endif
