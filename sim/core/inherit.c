#include "sim/core/inherit.h"

#include <string.h>

#include "sim/core/facts.h"
#include "sim/core/files.h"

static bool goes_on(const json_t *list)
{
    const char *const last = json_string_value(json_array_get(list, json_array_size(list) - 1));
    return last && strcmp(last, "...") == 0;
}

static void join_lists(json_t *own, json_t *base)
{
    if (!goes_on(own)) return;
    json_array_remove(own, json_array_size(own) - 1);
    json_array_extend(own, base);
}

/* An inherited fact keeps no interval of a value that is another one here. */
static void drop_intervals(const json_t *own, json_t *base)
{
    const json_t *const facts = json_object_get(own, "facts");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)own, key, value)
    {
        const json_t *const other = json_object_get(base, key);
        if (other && !json_equal(other, value) && !json_object_get(facts, key)) dl_json_drop_interval(base, key);
    }
}

static void join(json_t *own, json_t *base)
{
    const char *key;
    json_t *value;
    drop_intervals(own, base);
    json_object_foreach(base, key, value)
    {
        json_t *const mine = json_object_get(own, key);
        if (!mine)
            json_object_set(own, key, value);
        else if (json_is_object(mine) && json_is_object(value))
            join(mine, value);
        else if (json_is_array(mine) && json_is_array(value))
            join_lists(mine, value);
    }
}

static enum dl_status inherit(struct dl_json doc, const struct dl_sought *of, struct dl_lineage *lineage,
                              struct dl_arena *arena, struct dl_error *err);

static enum dl_status load_base(struct dl_json like, const struct dl_sought *sought, struct dl_lineage *lineage,
                                struct dl_arena *arena, struct dl_json *base, struct dl_error *err)
{
    struct dl_error missing = {0};
    const char *path;
    if (lineage->n == DL_MOST_LIKE)
        return dl_fail(err, DL_IMPOSSIBLE, like.where, "'%.60s' leads in a circle, or through more than %d files",
                       sought->name, DL_MOST_LIKE);
    if (dl_find_sought(sought, arena, &path, &missing))
        return dl_fail(err, missing.status, like.where, "%s", missing.text);
    if (dl_json_load(path, arena, base, err)) return err->status;
    lineage->names[lineage->n++] = dl_document_name(*base, arena);
    return inherit(*base, sought, lineage, arena, err);
}

static enum dl_status inherit(struct dl_json doc, const struct dl_sought *of, struct dl_lineage *lineage,
                              struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json like = dl_json_member(doc, "like", arena);
    struct dl_json base = {0};
    if (!like.value) return DL_OK;
    if (!json_is_string(like.value)) return dl_wrong_type(like, "the name of a file", err);
    const struct dl_sought sought = {
        .folder = of->folder, .what = of->what, .name = json_string_value(like.value), .file = doc.file};
    if (!load_base(like, &sought, lineage, arena, &base, err)) {
        join(doc.value, base.value);
        json_object_del(doc.value, "like");
    }
    json_decref(base.value);
    return err->status;
}

enum dl_status dl_json_inherit(struct dl_json doc, const char *folder, const char *what, struct dl_arena *arena,
                               struct dl_error *err)
{
    struct dl_lineage unused;
    return dl_json_inherit_from(doc, folder, what, arena, &unused, err);
}

enum dl_status dl_json_inherit_from(struct dl_json doc, const char *folder, const char *what, struct dl_arena *arena,
                                    struct dl_lineage *lineage, struct dl_error *err)
{
    *lineage = (struct dl_lineage){0};
    return inherit(doc, &(struct dl_sought){.folder = folder, .what = what}, lineage, arena, err);
}
