/* row_columns.h - tables of measured steps whose columns have other names: what each of them is (schema
 * dlsim/columns/1).
 *
 * The rule to remember: descriptions are found by the columns of the table, all of them and no others, so that a table
 * is never read by a description that was made for another. Where several have the same columns, "of" says which lines
 * each is for. */
#ifndef DL_STUDY_ROW_COLUMNS_H
#define DL_STUDY_ROW_COLUMNS_H

#include "sim/core/csv.h"
#include "sim/core/json.h"

/* Conditions are {column: text, ...}: all must hold, each for a cell that is like the text, where * stands for any
 * characters, or like one of a list of them. */
struct dl_row_columns {
    struct dl_json of;      /* the condition of lines that it is for; NULL: all that no other is for */
    struct dl_json columns; /* column -> key of a row, "" if it says nothing that a row could say */
    struct dl_json factors; /* column -> what its numbers are multiplied by; NULL: none */
    struct dl_json all;     /* keys that all rows have in common */
    /* [{"if": condition, "unless": condition, "row": {key: value, ...}}, ...], or "leave_out": why; NULL: none */
    struct dl_json cases;
    json_t *doc; /* for json_decref */
};

enum dl_status dl_row_columns_read(struct dl_json doc, struct dl_arena *arena, struct dl_row_columns *out,
                                   struct dl_error *err);

/* The shipped descriptions of the table's columns; none if it has those of rows themselves. */
struct dl_row_columns_found {
    struct dl_row_columns *items;
    size_t n, capacity;
};
enum dl_status dl_row_columns_find(const struct dl_csv *table, struct dl_arena *arena, struct dl_row_columns_found *out,
                                   struct dl_error *err);
void dl_row_columns_release(struct dl_row_columns_found *found);
/* The one that is for a line; NULL: none is. */
const struct dl_row_columns *dl_row_columns_of(const struct dl_row_columns_found *found, const struct dl_csv *table,
                                               size_t line);
/* Why a line of such a table is no row; NULL: it is one. */
const char *dl_row_columns_left_out(const struct dl_row_columns *c, const struct dl_csv *table, size_t line);
/* The row that it is, as an object; a new reference. */
json_t *dl_row_columns_object(const struct dl_row_columns *c, const struct dl_csv *table, size_t line);

#endif
