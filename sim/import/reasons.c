#include "sim/import/reasons.h"

#include <string.h>

static bool is_named(const char *names, const char *name)
{
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        const bool is_prefix = n && at[n - 1] == '*';
        if (is_prefix ? strncmp(at, name, n - 1) == 0 : strncmp(at, name, n) == 0 && !name[n]) return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

const struct dl_reason *dl_reason_of(const struct dl_reason *reasons, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (is_named(reasons[i].names, name)) return &reasons[i];
    return NULL;
}

/* ---- trees ---- */

struct check {
    const struct dl_known_keys *known;
    struct dl_arena *arena;
    struct dl_imported *out;
    struct dl_error *err;
};

/* Every name of a list, cut apart. */
static enum dl_status refuse_unknown(const struct check *c, struct dl_json at, const char *name)
{
    const char **names = NULL;
    size_t n = 0, capacity = 0;
    char hint[DL_HINT];
    for (const char *word = c->known->taken; *word;) {
        const size_t length = strcspn(word, " ");
        DL_GROW(names, n, capacity);
        names[n++] = dl_arena_format(c->arena, "%.*s", (int)length, word);
        word += length + strspn(word + length, " ");
    }
    dl_fail(c->err, DL_KEY, at.where, "is no key of %s that dlsim knows, and it may change the run%s", c->known->tool,
            dl_suggestion(name, names, n, hint));
    dl_free(names);
    return c->err->status;
}

static enum dl_status check_one(const struct check *c, struct dl_json at, const char *name)
{
    if (is_named(c->known->taken, name)) return DL_OK;
    const struct dl_reason *const reason = dl_reason_of(c->known->reasons, c->known->n_reasons, name);
    if (!reason) return refuse_unknown(c, at, name);
    if (reason->refuses) return dl_fail(c->err, DL_IMPOSSIBLE, at.where, "%s", reason->why);
    dl_leave_out(
        c->out,
        (struct dl_left_out){
            .key = name, .value = dl_shown_value(at.value, c->arena), .why = reason->why, .matters = reason->matters},
        c->arena);
    return DL_OK;
}

static enum dl_status check_object(const struct check *c, struct dl_json object, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach(object.value, key, value)
    {
        const char *const name = dl_arena_format(c->arena, "%s%s%s", prefix, *prefix ? "." : "", key);
        const struct dl_json at = dl_json_member(object, key, c->arena);
        const bool is_known =
            is_named(c->known->taken, name) || dl_reason_of(c->known->reasons, c->known->n_reasons, name);
        const bool looks_in = json_is_object(value) && !is_known;
        if ((looks_in ? check_object(c, at, name) : check_one(c, at, name)) && !dl_go_on(c->err)) return c->err->status;
    }
    return DL_OK;
}

enum dl_status dl_check_keys(struct dl_json tree, const struct dl_known_keys *known, struct dl_arena *arena,
                             struct dl_imported *out, struct dl_error *err)
{
    const struct check c = {known, arena, out, err};
    const size_t told = err->n_told;
    if (check_object(&c, tree, "") && !dl_go_on(err)) return err->status;
    return dl_stop_if_told(err, told);
}

struct dl_json dl_key_at(struct dl_json tree, const char *name, struct dl_arena *arena)
{
    for (const char *at = name; tree.value;) {
        const size_t n = strcspn(at, ".");
        tree = dl_json_member(tree, dl_arena_format(arena, "%.*s", (int)n, at), arena);
        if (!at[n]) break;
        at += n + 1;
    }
    return tree;
}
