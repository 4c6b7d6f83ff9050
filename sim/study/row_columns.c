#include "sim/study/row_columns.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/study/training_row_fields.h"

static const char folder[] = "validation/columns";

static const struct dl_field fields[] = {
    {"of", DL_OBJECT, offsetof(struct dl_row_columns, of), 0, 0, true, NULL, NULL},
    {"columns", DL_OBJECT, offsetof(struct dl_row_columns, columns), 0, 0, false, NULL, NULL},
    {"factors", DL_OBJECT, offsetof(struct dl_row_columns, factors), 0, 0, true, NULL, NULL},
    {"all", DL_OBJECT, offsetof(struct dl_row_columns, all), 0, 0, false, NULL, NULL},
    {"cases", DL_LIST, offsetof(struct dl_row_columns, cases), 0, 0, true, NULL, NULL},
};

/* ---- a description ---- */

static bool is_key(const char *text)
{
    for (size_t i = 0; i < DL_ROW_FIELDS; i++)
        if (strcmp(dl_training_row_fields[i].key, text) == 0) return true;
    return !*text;
}

static enum dl_status check_columns(const struct dl_row_columns *c, struct dl_arena *arena, struct dl_error *err)
{
    const char *column;
    json_t *value;
    json_object_foreach(c->columns.value, column, value)
    {
        const char *const key = json_string_value(value);
        if (!key || !is_key(key))
            return dl_fail(err, DL_KEY, dl_json_member(c->columns, column, arena).where,
                           "must be the key of a row, or \"\" if the column says nothing of it");
    }
    json_object_foreach(c->factors.value, column, value)
    {
        if (json_is_number(value) && json_object_get(c->columns.value, column)) continue;
        return dl_fail(err, DL_KEY, dl_json_member(c->factors, column, arena).where,
                       "must be a number, for one of the columns");
    }
    return DL_OK;
}

struct one_case {
    struct dl_json condition, unless, row;
    const char *leave_out;
};
static const struct dl_field case_fields[] = {
    {"if", DL_OBJECT, offsetof(struct one_case, condition), 0, 0, true, NULL, NULL},
    {"unless", DL_OBJECT, offsetof(struct one_case, unless), 0, 0, true, NULL, NULL},
    {"row", DL_OBJECT, offsetof(struct one_case, row), 0, 0, true, NULL, NULL},
    {"leave_out", DL_TEXT, offsetof(struct one_case, leave_out), 0, 0, true, NULL, NULL},
};

static bool are_texts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i))) return false;
    return json_array_size(list) > 0;
}

static enum dl_status check_condition(const struct dl_row_columns *c, struct dl_json condition, struct dl_arena *arena,
                                      struct dl_error *err)
{
    const char *column;
    json_t *text;
    json_object_foreach(condition.value, column, text)
    {
        if ((json_is_string(text) || are_texts(text)) && json_object_get(c->columns.value, column)) continue;
        return dl_fail(err, DL_KEY, dl_json_member(condition, column, arena).where,
                       "must be a text like those in one of the columns, or a list of such texts");
    }
    return DL_OK;
}

static enum dl_status check_case(const struct dl_row_columns *c, struct dl_json element, struct dl_arena *arena,
                                 struct dl_error *err)
{
    struct one_case one = {0};
    if (dl_read(element, case_fields, DL_COUNT(case_fields), &one, arena, err) ||
        (one.condition.value && check_condition(c, one.condition, arena, err)) ||
        (one.unless.value && check_condition(c, one.unless, arena, err)))
        return err->status;
    if (!one.condition.value && !one.unless.value)
        return dl_fail(err, DL_KEY, element.where, "needs \"if\", \"unless\" or both");
    if (!one.row.value == !one.leave_out)
        return dl_fail(err, DL_KEY, element.where, "needs either \"row\" or \"leave_out\"");
    return DL_OK;
}

enum dl_status dl_row_columns_read(struct dl_json doc, struct dl_arena *arena, struct dl_row_columns *out,
                                   struct dl_error *err)
{
    *out = (struct dl_row_columns){.doc = NULL};
    if (dl_read_document(doc, "columns", fields, DL_COUNT(fields), out, arena, err) || check_columns(out, arena, err) ||
        (out->of.value && check_condition(out, out->of, arena, err)))
        return err->status;
    for (size_t i = 0; i < json_array_size(out->cases.value); i++)
        if (check_case(out, dl_json_element(out->cases, i, arena), arena, err)) return err->status;
    return DL_OK;
}

/* ---- those of a table ---- */

