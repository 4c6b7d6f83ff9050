#include "sim/study/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    struct dl_figures *to;
    struct dl_arena *arena;
    const char *prefix; /* of the document, as --set names it */
    const json_t *doc;
    const struct dl_device *device;
    enum dl_figure_of of;
};

/* ---- units ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static enum dl_dimension dimension_of_key(const char *key)
{
    if (ends_with(key, "_per_s") || ends_with(key, "_w")) return DL_RATE;
    return ends_with(key, "_s") || strstr(key, "_s_per_") ? DL_TIME : DL_FACTOR;
}

/* The rows of a graph's "links" have no keys: [a, b, bandwidth_bytes_per_s, latency_s]. */
static enum dl_dimension dimension_in_links(const char *const *parts, size_t n)
{
    if (n < 3 || strcmp(parts[n - 3], "links")) return DL_FACTOR;
    return strcmp(parts[n - 1], "2") == 0 ? DL_RATE : strcmp(parts[n - 1], "3") == 0 ? DL_TIME : DL_FACTOR;
}

static enum dl_dimension dimension_of(const char *const *parts, size_t n)
{
    enum dl_dimension dimension = dimension_in_links(parts, n);
    for (size_t i = n; i > 0 && dimension == DL_FACTOR; i--) dimension = dimension_of_key(parts[i - 1]);
    return dimension;
}

/* Counts and sizes are no constants that could be a little larger, nor is a fraction of 1, which is so by definition,
 * nor what is nothing. */
static bool may_change(double value, enum dl_dimension dimension)
{
    return dimension == DL_FACTOR ? value != floor(value) : value != 0;
}

/* ---- paths ---- */

enum { max_depth = 16 };

/* "file.json:/node/parts/0" has three parts. */
static size_t split(const char *where, const char *parts[max_depth], struct dl_arena *arena)
{
    const char *const pointer = strstr(where, ":/");
    size_t n = 0;
    if (!pointer) return 0;
    for (char *at = dl_arena_string(arena, pointer + 1); at && n < max_depth; n++) {
        *at++ = '\0';
        parts[n] = at;
        at = strchr(at, '/');
    }
    return n;
}

/* The name of an element, if it is the first that has it. */
static const char *name_of(const json_t *array, size_t index)
{
    const char *const name = json_string_value(json_object_get(json_array_get(array, index), "name"));
    for (size_t i = 0; name && i < index; i++) {
        const char *const other = json_string_value(json_object_get(json_array_get(array, i), "name"));
        if (other && strcmp(other, name) == 0) return NULL;
    }
    return name;
}

/* What an object of a list is about, if it says so. */
static const char *subject_of(const json_t *object)
{
    const json_t *const link = json_object_get(object, "link");
    return json_string_value(link ? link : json_object_get(object, "operation"));
}

static void set_path(const struct finding *f, const char *const *parts, size_t n, struct dl_effect *e)
{
    const json_t *at = f->doc;
    e->path = f->prefix;
    for (size_t i = 0; i < n; i++) {
        if (subject_of(at)) e->of = subject_of(at);
        const size_t index = strtoul(parts[i], NULL, 10);
        const char *const name = json_is_array(at) ? name_of(at, index) : NULL;
        e->path = dl_arena_format(f->arena, "%s.%s", e->path, name ? name : parts[i]);
        at = json_is_array(at) ? json_array_get(at, index) : json_object_get(at, parts[i]);
    }
}

/* ---- finding ---- */

static void add(struct dl_figures *to, const struct dl_figure *c)
{
    DL_GROW(to->items, to->n, to->capacity);
    to->items[to->n++] = *c;
}

/* No constant can be where its file could not say it: an efficiency is at most 1. */
static void keep_in_range(const char *where, struct dl_arena *arena, struct dl_effect *e)
{
    double min, max;
    if (!dl_json_range(arena, where, &min, &max)) return;
    e->low = fmax(e->low, min);
    e->high = fmin(e->high, max);
}

static void add_number(void *user, const struct dl_fact *fact)
{
    const struct finding *const f = user;
    const char *parts[max_depth];
    const size_t n = split(fact->where, parts, f->arena);
    const enum dl_dimension dimension = dimension_of(parts, n);
    if (!n || !may_change(fact->value, dimension) || dl_is_only_of_energy(f->device, fact->where)) return;
    struct dl_figure c = {.effect = {.dimension = dimension,
                                     .grade = fact->grade,
                                     .value = fact->value,
                                     .low = fact->low,
                                     .high = fact->high},
                          .of = f->of};
    set_path(f, parts, n, &c.effect);
    if (!fact->has_interval) dl_effect_set_usual_interval(&c.effect);
    keep_in_range(fact->where, f->arena, &c.effect);
    add(f->to, &c);
}

static void add_tables(const struct dl_session *s, struct dl_figures *out)
{
    /* On another device they tell by what factor kernels differ from the model. */
    const enum dl_dimension dimension = s->device.timed ? DL_FACTOR : DL_TIME;
    struct dl_figure c = {
        .effect = {.path = "device.measured", .dimension = dimension, .grade = DL_MEASURED, .value = 1},
        .tables = json_object_get(s->device_doc.value, "measured"),
        .of = DL_OF_DEVICE};
    dl_effect_set_usual_interval(&c.effect);
    if (c.tables) add(out, &c);
}

void dl_figures_find(const struct dl_session *s, struct dl_figures *out)
{
    const struct {
        struct dl_json doc;
        const char *prefix;
    } docs[] = {[DL_OF_SYSTEM] = {s->machine.system_doc, "topo"},
                [DL_OF_DEVICE] = {s->device_doc, "device"},
                [DL_OF_TRANSPORT] = {s->machine.transport_doc, "transport"},
                [DL_OF_SOFTWARE] = {s->software_doc, "software"}};
    for (size_t i = 0; i < DL_COUNT(docs); i++)
        dl_json_facts_of_step(
            docs[i].doc, s->arena, add_number,
            &(struct finding){out, s->arena, docs[i].prefix, docs[i].doc.value, &s->device, (enum dl_figure_of)i});
    add_tables(s, out);
}

/* ---- changing ---- */

static void scale_column(json_t *table, size_t column, double factor)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        json_array_set_new(row, column, json_real(factor * json_number_value(json_array_get(row, column))));
    }
}

static void scale_seconds(json_t *table, double factor)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(table, "columns"), i, name)
    {
        if (strcmp(json_string_value(name), "seconds") == 0) scale_column(table, i, factor);
    }
}

static const char *changed_tables(const struct dl_figure *c, double factor, struct dl_arena *arena)
{
    json_t *const tables = json_deep_copy(c->tables);
    size_t i;
    json_t *table;
    json_array_foreach(tables, i, table) { scale_seconds(table, factor); }
    char *const text = json_dumps(tables, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const char *const assignment = dl_arena_format(arena, "%s=%s", c->effect.path, text);
    free(text);
    json_decref(tables);
    return assignment;
}

const char *dl_figure_changed(const struct dl_figure *c, double factor, struct dl_arena *arena)
{
    if (c->tables) return changed_tables(c, factor, arena);
    return dl_arena_format(arena, "%s=%.17g", c->effect.path, c->effect.value * factor);
}
