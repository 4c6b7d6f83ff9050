#include "sim/report/sources.h"

#include <stdio.h>
#include <string.h>

const char dl_given[] = "given on the command line";

struct collecting {
    struct dl_sources *to;
    const char *below; /* ":/reliability/" */
};

static void collect(void *user, const struct dl_fact *fact)
{
    const struct collecting *const c = user;
    if (!strstr(fact->where, c->below)) return;
    DL_GROW(c->to->items, c->to->n, c->to->capacity);
    c->to->items[c->to->n++] =
        (struct dl_source){.where = fact->where, .text = fact->text, .value = fact->value, .grade = fact->grade};
}

void dl_sources_add(struct dl_sources *s, struct dl_json doc, const char *key, struct dl_arena *arena)
{
    dl_json_facts(doc, arena, collect, &(struct collecting){.to = s, .below = dl_arena_format(arena, ":/%s/", key)});
}

void dl_sources_give(struct dl_sources *s, const char *place, const char *option, double value)
{
    const struct dl_source given = {.where = option, .text = dl_given, .value = value};
    for (size_t i = 0; i < s->n; i++) {
        const char *const end = strstr(s->items[i].where, place);
        if (!end || strcmp(end, place)) continue;
        s->items[i] = given;
        return;
    }
    DL_GROW(s->items, s->n, s->capacity);
    s->items[s->n++] = given;
}

void dl_sources_release(struct dl_sources *s)
{
    dl_free(s->items);
    *s = (struct dl_sources){0};
}

void dl_sources_print_grades(const struct dl_sources *s)
{
    size_t n_by_grade[DL_N_GRADES] = {0};
    for (size_t i = 0; i < s->n; i++) n_by_grade[s->items[i].grade]++;
    const char *before = "";
    for (size_t g = 0; g < DL_N_GRADES; g++) {
        if (!n_by_grade[g]) continue;
        printf("%s%zu %s", before, n_by_grade[g], dl_grade_name((enum dl_grade)g));
        before = ", ";
    }
}

void dl_sources_print(const struct dl_sources *s)
{
    for (size_t i = 0; i < s->n; i++)
        printf("    %s = %g, %s\n", s->items[i].where, s->items[i].value, s->items[i].text);
}

json_t *dl_sources_json(const struct dl_sources *s)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:s}", "where", s->items[i].where, "value",
                                                 s->items[i].value, "source", s->items[i].text));
    return list;
}
