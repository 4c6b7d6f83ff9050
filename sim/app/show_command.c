/* show_command.c - one data file as dlsim understands it. */
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/shown.h"
#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "sim/report/asked.h"

struct request {
    const char *kind, *json;
};

static const struct dl_option options[] = {
    {"kind", DL_OPT_CHOICE, offsetof(struct request, kind), false, 0, 0, dl_file_kind_names,
     "what the name is of; needed where several kinds have it"},
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
};

/* ---- finding ---- */

/* The file of a kind that is shipped under this name; NULL: none. */
static const char *shipped_path(const struct dl_file_kind *kind, const char *name, struct dl_arena *arena)
{
    if (!kind->folder || strchr(name, '/')) return NULL;
    const char *const path =
        dl_arena_format(arena, "%s/%s.json", dl_shipped(kind->folder, arena), dl_without_json(name, arena));
    return dl_is_regular(path) ? path : NULL;
}

static bool may_be(const struct dl_file_kind *kind, const struct request *q)
{
    return !q->kind || strcmp(kind->name, q->kind) == 0;
}

static enum dl_status several(const char *name, struct dl_arena *arena, struct dl_error *err)
{
    const char *kinds = "";
    for (int i = 0; i < DL_N_FILE_KINDS; i++) {
        const struct dl_file_kind *const kind = dl_file_kind_get((enum dl_file_kind_index)i);
        if (shipped_path(kind, name, arena))
            kinds = dl_arena_format(arena, "%s%s--kind %s", kinds, *kinds ? " or " : "", kind->name);
    }
    return dl_fail(err, DL_NOT_FOUND, name, "is the name of files of several kinds; say %s", kinds);
}

static enum dl_status nothing_found(const struct request *q, const char *name, struct dl_arena *arena,
                                    struct dl_error *err)
{
    const char **all = NULL;
    size_t n = 0, capacity = 0;
    for (int i = 0; i < DL_N_FILE_KINDS; i++) {
        const struct dl_file_kind *const kind = dl_file_kind_get((enum dl_file_kind_index)i);
        const char **names;
        const size_t n_names = kind->folder && may_be(kind, q) ? dl_list_folder(kind->folder, arena, &names) : 0;
        for (size_t k = 0; k < n_names; k++) {
            DL_GROW(all, n, capacity);
            all[n++] = names[k];
        }
    }
    char hint[DL_HINT];
    dl_fail(err, DL_NOT_FOUND, name, "no such %s: neither a file nor a shipped name%s", q->kind ? q->kind : "name",
            dl_suggestion(dl_without_json(name, arena), all, n, hint));
    dl_free(all);
    return err->status;
}

/* As for all commands: a shipped name goes before a file in the current folder. */
static enum dl_status find(const struct request *q, const char *name, struct dl_arena *arena, const char **path,
                           struct dl_error *err)
{
    size_t n = 0;
    *path = NULL;
    for (int i = 0; i < DL_N_FILE_KINDS; i++) {
        const struct dl_file_kind *const kind = dl_file_kind_get((enum dl_file_kind_index)i);
        const char *const found = may_be(kind, q) ? shipped_path(kind, name, arena) : NULL;
        if (!found) continue;
        *path = found;
        n++;
    }
    if (n > 1) return several(name, arena, err);
    const char *const own[] = {name, dl_arena_format(arena, "%s.json", name)};
    for (size_t i = 0; i < DL_COUNT(own) && !*path; i++)
        if (dl_is_regular(own[i])) *path = own[i];
    return *path ? DL_OK : nothing_found(q, name, arena, err);
}

/* ---- the command ---- */

static enum dl_status check_kind(const struct request *q, const struct dl_shown *s, struct dl_error *err)
{
    char all[DL_HINT];
    if (!s->kind)
        return dl_fail(err, DL_KEY, dl_json_member(s->doc, "schema", s->arena).where,
                       "must be that of a file that can be shown: %s",
                       dl_joined(dl_file_kind_names, DL_N_FILE_KINDS, all));
    if (may_be(s->kind, q)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--kind", "%s is a %s", s->doc.where, s->kind->name);
}

/* The file and what follows from it and from those it refers to. */
static struct dl_asked what_was_asked(const struct dl_shown *s, const json_t *answer)
{
    struct dl_asked asked = {.command = "show"};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_fingerprint_json(&f, s->kind->name, s->doc.value);
    dl_fingerprint_json(&f, "derived", json_object_get(answer, "derived"));
    dl_fingerprint_end(&f, asked.sha256);
    return asked;
}

static enum dl_status tell(const struct request *q, const struct dl_shown *s, struct dl_error *err)
{
    if (q->json) {
        json_t *const answer = dl_shown_json(s);
        const struct dl_asked asked = what_was_asked(s, answer);
        if (dl_write_json(q->json, dl_answer(&asked, answer), err)) return err->status;
    }
    if (dl_tells_text(q->json)) dl_shown_text(s);
    return DL_OK;
}

static enum dl_status show(const struct request *q, const char *name, struct dl_arena *arena, struct dl_error *err)
{
    const char *path;
    struct dl_shown s = {.arena = arena};
    if (find(q, name, arena, &path, err) || dl_json_load(path, arena, &s.doc, err)) return err->status;
    const char *const like = json_string_value(json_object_get(s.doc.value, "like"));
    s.kind = dl_file_kind_of(s.doc);
    s.name = dl_document_name(s.doc, arena);
    s.like = like ? dl_arena_string(arena, like) : NULL;
    if (!check_kind(q, &s, err) &&
        !(s.kind->folder && dl_json_inherit(s.doc, s.kind->folder, s.kind->name, arena, err)) &&
        !dl_shown_derive(&s, err)) {
        dl_shown_list_facts(&s);
        tell(q, &s, err);
    }
    dl_free(s.facts);
    json_decref(s.doc.value);
    return err->status;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts names = {0};
    struct dl_arena *const arena = dl_arena_new();
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, &names, err) && names.n != 1)
        dl_fail(err, DL_SYNTAX, "show", "needs one name or file, got %zu", names.n);
    if (!err->status) show(&q, names.items[0], arena, err);
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_show = {
    .name = "show",
    .doc = "a data file as it is understood: facts with their sources, what it refers to, what follows",
    .usage = "show NAME|FILE [--kind KIND] [--json FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
