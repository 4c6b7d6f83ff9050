/* training_rows.c - measured training steps from files. */
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/study/training_row_fields.h"

static const char published[] = "validation/published", schema[] = "dlsim/steps/1";

/* ---- JSON ---- */

/* What all rows of a file have in common stands once, in "all". */
struct steps {
    struct dl_json all, rows;
};
static const struct dl_field steps_fields[] = {
    {"all", DL_OBJECT, offsetof(struct steps, all), 0, 0, true, NULL, NULL},
    {"rows", DL_LIST, offsetof(struct steps, rows), 0, 0, false, NULL, NULL},
};

/* The object with what is missing in it taken from another, if there is one. */
static json_t *with_common(json_t *object, json_t *common)
{
    json_t *const whole = json_copy(object);
    if (common) json_object_update_missing(whole, common);
    return whole;
}

/* Two configurations and what is published of them together; what they have in common stands beside them. */
struct pair {
    struct dl_json first, second;
    double speedup, difference_s;
};
static const struct dl_field pair_fields[] = {
    {"first", DL_OBJECT, offsetof(struct pair, first), 0, 0, false, NULL, NULL},
    {"second", DL_OBJECT, offsetof(struct pair, second), 0, 0, false, NULL, NULL},
    {"speedup", DL_NUMBER, offsetof(struct pair, speedup), 1e-9, 1e9, true, NULL, NULL},
    {"difference_s", DL_NUMBER, offsetof(struct pair, difference_s), 1e-9, 1e9, true, NULL, NULL},
};

static bool is_pair(const json_t *row) { return json_object_get(row, "first") || json_object_get(row, "second"); }

/* Take the keys of a pair out of the row that holds them. */
static enum dl_status read_pair(struct dl_json row, struct pair *pair, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json keys = {.value = json_object(), .where = row.where};
    for (size_t i = 0; i < DL_COUNT(pair_fields); i++) {
        json_t *const value = json_object_get(row.value, pair_fields[i].key);
        if (value) json_object_set(keys.value, pair_fields[i].key, value);
    }
    dl_read(keys, pair_fields, DL_COUNT(pair_fields), pair, arena, err);
    json_decref(keys.value);
    if (!err->status && (pair->speedup > 0) == (pair->difference_s > 0))
        dl_fail(err, DL_KEY, row.where, "needs one of the keys 'speedup', 'difference_s'");
    return err->status;
}

static enum dl_status add_pair(struct dl_json element, json_t *row, struct dl_arena *arena,
                               struct dl_training_rows *rows, struct dl_error *err)
{
    struct pair pair = {{0}, {0}, 0, 0};
    if (read_pair(element, &pair, arena, err)) return err->status;
    for (size_t i = 0; i < DL_COUNT(pair_fields); i++) json_object_del(row, pair_fields[i].key);
    const struct dl_json sides[] = {pair.first, pair.second};
    const size_t told = err->n_told;
    for (size_t i = 0; i < DL_COUNT(sides) && dl_go_on(err); i++) {
        const struct dl_json side = {
            .value = with_common(sides[i].value, row), .where = sides[i].where, .file = sides[i].file};
        dl_training_row_add(side, pair.speedup > 0 ? DL_SPEEDUP : DL_DIFFERENCE, arena, rows, err);
        json_decref(side.value);
    }
    if (!dl_go_on(err) || dl_stop_if_told(err, told)) return err->status;
    rows->items[rows->n - 2].begins_pair = true;
    rows->items[rows->n - 1].step_s = pair.speedup > 0 ? pair.speedup : pair.difference_s;
    return DL_OK;
}

static enum dl_status add_element(const struct dl_json doc, const struct steps *steps, size_t index,
                                  struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err)
{
    const struct dl_json element = dl_json_element(steps->rows, index, arena);
    if (!json_is_object(element.value)) return dl_fail(err, DL_TYPE, element.where, "must be an object, {...}");
    const struct dl_json row = {
        .value = with_common(element.value, steps->all.value), .where = element.where, .file = element.file};
    if (!json_object_get(row.value, "source"))
        json_object_set(row.value, "source", json_object_get(doc.value, "source"));
    if (is_pair(row.value))
        add_pair(element, row.value, arena, rows, err);
    else
        dl_training_row_add(row, DL_STEP, arena, rows, err);
    json_decref(row.value);
    return err->status;
}

enum dl_status dl_training_rows_add(struct dl_json doc, struct dl_arena *arena, struct dl_training_rows *rows,
                                    struct dl_error *err)
{
    struct steps steps = {{0}, {0}};
    if (dl_read_document(doc, "steps", steps_fields, DL_COUNT(steps_fields), &steps, arena, err)) return err->status;
    if (!json_array_size(steps.rows.value))
        return dl_fail(err, DL_RANGE, steps.rows.where, "must have at least one row");
    const size_t told = err->n_told;
    for (size_t i = 0; i < json_array_size(steps.rows.value); i++)
        if (add_element(doc, &steps, i, arena, rows, err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

/* ---- files ---- */

static enum dl_status read_csv(const char *path, struct dl_arena *arena, struct dl_training_rows *rows,
                               struct dl_error *err)
{
    const size_t max_bytes = (size_t)64 << 20;
    char *text;
    size_t bytes;
    if (dl_read_file(path, max_bytes, &text, &bytes, err)) return err->status;
    dl_training_rows_parse(text, bytes, dl_arena_string(arena, path), arena, rows, err);
    dl_free(text);
    return err->status;
}

enum dl_status dl_training_rows_read(const char *name, struct dl_arena *arena, struct dl_training_rows *rows,
                                     struct dl_error *err)
{
    const char *path = name;
    const struct dl_sought sought = {.folder = published, .what = "table", .name = name};
    if (!strpbrk(name, "./") && dl_find_named(&sought, arena, &path, err)) return err->status;
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

void dl_training_rows_release(struct dl_training_rows *rows)
{
    dl_free(rows->items);
    dl_free(rows->left_out.items);
}
