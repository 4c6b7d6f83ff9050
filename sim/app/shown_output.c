/* shown_output.c - `dlsim show` as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "sim/app/shown.h"
#include "sim/report/units.h"

/* ---- units ---- */

static const struct unit {
    const char *ending; /* of a key */
    const char *unit;
    char *(*format)(double x, char text[DL_QUANTITY]); /* with the unit; NULL: the number, then the unit */
} units[] = {
    {"bytes_per_s", "bytes/s", dl_format_rate},
    {"flop_per_s", "flop/s", dl_format_flop_rate},
    {"s_per_byte", "s/byte", NULL},
    {"s_per_launch", "s", dl_format_seconds},
    {"flop_per_token", "flop", dl_format_flop},
    {"flop_per_sample", "flop", dl_format_flop},
    {"flop_per_step", "flop", dl_format_flop},
    {"parameters", "parameters", dl_format_parameters},
    {"_bytes", "bytes", dl_format_bytes},
    {"_s", "s", dl_format_seconds},
    {"_w", "W", NULL},
};

static bool ends_with(const char *text, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length >= n && strncmp(text + length - n, ending, n) == 0;
}

/* By the last part of the pointer that tells one: "/peak_flop_per_s/bf16" has that of its object. */
static const struct unit *unit_of(const char *key)
{
    for (size_t length = strlen(key); length; length--) {
        if (key[length] && key[length] != '/') continue;
        for (size_t i = 0; i < DL_COUNT(units); i++)
            if (ends_with(key, length, units[i].ending)) return &units[i];
    }
    return NULL;
}

static const char *told(const char *key, double value, struct dl_arena *arena)
{
    char text[DL_QUANTITY];
    const struct unit *const unit = unit_of(key);
    if (unit && unit->format) return dl_arena_string(arena, unit->format(value, text));
    const char *const number = dl_arena_string(arena, dl_format_number(value, text));
    return unit ? dl_arena_format(arena, "%s %s", number, unit->unit) : number;
}

/* "/nodes" of "selene.json:/nodes". */
static const char *pointer(const char *where)
{
    const char *const colon = strstr(where, ":/");
    return colon ? colon + 1 : where;
}

/* Texts of files are for the reader of a terminal here: none begins a line of its own. */
static const char *one_line(const char *text, struct dl_arena *arena)
{
    char *const copy = dl_arena_string(arena, text);
    for (char *c = copy; (c = strpbrk(c, "\r\n"));) *c = ' ';
    return copy;
}

/* "OLCF user guide" of "published: OLCF user guide". */
static const char *source_of(const struct dl_fact *fact) { return strchr(fact->text, ' ') + 1; }

/* ---- what is no number ---- */

static bool are_strings(const json_t *list)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value) if (!json_is_string(value)) return false;
    return json_array_size(list) > 0;
}

static bool is_table(const json_t *value)
{
    return json_object_get(value, "columns") && json_object_get(value, "rows");
}

/* Names, choices and switches of the document, and lists of names. */
static void each_setting(struct dl_json at, struct dl_arena *arena,
                         void (*visit)(void *user, const char *key, json_t *value), void *user)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(at.value) || json_is_boolean(at.value) || are_strings(at.value)) {
        visit(user, pointer(at.where), at.value);
        return;
    }
    json_array_foreach(at.value, i, value) each_setting(dl_json_element(at, i, arena), arena, visit, user);
    json_object_foreach(is_table(at.value) ? NULL : at.value, key, value)
    {
        const bool is_head = !strstr(at.where, ":/") && (strcmp(key, "schema") == 0 || strcmp(key, "source") == 0);
        if (strcmp(key, "facts") && !is_head) each_setting(dl_json_member(at, key, arena), arena, visit, user);
    }
}

/* ---- text ---- */

enum { wide = 44 };

static void print_setting(void *user, const char *key, json_t *value)
{
    (void)user;
    printf("  %-*s ", wide, key);
    if (json_is_boolean(value)) fputs(json_is_true(value) ? "true" : "false", stdout);
    if (json_is_string(value)) fputs(json_string_value(value), stdout);
    for (size_t i = 0; i < json_array_size(value); i++)
        printf("%s%s", i ? ", " : "", json_string_value(json_array_get(value, i)));
    putchar('\n');
}

