/* json_set.c - values of `--set`: a path into a document, what to do there, and a value in JSON. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/facts.h"

struct assignment {
    const char *text; /* as it was given */
    char sign;        /* '+' or '-'; 0: none */
    char *path;
    const char *value; /* NULL: none */
};

static enum dl_status split(const char *text, struct dl_arena *arena, struct assignment *out, struct dl_error *err)
{
    const bool is_signed = *text == '+' || *text == '-';
    char *const path = dl_arena_string(arena, text + is_signed), *const equals = strchr(path, '=');
    if (equals) *equals = '\0';
    *out = (struct assignment){text, is_signed ? *text : '\0', path, equals ? equals + 1 : NULL};
    if (out->sign == '-' && out->value)
        return dl_fail(err, DL_SYNTAX, "--set", "'%s': what is taken out has no value; write '-%s'", text, path);
    if (!*path || (!out->sign && !out->value))
        return dl_fail(err, DL_SYNTAX, "--set", "'%s' must be PATH=JSON, for example topo.nodes=4", text);
    return DL_OK;
}

static enum dl_status not_json(const struct assignment *a, const char *why, struct dl_error *err)
{
    if (!isalpha((unsigned char)*a->value))
        return dl_fail(err, DL_SYNTAX, "--set", "'%s' is not JSON (%s)", a->value, why);
    return dl_fail(err, DL_SYNTAX, "--set", "'%s' is not JSON (%s); strings need quotes: '%.*s\"%s\"'", a->value, why,
                   (int)(strlen(a->text) - strlen(a->value)), a->text, a->value);
}

/* ---- going along the path ---- */

/* An element by its index or, for elements that have one, by its name. */
static bool find_element(const json_t *array, const char *part, size_t *index)
{
    const size_t n = json_array_size(array);
    char *end;
    *index = strtoul(part, &end, 10);
    if (*part >= '0' && *part <= '9' && !*end) return *index < n;
    for (*index = 0; *index < n; (*index)++) {
        const json_t *const name = json_object_get(json_array_get(array, *index), "name");
        if (json_is_string(name) && strcmp(json_string_value(name), part) == 0) return true;
    }
    return false;
}

static json_t *find_part(json_t *at, const char *part)
{
    size_t index;
    if (json_is_object(at)) return json_object_get(at, part);
    return find_element(at, part, &index) ? json_array_get(at, index) : NULL;
}

/* A list whose elements all have names, so that one of another name can be added. */
static bool has_names(const json_t *at)
{
    size_t i;
    json_t *element;
    json_array_foreach(at, i, element) if (!json_is_string(json_object_get(element, "name"))) return false;
    return json_is_array(at);
}

/* What is in it: keys of an object, or names of elements. */
static size_t list_parts(json_t *at, struct dl_arena *arena, const char ***out)
{
    const size_t most = json_is_object(at) ? json_object_size(at) : json_array_size(at);
    const char **const parts = *out = dl_arena_alloc(arena, (most + 1) * sizeof *parts);
    size_t n = 0, index;
    const char *key;
    json_t *value;
    json_object_foreach(at, key, value) parts[n++] = dl_arena_string(arena, key);
    json_array_foreach(at, index, value)
    {
        const json_t *const name = json_object_get(value, "name");
        if (json_is_string(name)) parts[n++] = json_string_value(name);
    }
    return n;
}

static enum dl_status no_such_part(json_t *at, const char *part, const struct assignment *a, struct dl_json doc,
                                   struct dl_arena *arena, struct dl_error *err)
{
    char hint[DL_HINT];
    const char **parts;
    const size_t n = list_parts(at, arena, &parts);
    const bool can_be_added =
        !a->sign && has_names(at) && !isdigit((unsigned char)*part) && !dl_nearest(part, parts, n);
    return dl_fail(err, DL_KEY, "--set", "'%s': there is no '%s' in %s%s%s", a->text, part, doc.where,
                   dl_hint(part, parts, n, hint), can_be_added ? "; a + in front of the path adds it" : "");
}

