#include "sim/import/strategy_made.h"

json_t *dl_strategy_made(const struct dl_imported *out, const char *where, const char *defaults, struct dl_arena *arena)
{
    return json_pack("{ss ss s[] s{ss ss}}", "schema", "dlsim/strategy/1", "source",
                     dl_arena_format(arena, "%s, %s", where, out->what), "stack", "facts", "*",
                     dl_arena_format(arena, "published: the file, and %s defaults", defaults), "software",
                     "assumed: the file does not say the version");
}

json_t *dl_strategy_entry(json_t *strategy, const char *name)
{
    json_t *const entry = json_pack("{ss}", "name", name);
    json_array_append_new(json_object_get(strategy, "stack"), entry);
    return entry;
}

void dl_put_count(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

void dl_put_word(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}