static bool is_of(const struct dl_row_columns *c, const struct dl_csv *table)
{
    if (json_object_size(c->columns.value) != table->n_columns) return false;
    for (size_t i = 0; i < table->n_columns; i++)
        if (!json_object_get(c->columns.value, table->columns[i])) return false;
    return true;
}

enum dl_status dl_row_columns_find(const struct dl_csv *table, struct dl_arena *arena, struct dl_row_columns_found *out,
                                   struct dl_error *err)
{
    const char **names;
    const size_t n = dl_list_folder(folder, arena, &names);
    for (size_t i = 0; i < n; i++) {
        struct dl_row_columns read;
        const char *path;
        struct dl_json doc;
        if (dl_find_file(folder, "description of columns", names[i], arena, &path, err) ||
            dl_json_load(path, arena, &doc, err))
            return err->status;
        if (!dl_row_columns_read(doc, arena, &read, err) && is_of(&read, table)) {
            read.doc = json_incref(doc.value);
            DL_GROW(out->items, out->n, out->capacity);
            out->items[out->n++] = read;
        }
        json_decref(doc.value);
        if (err->status) return err->status;
    }
    return DL_OK;
}

void dl_row_columns_release(struct dl_row_columns_found *found)
{
    for (size_t i = 0; i < found->n; i++) json_decref(found->items[i].doc);
    dl_free(found->items);
}

/* A number where the whole cell is one, times the factor of its column. */
static json_t *value_of(const struct dl_row_columns *c, const char *column, const char *cell)
{
    const double most = 9007199254740992.0; /* 2^53 */
    const json_t *const factor = c->factors.value ? json_object_get(c->factors.value, column) : NULL;
    char *end;
    const double x = strtod(cell, &end) * (factor ? json_number_value(factor) : 1);
    if (end == cell || *end || strspn(cell, "0123456789+-.eE") != strlen(cell)) return json_string(cell);
    return x == floor(x) && fabs(x) <= most ? json_integer((json_int_t)x) : json_real(x);
}

static const char *cell_of(const struct dl_csv *table, size_t line, const char *column)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i], column) == 0) return table->cells[line * table->n_columns + i];
    return "";
}

static bool is_like(const json_t *text, const char *cell)
{
    for (size_t i = 0; i < json_array_size(text); i++)
        if (is_like(json_array_get(text, i), cell)) return true;
    return json_is_string(text) && fnmatch(json_string_value(text), cell, FNM_NOESCAPE) == 0;
}

static bool holds(const json_t *condition, const struct dl_csv *table, size_t line)
{
    const char *column;
    json_t *text;
    json_object_foreach((json_t *)condition, column,
                        text) if (!is_like(text, cell_of(table, line, column))) return false;
    return true;
}

static bool is_case(const json_t *one, const struct dl_csv *table, size_t line)
{
    const json_t *const condition = json_object_get(one, "if"), *const unless = json_object_get(one, "unless");
    return (!condition || holds(condition, table, line)) && !(unless && holds(unless, table, line));
}

const struct dl_row_columns *dl_row_columns_of(const struct dl_row_columns_found *found, const struct dl_csv *table,
                                               size_t line)
{
    const struct dl_row_columns *others = NULL;
    for (size_t i = 0; i < found->n; i++) {
        const struct dl_row_columns *const c = &found->items[i];
        if (c->of.value && holds(c->of.value, table, line)) return c;
        if (!c->of.value) others = c;
    }
    return others;
}

const char *dl_row_columns_left_out(const struct dl_row_columns *c, const struct dl_csv *table, size_t line)
{
    for (size_t i = 0; i < json_array_size(c->cases.value); i++) {
        const json_t *const one = json_array_get(c->cases.value, i);
        const char *const why = json_string_value(json_object_get(one, "leave_out"));
        if (why && is_case(one, table, line)) return why;
    }
    return NULL;
}

json_t *dl_row_columns_object(const struct dl_row_columns *c, const struct dl_csv *table, size_t line)
{
    json_t *const object = json_copy(c->all.value);
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *const cell = table->cells[line * table->n_columns + i], *const column = table->columns[i];
        const char *const key = json_string_value(json_object_get(c->columns.value, column));
        if (*cell && key && *key) json_object_set_new(object, key, value_of(c, column, cell));
    }
    for (size_t i = 0; i < json_array_size(c->cases.value); i++) {
        const json_t *const one = json_array_get(c->cases.value, i);
        if (is_case(one, table, line)) json_object_update(object, json_object_get(one, "row"));
    }
    return object;
}
