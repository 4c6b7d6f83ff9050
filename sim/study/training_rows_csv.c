/* training_rows_csv.c - measured training steps from CSV: a column for each key. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/csv.h"
#include "sim/core/files.h"
#include "sim/study/row_columns.h"
#include "sim/study/training_row_fields.h"

static const struct dl_field *find_field(const char *column)
{
    for (size_t i = 0; i < DL_ROW_FIELDS; i++)
        if (strcmp(dl_training_row_fields[i].key, column) == 0) return &dl_training_row_fields[i];
    return NULL;
}

static enum dl_status refuse_column(const char *column, const char *place, struct dl_error *err)
{
    const char *known[DL_ROW_FIELDS];
    for (size_t i = 0; i < DL_ROW_FIELDS; i++) known[i] = dl_training_row_fields[i].key;
    char nearest[DL_HINT];
    return dl_fail(err, DL_KEY, place, "unknown column '%.60s'%s", column,
                   dl_suggestion(column, known, DL_ROW_FIELDS, nearest));
}

static enum dl_status check_columns(const struct dl_csv *table, const char *name, struct dl_arena *arena,
                                    struct dl_error *err)
{
    bool seen[DL_ROW_FIELDS] = {false};
    const char *const place = dl_arena_format(arena, "%s:1", name);
    const size_t told = err->n_told;
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct dl_field *const field = find_field(table->columns[i]);
        if (!field)
            refuse_column(table->columns[i], place, err);
        else if (seen[field - dl_training_row_fields])
            dl_fail(err, DL_KEY, place, "the column '%s' is there twice", field->key);
        if (!dl_go_on(err)) return err->status;
        if (field) seen[field - dl_training_row_fields] = true;
    }
    for (size_t i = 0; i < DL_ROW_REQUIRED_COLUMNS; i++) {
        if (!seen[i]) dl_fail(err, DL_KEY, place, "the column '%s' is missing", dl_training_row_fields[i].key);
        if (!dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

/* A number where one belongs; what is none stays a text, which the reader of the row refuses. */
static json_t *value_of(const char *cell, enum dl_type type)
{
    const double most = 9007199254740992.0; /* 2^53 */
    char *end;
    const double x = strtod(cell, &end);
    const bool is_number = end != cell && !*end && strspn(cell, "0123456789+-.eE") == strlen(cell);
    if (type == DL_TEXT || !is_number) return json_string(cell);
    return type == DL_INT && x == floor(x) && fabs(x) <= most ? json_integer((json_int_t)x) : json_real(x);
}

/* Cells where nothing stands are left out. */
static enum dl_status add_line(const struct dl_csv *table, const char *path, size_t line, struct dl_arena *arena,
                               struct dl_training_rows *rows, struct dl_error *err)
{
    const struct dl_json object = {
        .value = json_object(), .where = dl_csv_place(table, dl_base_name(path), line, arena), .file = path};
    const size_t told = err->n_told;
    for (size_t i = 0; i < table->n_columns && dl_go_on(err); i++) {
        const char *const cell = table->cells[line * table->n_columns + i];
        if (!*cell) continue;
        json_t *const value = value_of(cell, find_field(table->columns[i])->type);
        if (!value || json_object_set_new(object.value, table->columns[i], value))
            dl_fail(err, DL_TYPE, dl_json_member(object, table->columns[i], arena).where,
                    "must be text in UTF-8, or a finite number");
    }
    if (dl_go_on(err)) dl_training_row_add(object, DL_STEP, arena, rows, err);
    json_decref(object.value);
    return dl_go_on(err) ? dl_stop_if_told(err, told) : err->status;
}

static void leave_out(struct dl_no_rows *left_out, const char *why, struct dl_arena *arena)
{
    size_t i = 0;
    while (i < left_out->n && strcmp(left_out->items[i].why, why)) i++;
    if (i == left_out->n) {
        DL_GROW(left_out->items, left_out->n, left_out->capacity);
        left_out->items[left_out->n++] = (struct dl_no_row){.why = dl_arena_string(arena, why)};
    }
    left_out->items[i].n++;
}

static enum dl_status add_described_line(const struct dl_row_columns_found *found, const struct dl_csv *table,
                                         const char *path, size_t line, struct dl_arena *arena,
                                         struct dl_training_rows *rows, struct dl_error *err)
{
    const char *const place = dl_csv_place(table, dl_base_name(path), line, arena);
    const struct dl_row_columns *const columns = dl_row_columns_of(found, table, line);
    if (!columns) return dl_fail(err, DL_KEY, place, "no description of these columns is for such a line");
    const char *const why = dl_row_columns_left_out(columns, table, line);
    if (why) {
        leave_out(&rows->left_out, why, arena);
        return DL_OK;
    }
    const struct dl_json object = {.value = dl_row_columns_object(columns, table, line), .where = place, .file = path};
    dl_training_row_add(object, DL_STEP, arena, rows, err);
    json_decref(object.value);
    return err->status;
}

/* A table whose lines are all left out, with the reasons. */
static enum dl_status refuse_all(const struct dl_no_rows *left_out, const char *name, struct dl_arena *arena,
                                 struct dl_error *err)
{
    const char *reasons = "";
    for (size_t i = 0; i < left_out->n; i++)
        reasons =
            dl_arena_format(arena, "%s%s%zu: %s", reasons, i ? "; " : "", left_out->items[i].n, left_out->items[i].why);
    return dl_fail(err, DL_RANGE, name, "has no line that can be simulated (%s)", reasons);
}

/* Lines of a table whose columns descriptions name. */
static enum dl_status add_described(const struct dl_row_columns_found *found, const struct dl_csv *table,
                                    const char *path, struct dl_arena *arena, struct dl_training_rows *rows,
                                    struct dl_error *err)
{
    if (!table->n_rows)
        return dl_fail(err, DL_RANGE, dl_base_name(path), "has no rows, only the line that names the columns");
    for (size_t i = 0; i < table->n_rows; i++)
        if (add_described_line(found, table, path, i, arena, rows, err) && !dl_go_on(err)) break;
    if (!err->status && !rows->n) return refuse_all(&rows->left_out, dl_base_name(path), arena, err);
    return err->status;
}

enum dl_status dl_training_rows_parse(const char *text, size_t bytes, const char *path, struct dl_arena *arena,
                                      struct dl_training_rows *rows, struct dl_error *err)
{
    const char *const name = dl_base_name(path);
    struct dl_csv table;
    const size_t told = err->n_told;
    struct dl_row_columns_found found = {0};
    if ((dl_csv_parse(text, bytes, name, arena, &table, err) && !(table.n_columns && dl_go_on(err))) ||
        dl_row_columns_find(&table, arena, &found, err)) {
        dl_row_columns_release(&found);
        return err->status;
    }
    const bool is_described = found.n > 0;
    if (is_described) add_described(&found, &table, path, arena, rows, err);
    dl_row_columns_release(&found);
    if (is_described) return dl_stop_if_told(err, told);
    if (check_columns(&table, name, arena, err)) return err->status;
    if (!table.n_rows && err->n_told == told)
        return dl_fail(err, DL_RANGE, name, "has no rows, only the line that names the columns");
    for (size_t i = 0; i < table.n_rows; i++)
        if (add_line(&table, path, i, arena, rows, err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}
