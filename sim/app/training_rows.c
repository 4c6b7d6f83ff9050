/* training_rows.c - measured training steps from files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/app/training_row.h"
#include "sim/core/csv.h"
#include "sim/core/files.h"

#define AT(member) offsetof(struct dl_training_row, member)
#define MOST 9007199254740992.0 /* 2^53 */
#define MOST_WAYS 65536.0       /* products of them are far from overflowing */

static const char published[] = "validation/published", schema[] = "dlsim/steps/1";

static const struct dl_field fields[] = {
    {"id", DL_TEXT, AT(id), 0, 0, false, NULL, NULL},
    {"topo", DL_TEXT, AT(topo), 0, 0, false, NULL, NULL},
    {"devices", DL_INT, AT(devices), 1, 2147483647.0, false, NULL, NULL},
    {"model", DL_TEXT, AT(model), 0, 0, false, NULL, NULL},
    {"layers", DL_INT, AT(layers), 1, MOST, false, NULL, NULL},
    {"hidden", DL_INT, AT(hidden), 1, MOST, false, NULL, NULL},
    {"ffn", DL_INT, AT(ffn), 1, MOST, true, NULL, NULL},
    {"heads", DL_INT, AT(heads), 1, MOST, false, NULL, NULL},
    {"kv_heads", DL_INT, AT(kv_heads), 1, MOST, true, NULL, NULL},
    {"seq", DL_INT, AT(seq), 1, MOST, false, NULL, NULL},
    {"vocab", DL_INT, AT(vocab), 1, MOST, false, NULL, NULL},
    {"global_batch", DL_INT, AT(global_batch), 1, MOST, false, NULL, NULL},
    {"microbatch", DL_INT, AT(microbatch), 1, MOST, true, NULL, NULL},
    {"tp", DL_INT, AT(tp), 1, MOST_WAYS, true, NULL, NULL},
    {"pp", DL_INT, AT(pp), 1, MOST_WAYS, true, NULL, NULL},
    {"dp", DL_INT, AT(dp), 1, MOST_WAYS, true, NULL, NULL},
    {"cp", DL_INT, AT(cp), 1, MOST_WAYS, true, NULL, NULL},
    {"ep", DL_INT, AT(ep), 1, MOST_WAYS, true, NULL, NULL},
    {"vpp", DL_INT, AT(vpp), 1, MOST, true, NULL, NULL},
    {"schedule", DL_TEXT, AT(schedule), 0, 0, true, NULL, NULL},
    {"sp", DL_INT, AT(sp), 0, 1, true, NULL, NULL},
    {"zero", DL_INT, AT(zero), 0, 3, true, NULL, NULL},
    {"recompute", DL_TEXT, AT(recompute), 0, 0, true, NULL, NULL},
    {"precision", DL_TEXT, AT(precision), 0, 0, true, NULL, NULL},
    {"attention", DL_TEXT, AT(attention), 0, 0, true, NULL, NULL},
    {"software", DL_TEXT, AT(software), 0, 0, false, NULL, NULL},
    {"stage_rule", DL_TEXT, AT(stage_rule), 0, 0, true, NULL, NULL},
    {"assumed", DL_TEXT, AT(assumed), 0, 0, true, NULL, NULL},
    {"step_s", DL_NUMBER, AT(step_s), 1e-9, 1e9, false, NULL, NULL},
    {"source", DL_TEXT, AT(source), 0, 0, false, NULL, NULL},
    /* Columns that a file of dense models need not have. */
    {"experts", DL_INT, AT(experts), 2, MOST, true, NULL, NULL},
    {"top_k", DL_INT, AT(top_k), 1, MOST, true, NULL, NULL},
    {"expert_ffn", DL_INT, AT(expert_ffn), 1, MOST, true, NULL, NULL},
};
enum { n_required_columns = DL_COUNT(fields) - 3 };

static void fill_in(struct dl_training_row *row)
{
    int64_t *const ways[] = {&row->tp, &row->pp, &row->cp, &row->ep, &row->vpp};
    for (size_t i = 0; i < DL_COUNT(ways); i++)
        if (!*ways[i]) *ways[i] = 1;
    if (!row->assumed) row->assumed = "";
}

static enum dl_status add_row(struct dl_json object, struct dl_arena *arena, struct dl_training_rows *rows,
                              struct dl_error *err)
{
    struct dl_training_row row = {.where = object.where};
    if (dl_read(object, fields, DL_COUNT(fields), &row, arena, err)) return err->status;
    fill_in(&row);
    DL_GROW(rows->items, rows->n, rows->capacity);
    rows->items[rows->n++] = row;
    return DL_OK;
}

/* ---- CSV ---- */

static const struct dl_field *find_field(const char *column)
{
    for (size_t i = 0; i < DL_COUNT(fields); i++)
        if (strcmp(fields[i].key, column) == 0) return &fields[i];
    return NULL;
}

static enum dl_status refuse_column(const char *column, const char *place, struct dl_error *err)
{
    const char *known[DL_COUNT(fields)];
    for (size_t i = 0; i < DL_COUNT(fields); i++) known[i] = fields[i].key;
    const char *const nearest = dl_nearest(column, known, DL_COUNT(known));
    return dl_fail(err, DL_KEY, place, "unknown column '%.60s'%s%s%s", column, nearest ? ", did you mean '" : "",
                   nearest ? nearest : "", nearest ? "'?" : "");
}