static void print_figure(const struct dl_shown *s, const struct dl_figure_shown *f)
{
    printf("  %-*s %s\n", wide, f->key, f->text ? f->text : told(f->key, f->value, s->arena));
}

static void print_fact(const struct dl_shown *s, const struct dl_fact *f)
{
    const char *const key = pointer(f->where);
    printf("  %-*s %-14s %s", wide, key, told(key, f->value, s->arena),
           f->stated ? one_line(f->text, s->arena) : "no source");
    if (f->has_interval) printf(" [%s, %s]", told(key, f->low, s->arena), told(key, f->high, s->arena));
    putchar('\n');
}

static void print_references(const struct dl_shown *s)
{
    for (size_t i = 0; i < s->n_references; i++) {
        const struct dl_reference *const r = &s->references[i];
        printf("%s%s %s%s", i ? ", " : "  refers to   ", r->kind, r->name, r->path ? "" : " (no such file)");
    }
    if (s->n_references) putchar('\n');
}

void dl_shown_text(const struct dl_shown *s)
{
    const char *const source = json_string_value(json_object_get(s->doc.value, "source"));
    const char *const about = s->kind->about ? s->kind->about(s->doc, s->arena) : "";
    printf("%s %s%s%s\n  file        %s\n", s->kind->name, s->name, *about ? ": " : "", about, s->doc.file);
    if (source) printf("  source      %s\n", one_line(source, s->arena));
    if (s->like) printf("  like        %s\n", s->like);
    print_references(s);
    puts("derived");
    for (size_t i = 0; i < s->n_figures; i++) print_figure(s, &s->figures[i]);
    puts("settings");
    each_setting(s->doc, s->arena, print_setting, NULL);
    puts("facts: value, grade, source, interval");
    for (size_t i = 0; i < s->n_facts; i++) print_fact(s, &s->facts[i]);
}

/* ---- JSON ---- */

static void add_setting(void *user, const char *key, json_t *value) { json_object_set(user, key, value); }

static json_t *settings_json(const struct dl_shown *s)
{
    json_t *const settings = json_object();
    each_setting(s->doc, s->arena, add_setting, settings);
    return settings;
}

static json_t *figures_json(const struct dl_shown *s)
{
    json_t *const figures = json_object();
    for (size_t i = 0; i < s->n_figures; i++) {
        const struct dl_figure_shown *const f = &s->figures[i];
        json_object_set_new(figures, f->key, f->text ? json_string(f->text) : dl_json_real(f->value));
    }
    return figures;
}

static json_t *references_json(const struct dl_shown *s)
{
    json_t *const all = json_array();
    for (size_t i = 0; i < s->n_references; i++) {
        const struct dl_reference *const r = &s->references[i];
        json_array_append_new(all, dl_json_pack("{s:s, s:s, s:s, s:s?}", "kind", r->kind, "name", r->name, "key",
                                                r->place, "path", r->path));
    }
    return all;
}

static json_t *fact_json(const struct dl_fact *f)
{
    const char *const key = pointer(f->where);
    const struct unit *const unit = unit_of(key);
    json_t *const fact =
        dl_json_pack("{s:s, s:f, s:s, s:s, s:s?}", "key", key, "value", f->value, "unit", unit ? unit->unit : "",
                     "grade", dl_grade_name(f->grade), "source", f->stated ? source_of(f) : NULL);
    if (f->has_interval) {
        json_object_set_new(fact, "low", dl_json_real(f->low));
        json_object_set_new(fact, "high", dl_json_real(f->high));
    }
    return fact;
}

json_t *dl_shown_json(const struct dl_shown *s)
{
    json_t *const facts = json_array();
    for (size_t i = 0; i < s->n_facts; i++) json_array_append_new(facts, fact_json(&s->facts[i]));
    return dl_json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o}", "kind", s->kind->name, "name", s->name,
                        "path", s->doc.file, "about", s->kind->about ? s->kind->about(s->doc, s->arena) : "", "source",
                        json_string_value(json_object_get(s->doc.value, "source")), "like", s->like, "refers_to",
                        references_json(s), "derived", figures_json(s), "settings", settings_json(s), "facts", facts);
}
