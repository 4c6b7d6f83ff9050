#include "sim/report/assumptions.h"

#include <stdio.h>

struct collecting {
    struct dl_assumptions *to;
    struct dl_arena *arena;
    bool stated; /* only what the document itself calls assumed */
};

static void collect(void *user, const struct dl_fact *fact)
{
    struct collecting *const c = user;
    if (c->to->device && dl_is_only_of_energy(c->to->device, fact->where)) return;
    if (fact->grade != DL_ASSUMED || (c->stated && !fact->stated)) return;
    dl_assumptions_add_one(c->to, fact->where, dl_arena_string(c->arena, fact->text));
}

void dl_assumptions_add_one(struct dl_assumptions *a, const char *where, const char *why)
{
    DL_GROW(a->items, a->n, a->capacity);
    a->items[a->n++] = (struct dl_assumption){.where = where, .why = why};
}

void dl_assumptions_add(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena)
{
    dl_json_facts(doc, arena, collect, &(struct collecting){.to = a, .arena = arena});
}

void dl_assumptions_add_of_step(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena)
{
    dl_json_facts_of_step(doc, arena, collect, &(struct collecting){.to = a, .arena = arena});
}

void dl_assumptions_add_stated(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena)
{
    dl_json_facts(doc, arena, collect, &(struct collecting){.to = a, .arena = arena, .stated = true});
}

void dl_assumptions_release(struct dl_assumptions *a)
{
    dl_free(a->items);
    *a = (struct dl_assumptions){0};
}

json_t *dl_assumptions_json(const struct dl_assumptions *a)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < a->n; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:s}", "where", a->items[i].where, "why", a->items[i].why));
    return list;
}

void dl_assumptions_print(const struct dl_assumptions *a)
{
    enum { shown = 3 };
    if (!a->n) return;
    printf("  rests on %zu assumed figure%s (all of them: --json -)\n", a->n, a->n == 1 ? "" : "s");
    for (size_t i = 0; i < a->n && i < shown; i++) printf("    %s: %s\n", a->items[i].where, a->items[i].why);
}