static enum dl_status check_columns(const struct dl_csv *table, const char *name, struct dl_arena *arena,
                                    struct dl_error *err)
{
    bool seen[DL_COUNT(fields)] = {false};
    const char *const place = dl_arena_format(arena, "%s:1", name);
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct dl_field *const field = find_field(table->columns[i]);
        if (!field) return refuse_column(table->columns[i], place, err);
        if (seen[field - fields]) return dl_fail(err, DL_KEY, place, "the column '%s' is there twice", field->key);
        seen[field - fields] = true;
    }
    for (size_t i = 0; i < n_required_columns; i++)
        if (!seen[i]) return dl_fail(err, DL_KEY, place, "the column '%s' is missing", fields[i].key);
    return DL_OK;
}

/* A number where one belongs; what is none stays a text, which the reader of the row refuses. */
static json_t *value_of(const char *cell, enum dl_type type)
{
    char *end;
    const double x = strtod(cell, &end);
    const bool is_number = end != cell && !*end && strspn(cell, "0123456789+-.eE") == strlen(cell);
    if (type == DL_TEXT || !is_number) return json_string(cell);
    return type == DL_INT && x == floor(x) && fabs(x) <= MOST ? json_integer((json_int_t)x) : json_real(x);
}

/* Cells where nothing stands are left out. */
static enum dl_status add_line(const struct dl_csv *table, const char *name, size_t line, struct dl_arena *arena,
                               struct dl_training_rows *rows, struct dl_error *err)
{
    const struct dl_json object = {.value = json_object(), .where = dl_csv_place(table, name, line, arena)};
    for (size_t i = 0; i < table->n_columns && !err->status; i++) {
        const char *const cell = table->cells[line * table->n_columns + i];
        if (!*cell) continue;
        json_t *const value = value_of(cell, find_field(table->columns[i])->type);
        if (!value || json_object_set_new(object.value, table->columns[i], value))
            dl_fail(err, DL_TYPE, dl_json_member(object, table->columns[i], arena).where,
                    "must be text in UTF-8, or a finite number");
    }
    if (!err->status) add_row(object, arena, rows, err);
    json_decref(object.value);
    return err->status;
}

enum dl_status dl_training_rows_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                                      struct dl_training_rows *rows, struct dl_error *err)
{
    struct dl_csv table;
    if (!dl_csv_parse(text, bytes, name, arena, &table, err) && !check_columns(&table, name, arena, err))
        for (size_t i = 0; i < table.n_rows && !err->status; i++) add_line(&table, name, i, arena, rows, err);
    return err->status;
}

static enum dl_status read_csv(const char *path, struct dl_arena *arena, struct dl_training_rows *rows,
                               struct dl_error *err)
{
    const size_t max_bytes = (size_t)64 << 20;
    char *text;
    size_t bytes;
    if (dl_read_file(path, max_bytes, &text, &bytes, err)) return err->status;
    dl_training_rows_parse(text, bytes, dl_base_name(path), arena, rows, err);
    dl_free(text);
    return err->status;
}

/* ---- JSON ---- */

/* What all rows of a file have in common stands once, in "all". */
struct steps {
    struct dl_json all, rows;
};
static const struct dl_field steps_fields[] = {
    {"all", DL_OBJECT, offsetof(struct steps, all), 0, 0, true, NULL, NULL},
    {"rows", DL_LIST, offsetof(struct steps, rows), 0, 0, false, NULL, NULL},
};

static enum dl_status add_element(const struct dl_json doc, const struct steps *steps, size_t index,
                                  struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err)
{
    const struct dl_json element = dl_json_element(steps->rows, index, arena);
    if (!json_is_object(element.value)) return dl_fail(err, DL_TYPE, element.where, "must be an object, {...}");
    const struct dl_json row = {.value = json_copy(element.value), .where = element.where};
    json_object_update_missing(row.value, steps->all.value);
    if (!json_object_get(row.value, "source"))
        json_object_set(row.value, "source", json_object_get(doc.value, "source"));
    add_row(row, arena, rows, err);
    json_decref(row.value);
    return err->status;
}

enum dl_status dl_training_rows_add(struct dl_json doc, struct dl_arena *arena, struct dl_training_rows *rows,
                                    struct dl_error *err)
{
    struct steps steps = {{0}, {0}};
    if (dl_read_document(doc, "steps", steps_fields, DL_COUNT(steps_fields), &steps, arena, err)) return err->status;
    for (size_t i = 0; i < json_array_size(steps.rows.value) && !err->status; i++)
        add_element(doc, &steps, i, arena, rows, err);
    return err->status;
}

/* ---- files ---- */

enum dl_status dl_training_rows_read(const char *path, struct dl_arena *arena, struct dl_training_rows *rows,
                                     struct dl_error *err)
{
    const char *const ending = strrchr(path, '.');
    if (!ending || strcmp(ending, ".json")) return read_csv(path, arena, rows, err);
    struct dl_json doc;
    if (dl_json_load(path, arena, &doc, err)) return err->status;
    dl_training_rows_add(doc, arena, rows, err);
    json_decref(doc.value);
    return err->status;
}

enum dl_status dl_training_rows_published(struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err)
{
    const char **names;
    const size_t n = dl_list_folder(published, arena, &names);
    for (size_t i = 0; i < n && !err->status; i++) {
        const char *path;
        struct dl_json doc;
        if (dl_find_file(published, "table", names[i], arena, &path, err) || dl_json_load(path, arena, &doc, err))
            return err->status;
        const char *const kind = json_string_value(json_object_get(doc.value, "schema"));
        if (kind && strcmp(kind, schema) == 0) dl_training_rows_add(doc, arena, rows, err);
        json_decref(doc.value);
    }
    return err->status;
}
