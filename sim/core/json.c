#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "sim/core/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/facts.h"
#include "sim/core/files.h"

enum { max_file_bytes = 16 << 20 };

static enum dl_status parse_error(const char *name, const json_error_t *e, struct dl_error *err)
{
    char where[256];
    snprintf(where, sizeof where, "%.200s:%d:%d", name, e->line, e->column);
    return dl_fail(err, DL_SYNTAX, where, "%s", e->text);
}

enum dl_status dl_json_parse(const char *text, size_t bytes, const char *name, struct dl_arena *arena,
                             struct dl_json *doc, struct dl_error *err)
{
    json_error_t parse;
    json_t *const root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &parse);
    if (!root) return parse_error(name, &parse, err);
    if (!json_is_object(root)) {
        json_decref(root);
        return dl_fail(err, DL_TYPE, name, "must be a JSON object, {...}");
    }
    *doc = (struct dl_json){.value = root, .where = dl_arena_string(arena, name)};
    return DL_OK;
}

static struct {
    dl_load_fn seen;
    void *user;
} watcher;

void dl_json_watch(dl_load_fn seen, void *user)
{
    watcher.seen = seen;
    watcher.user = user;
}

enum dl_status dl_json_load(const char *path, struct dl_arena *arena, struct dl_json *doc, struct dl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    if (!dl_read_file(path, max_file_bytes, &text, &bytes, err)) {
        if (watcher.seen) watcher.seen(watcher.user, path, text, bytes);
        dl_json_parse(text, bytes, dl_base_name(path), arena, doc, err);
    }
    dl_free(text);
    if (err->status) return err->status;
    doc->file = dl_arena_string(arena, path);
    return DL_OK;
}

/* "file.json" is the whole document, "file.json:/key" a member of it. */
static const char *below(const char *where, const char *key, struct dl_arena *arena)
{
    enum { longest_key = 80 };
    const char *const joint = strstr(where, ":/") ? "/" : ":/";
    const size_t n_where = strlen(where), n_joint = strlen(joint), n_key = strnlen(key, longest_key);
    char *const place = dl_arena_alloc(arena, n_where + n_joint + n_key + 1); /* often, so without printf */
    memcpy(place, where, n_where);
    memcpy(place + n_where, joint, n_joint);
    memcpy(place + n_where + n_joint, key, n_key);
    return place; /* the arena is zero */
}

struct dl_json dl_json_member(struct dl_json object, const char *key, struct dl_arena *arena)
{
    return (struct dl_json){
        .value = json_object_get(object.value, key), .where = below(object.where, key, arena), .file = object.file};
}

struct dl_json dl_json_element(struct dl_json array, size_t index, struct dl_arena *arena)
{
    char key[24];
    snprintf(key, sizeof key, "%zu", index);
    return (struct dl_json){
        .value = json_array_get(array.value, index), .where = below(array.where, key, arena), .file = array.file};
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    default: return "null";
    }
}

enum dl_status dl_wrong_type(struct dl_json from, const char *wanted, struct dl_error *err)
{
    return dl_fail(err, DL_TYPE, from.where, "must be %s, got %s", wanted, type_name(from.value));
}

static enum dl_status read_number(struct dl_json from, double min, double max, double *out, struct dl_error *err)
{
    if (!json_is_number(from.value)) return dl_wrong_type(from, "a number", err);
    const double x = json_number_value(from.value);
    if (!(x >= min && x <= max)) /* so that NaN fails too */
        return dl_fail(err, DL_RANGE, from.where, "must be in [%.10g, %.10g], got %.10g", min, max, x);
    *out = x;
    return DL_OK;
}

static enum dl_status read_int(struct dl_json from, double min, double max, int64_t *out, struct dl_error *err)
{
    double x = 0;
    if (read_number(from, min, max, &x, err)) return err->status;
    if (x != floor(x)) return dl_fail(err, DL_TYPE, from.where, "must be a whole number, got %g", x);
    *out = json_is_integer(from.value) ? json_integer_value(from.value) : (int64_t)x;
    return DL_OK;
}

static enum dl_status read_text(struct dl_json from, const char **out, struct dl_arena *arena, struct dl_error *err)
{
    if (!json_is_string(from.value)) return dl_wrong_type(from, "a string", err);
    if (strpbrk(json_string_value(from.value), "\r\n")) return dl_fail(err, DL_SYNTAX, from.where, "must be one line");
    *out = dl_arena_string(arena, json_string_value(from.value));
    return DL_OK;
}

