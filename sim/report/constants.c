#include "sim/report/constants.h"

#include <stdlib.h>
#include <string.h>

static bool holds(const struct dl_constants *c, const struct dl_constant *item)
{
    for (const struct dl_constant *i = c->first; i; i = i->next)
        if (strcmp(i->key, item->key) == 0 && strcmp(i->value, item->value) == 0) return true;
    return false;
}

static void add(struct dl_constants *c, const struct dl_constant *item)
{
    if (holds(c, item)) return;
    struct dl_constant *const added = dl_arena_alloc(c->arena, sizeof *added);
    *added = *item;
    added->next = c->first;
    c->first = added;
    c->n++;
    c->n_chosen += item->chosen;
}

static const char *text_of(const json_t *value, struct dl_arena *arena)
{
    char *const text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    const char *const kept = dl_arena_string(arena, text);
    free(text);
    return kept;
}

static void add_facts(struct dl_constants *c, struct dl_json object)
{
    const char *key;
    json_t *fact;
    json_object_foreach(json_object_get(object.value, "facts"), key, fact)
    {
        struct dl_fitted fitted;
        if (!dl_fact_is_fitted(fact, &fitted) || !fitted.to_validation_rows) continue;
        const struct dl_json value = dl_json_member(object, key, c->arena);
        if (!value.value) continue; /* "*" */
        add(c, &(struct dl_constant){.where = value.where,
                                     .key = dl_arena_string(c->arena, key),
                                     .value = text_of(value.value, c->arena),
                                     .chosen = fitted.by_both_halves});
    }
}

void dl_constants_add(struct dl_constants *c, struct dl_json doc)
{
    const char *key;
    json_t *member;
    add_facts(c, doc);
    json_object_foreach(doc.value, key, member)
    {
        const struct dl_json place = dl_json_member(doc, key, c->arena);
        if (json_is_object(member)) dl_constants_add(c, place);
        for (size_t i = 0; i < json_array_size(member); i++)
            if (json_is_object(json_array_get(member, i))) dl_constants_add(c, dl_json_element(place, i, c->arena));
    }
}

void dl_constants_join(struct dl_constants *c, const struct dl_constants *others)
{
    for (const struct dl_constant *i = others->first; i; i = i->next) add(c, i);
}

json_t *dl_constants_json(const struct dl_constants *c)
{
    json_t *const list = json_array();
    for (const struct dl_constant *i = c->first; i; i = i->next)
        json_array_append_new(list, dl_json_pack("{s:s, s:o, s:s}", "where", i->where, "value",
                                                 json_loads(i->value, JSON_DECODE_ANY, NULL), "by",
                                                 i->chosen ? "both halves" : "fit"));
    return list;
}