/* The entry may already say its name, which must be this one. */
static enum dl_status add_element(json_t *at, const char *part, json_t *entry, const struct assignment *a,
                                  struct dl_error *err)
{
    const json_t *const name = json_object_get(entry, "name");
    json_t *const named = json_pack("{s:s}", "name", part);
    if (!has_names(at) || isdigit((unsigned char)*part))
        dl_fail(err, DL_KEY, "--set", "'%s': a + adds an entry by its name, which '%s' cannot be here", a->text, part);
    else if (!named || !json_is_object(entry) ||
             (name && !(json_is_string(name) && strcmp(json_string_value(name), part) == 0)))
        dl_fail(err, DL_TYPE, "--set", "'%s': what is added must be an object, with no other name", a->text);
    else {
        json_object_update_missing(named, entry);
        json_array_append(at, named);
    }
    json_decref(named);
    return err->status;
}

static json_t *step_into(json_t *at, const char *part, const struct assignment *a, struct dl_json doc,
                         struct dl_arena *arena, struct dl_error *err)
{
    json_t *const into = find_part(at, part);
    if (into) return into;
    if (a->sign != '+' || !json_is_array(at)) {
        no_such_part(at, part, a, doc, arena, err);
        return NULL;
    }
    json_t *const empty = json_object();
    add_element(at, part, empty, a, err);
    json_decref(empty);
    return err->status ? NULL : find_part(at, part);
}

/* ---- what is done at its end ---- */

static enum dl_status put(json_t *at, const char *part, json_t *value, const struct assignment *a, struct dl_error *err)
{
    size_t index;
    if (json_is_object(at)) {
        dl_json_drop_interval(at, part);
        if (json_object_set(at, part, value) == 0) return DL_OK;
        return dl_fail(err, DL_KEY, "--set", "'%s': '%s' is not UTF-8", a->text, part);
    }
    if (find_element(at, part, &index)) {
        json_array_set(at, index, value);
        return DL_OK;
    }
    return dl_fail(err, DL_KEY, "--set", "'%s': '%s' is no key of an object and no element of a list", a->text, part);
}

static enum dl_status add(json_t *at, const char *part, json_t *value, const struct assignment *a, struct dl_error *err)
{
    if (!find_part(at, part)) return add_element(at, part, value, a, err);
    return dl_fail(err, DL_KEY, "--set", "'%s': there is a '%s' already; change it without the +, key by key", a->text,
                   part);
}

/* A fact of a key goes with it. */
static void take_out(json_t *at, const char *part)
{
    size_t index;
    if (json_is_object(at)) {
        json_object_del(at, part);
        json_object_del(json_object_get(at, "facts"), part);
    } else if (find_element(at, part, &index)) {
        json_array_remove(at, index);
    }
}

/* Whether the path goes into a list, so that there is something to add to. */
struct place {
    json_t *at;
    const char *part;
    bool in_list;
};

static enum dl_status find_place(struct dl_json doc, const struct assignment *a, struct dl_arena *arena,
                                 struct place *out, struct dl_error *err)
{
    char *path = a->path;
    *out = (struct place){.at = doc.value};
    for (char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        *dot = '\0';
        out->in_list |= json_is_array(out->at);
        out->at = step_into(out->at, path, a, doc, arena, err);
        if (!out->at) return err->status;
    }
    out->part = path;
    out->in_list |= json_is_array(out->at);
    return DL_OK;
}

static enum dl_status apply(struct dl_json doc, const struct assignment *a, json_t *value, struct dl_arena *arena,
                            struct dl_error *err)
{
    struct place place;
    if (find_place(doc, a, arena, &place, err)) return err->status;
    if (a->sign == '+' && (!place.in_list || (json_is_object(place.at) && !a->value)))
        return dl_fail(err, DL_KEY, "--set", "'%s': a + adds an entry to a list, such as +stack.zero.stage=1", a->text);
    if (a->sign == '+' && json_is_array(place.at)) return add(place.at, place.part, value, a, err);
    if (a->sign != '-') return put(place.at, place.part, value, a, err);
    if (!find_part(place.at, place.part)) return no_such_part(place.at, place.part, a, doc, arena, err);
    take_out(place.at, place.part);
    return DL_OK;
}

enum dl_status dl_json_set(struct dl_json doc, const char *assignment, struct dl_arena *arena, struct dl_error *err)
{
    struct assignment a;
    if (split(assignment, arena, &a, err)) return err->status;
    json_error_t parse;
    json_t *const value =
        a.value ? json_loads(a.value, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &parse) : json_object();
    if (!value) return not_json(&a, parse.text, err);
    apply(doc, &a, value, arena, err);
    json_decref(value);
    return err->status;
}