static enum dl_status read_choice(struct dl_json from, const char *const *choices, int64_t *out, struct dl_error *err)
{
    if (!json_is_string(from.value)) return dl_wrong_type(from, "a string", err);
    char all[256] = "";
    for (int64_t i = 0; choices[i]; i++) {
        if (strcmp(choices[i], json_string_value(from.value)) == 0) {
            *out = i;
            return DL_OK;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", choices[i]);
    }
    return dl_fail(err, DL_RANGE, from.where, "must be one of %s, got '%.60s'", all, json_string_value(from.value));
}

static enum dl_status read_int_list(struct dl_json from, const struct dl_field *f, struct dl_int_list *out,
                                    struct dl_arena *arena, struct dl_error *err)
{
    if (!json_is_array(from.value)) return dl_wrong_type(from, "a list of whole numbers", err);
    out->n = json_array_size(from.value);
    out->items = dl_arena_alloc(arena, out->n * sizeof *out->items);
    const size_t told = err->n_told;
    for (size_t i = 0; i < out->n; i++)
        if (read_int(dl_json_element(from, i, arena), f->min, f->max, &out->items[i], err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

static enum dl_status read_field(struct dl_json from, const struct dl_field *f, void *out, struct dl_arena *arena,
                                 struct dl_error *err)
{
    void *const place = (char *)out + f->offset;
    switch (f->type) {
    case DL_INT: return read_int(from, f->min, f->max, place, err);
    case DL_NUMBER: return read_number(from, f->min, f->max, place, err);
    case DL_TEXT: return read_text(from, place, arena, err);
    case DL_CHOICE: return read_choice(from, f->choices, place, err);
    case DL_INT_LIST: return read_int_list(from, f, place, arena, err);
    case DL_BOOL:
        if (!json_is_boolean(from.value)) return dl_wrong_type(from, "true or false", err);
        *(bool *)place = json_is_true(from.value);
        return DL_OK;
    case DL_LIST:
        if (!json_is_array(from.value)) return dl_wrong_type(from, "a list", err);
        break;
    case DL_OBJECT:
        if (!json_is_object(from.value)) return dl_wrong_type(from, "an object", err);
        break;
    case DL_ANY: break;
    }
    *(struct dl_json *)place = from;
    return DL_OK;
}

static bool is_field(const char *key, const struct dl_field *fields, size_t n_fields)
{
    for (size_t i = 0; i < n_fields; i++)
        if (strcmp(fields[i].key, key) == 0) return true;
    return false;
}

static const char **keys_of(const struct dl_field *fields, size_t n_fields, struct dl_arena *arena)
{
    const char **const keys = dl_arena_alloc(arena, n_fields * sizeof *keys);
    for (size_t i = 0; i < n_fields; i++) keys[i] = fields[i].key;
    return keys;
}

static enum dl_status unknown_key(struct dl_json object, const char *key, const struct dl_field *fields,
                                  size_t n_fields, struct dl_arena *arena, struct dl_error *err)
{
    if (!n_fields) return dl_fail(err, DL_KEY, below(object.where, key, arena), "unknown key; there are none here");
    const char **const known = keys_of(fields, n_fields, arena);
    const char *const place = below(object.where, key, arena);
    char hint[DL_HINT];
    if (*dl_suggestion(key, known, n_fields, hint)) return dl_fail(err, DL_KEY, place, "unknown key%s", hint);
    return dl_fail(err, DL_KEY, place, "unknown key; known here: %s", dl_joined(known, n_fields, hint));
}

static enum dl_status refuse_unknown_keys(struct dl_json object, const struct dl_field *fields, size_t n_fields,
                                          struct dl_arena *arena, struct dl_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object.value, key, value)
    {
        if (strcmp(key, "facts") == 0 || is_field(key, fields, n_fields)) continue;
        unknown_key(object, key, fields, n_fields, arena, err);
        if (!dl_go_on(err)) break;
    }
    return err->status;
}

/* Whether the object has an unknown key of which it was asked if this one is meant. */
static bool is_misspelt(struct dl_json object, const struct dl_field *fields, size_t n_fields, const char *wanted,
                        struct dl_arena *arena)
{
    const char *key;
    json_t *value;
    json_object_foreach(object.value, key, value)
    {
        if (strcmp(key, "facts") == 0 || is_field(key, fields, n_fields)) continue;
        const char *const meant = dl_nearest(key, keys_of(fields, n_fields, arena), n_fields);
        if (meant && strcmp(meant, wanted) == 0) return true;
    }
    return false;
}

/* ---- ranges ---- */

struct range {
    const char *where;
    double min, max;
    struct range *next;
};

static void remember_range(const char *where, const struct dl_field *f, struct dl_arena *arena)
{
    struct range *const r = dl_arena_alloc(arena, sizeof *r);
    void **const ranges = dl_arena_read(arena);
    *r = (struct range){where, f->min, f->max, *ranges};
    *ranges = r;
}

bool dl_json_range(struct dl_arena *arena, const char *where, double *min, double *max)
{
    const struct range *r = *dl_arena_read(arena);
    while (r && strcmp(r->where, where)) r = r->next;
    if (!r) return false;
    *min = r->min;
    *max = r->max;
    return true;
}

enum dl_status dl_read(struct dl_json object, const struct dl_field *fields, size_t n_fields, void *out,
                       struct dl_arena *arena, struct dl_error *err)
{
    const size_t told = err->n_told;
    if (!json_is_object(object.value)) return dl_wrong_type(object, "an object", err);
    if (refuse_unknown_keys(object, fields, n_fields, arena, err) ||
        (dl_json_check_facts(object, arena, err) && !dl_go_on(err)))
        return err->status;
    for (size_t i = 0; i < n_fields; i++) {
        const struct dl_json from = dl_json_member(object, fields[i].key, arena);
        if (!from.value && !fields[i].optional && !is_misspelt(object, fields, n_fields, fields[i].key, arena))
            dl_fail(err, DL_KEY, object.where, "needs the key '%s'", fields[i].key);
        if (from.value) read_field(from, &fields[i], out, arena, err);
        if (!dl_go_on(err)) return err->status;
        if (from.value && fields[i].type == DL_NUMBER) remember_range(from.where, &fields[i], arena);
    }
    return dl_stop_if_told(err, told);
}

enum dl_status dl_check_schema(struct dl_json doc, const char *kind, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json schema = dl_json_member(doc, "schema", arena);
    const char *const wanted = dl_arena_format(arena, "dlsim/%s/1", kind);
    if (json_is_string(schema.value) && strcmp(json_string_value(schema.value), wanted) == 0) return DL_OK;
    if (!json_is_string(schema.value)) return dl_fail(err, DL_KEY, schema.where, "must be \"%s\"", wanted);
    return dl_fail(err, DL_KEY, schema.where, "must be \"%s\", got \"%.60s\"", wanted, json_string_value(schema.value));
}

enum dl_status dl_read_document(struct dl_json doc, const char *kind, const struct dl_field *fields, size_t n_fields,
                                void *out, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json source = dl_json_member(doc, "source", arena);
    const size_t told = err->n_told;
    if (dl_check_schema(doc, kind, arena, err)) return err->status;
    if (source.value && !json_string_length(source.value))
        dl_fail(err, DL_KEY, source.where, "must say in a string where the figures come from");
    if (!dl_go_on(err)) return err->status;
    struct dl_json rest = {.value = json_copy(doc.value), .where = doc.where};
    json_object_del(rest.value, "schema");
    json_object_del(rest.value, "source");
    dl_read(rest, fields, n_fields, out, arena, err);
    json_decref(rest.value); /* a shallow copy: the members that the fields point to stay with doc */
    return dl_stop_if_told(err, told);
}

const char *dl_document_name(struct dl_json doc, struct dl_arena *arena) { return dl_without_json(doc.where, arena); }

/* ---- writing ---- */

/* No text of an input is like it: control characters are refused in names, and it is no prose. */
static const char not_finite[] = "\x01not finite";

json_t *dl_json_real(double x) { return isfinite(x) ? json_real(x) : json_string(not_finite); }

json_t *dl_json_pack(const char *format, ...)
{
    json_error_t why;
    va_list arguments;
    va_start(arguments, format);
    json_t *const packed = json_vpack_ex(&why, 0, format, arguments);
    va_end(arguments);
    return packed ? packed : json_string(not_finite);
}

static bool is_mark(const json_t *value)
{
    return !value || (json_is_string(value) && strcmp(json_string_value(value), not_finite) == 0);
}

/* Where the first mark is, as a JSON pointer in the arena; NULL: there is none. */
static const char *find_mark(json_t *value, const char *at, struct dl_arena *arena)
{
    const char *key, *found = NULL;
    size_t i;
    json_t *member;
    if (is_mark(value)) return at;
    json_object_foreach(value, key, member) if (!found) found =
        find_mark(member, dl_arena_format(arena, "%s/%s", at, key), arena);
    json_array_foreach(value, i, member) if (!found) found =
        find_mark(member, dl_arena_format(arena, "%s/%zu", at, i), arena);
    return found;
}

static enum dl_status refuse_mark(const char *path, json_t *value, struct dl_error *err)
{
    struct dl_arena *const arena = dl_arena_new();
    const char *const place = find_mark(value, "", arena);
    if (place)
        dl_fail(err, DL_STALLED, strcmp(path, "-") ? path : "--json",
                "%s is not a finite number, so nothing is written", *place ? place : "the answer");
    dl_arena_free(arena);
    return err->status;
}

char *dl_json_dump(const char *where, json_t *value, size_t flags, struct dl_error *err)
{
    char *const text = refuse_mark(where, value, err) ? NULL : json_dumps(value, flags | JSON_REAL_PRECISION(17));
    if (!text) dl_fail(err, DL_STALLED, where, "the answer cannot be written as JSON"); /* unless it is known why */
    return text;
}

enum dl_status dl_write_json(const char *path, json_t *value, struct dl_error *err)
{
    char *const text = dl_json_dump(path, value, JSON_INDENT(2), err);
    if (text) {
        const size_t length = strlen(text);
        text[length] = '\n'; /* in place of the NUL, which is not written */
        dl_write_json_text(path, text, length + 1, err);
    }
    free(text);
    json_decref(value);
    return err->status;
}
