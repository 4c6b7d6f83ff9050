/* import_command.c - a file of another tool as a workload or a strategy file. */
#include <string.h>

#include "sim/app/commands.h"
#include "sim/core/files.h"
#include "sim/import/import.h"
#include "sim/report/asked.h"
#include "sim/report/units.h"

enum { max_bytes = 16 << 20 }; /* as of JSON files */

struct request {
    const char *format, *out, *workload, *workload_out, *json;
};

static const struct dl_option options[] = {
    {"format", DL_OPT_CHOICE, offsetof(struct request, format), false, 0, 0, dl_import_format_names,
     "what the file is; found out from its content if absent"},
    {"out", DL_OPT_OUTPUT, offsetof(struct request, out), false, 0, 0, NULL,
     "where the workload or strategy NAME.json goes; standard output if absent"},
    {"workload", DL_OPT_TEXT, offsetof(struct request, workload), false, 0, 0, NULL,
     "the model that the strategy trains, of a file that describes none: a name of `dlsim list workloads`, or a file"},
    {"workload-out", DL_OPT_OUTPUT, offsetof(struct request, workload_out), false, 0, 0, NULL,
     "where the workload goes, of a file that has both; beside --out, as NAME-workload.json, if absent"},
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the file that was made"},
};

/* ---- what has no counterpart ---- */

static void tell_what_matters(const struct dl_imported *i)
{
    for (size_t k = 0; k < i->n_left_out; k++) {
        const struct dl_left_out *const left = &i->left_out[k];
        if (left->matters)
            fprintf(stderr, "  differs: %s%s%s: %s\n", left->key, *left->value ? " " : "", left->value, left->why);
    }
}

static bool is_alike(const struct dl_left_out *a, const struct dl_left_out *b)
{
    return !a->matters && !b->matters && strcmp(a->why, b->why) == 0;
}

/* Keys with one reason are on one line, where the first of them is. */
static void tell_what_does_not(const struct dl_imported *i)
{
    const struct dl_left_out *const end = i->left_out + i->n_left_out;
    for (const struct dl_left_out *left = i->left_out; left < end; left++) {
        const struct dl_left_out *first = i->left_out;
        while (first < left && !is_alike(first, left)) first++;
        if (left->matters || first < left) continue;
        fprintf(stderr, "  left out:");
        for (const struct dl_left_out *other = left; other < end; other++)
            if (is_alike(other, left))
                fprintf(stderr, "%s %s%s%s", other == left ? "" : ",", other->key, *other->value ? " " : "",
                        other->value);
        fprintf(stderr, ": %s\n", left->why);
    }
}

static void tell(const struct request *q, const char *where, const struct dl_imported *i)
{
    char parameters[DL_QUANTITY];
    fprintf(stderr, "%s: %s, as a %s", where, i->what, i->strategy ? "strategy" : "workload");
    if (i->workload)
        fprintf(stderr, "%s of %s parameters", i->strategy ? " and a workload" : "",
                dl_format_parameters(i->parameters, parameters));
    fputc('\n', stderr);
    tell_what_matters(i);
    tell_what_does_not(i);
    if (i->workload && i->strategy && !q->workload_out && !q->json)
        fputs("  not written: the workload; --out FILE or --workload-out FILE writes it\n", stderr);
    if (i->strategy && !i->workload && !q->workload)
        fputs("  not in the file: the model; --workload NAME says it, and a strategy must\n", stderr);
    if (i->software && !q->out && !q->json)
        fputs("  not written: the software that the flags ask for; --out FILE writes it\n", stderr);
}

/* ---- files ---- */

static json_t *left_out_json(const struct dl_imported *i)
{
    json_t *const list = json_array();
    for (size_t k = 0; k < i->n_left_out; k++) {
        const struct dl_left_out *const left = &i->left_out[k];
        json_array_append_new(list, json_pack("{ss ss ss sb}", "key", left->key, "value", left->value, "why", left->why,
                                              "matters", left->matters));
    }
    return list;
}

static json_t *or_null(json_t *value) { return value ? json_incref(value) : json_null(); }

static enum dl_status write_answer(const struct request *q, const struct dl_foreign *file,
                                   const struct dl_import_format *format, const struct dl_imported *i,
                                   struct dl_error *err)
{
    struct dl_asked asked = {.command = "import"};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_fingerprint_text(&f, "file", file->text);
    dl_fingerprint_text(&f, "format", format->name);
    dl_fingerprint_end(&f, asked.sha256);
    json_t *const answer =
        json_pack("{ss ss so so so so so}", "format", format->name, "says", i->what, "parameters",
                  i->workload ? json_real(i->parameters) : json_null(), "workload", or_null(i->workload), "strategy",
                  or_null(i->strategy), "software", or_null(i->software), "left_out", left_out_json(i));
    return dl_write_json(q->json, dl_answer(&asked, answer), err);
}

/* NAME-workload.json beside NAME.json. */
static const char *beside(const char *out, const char *what, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s-%s.json", dl_without_json(out, arena), what);
}

/* What a strategy names goes to a file of its own; names in it are relative to it. */
static enum dl_status write_named(const struct request *q, const struct dl_imported *i, const char *key,
                                  json_t *document, const char *path, struct dl_arena *arena, struct dl_error *err)
{
    if (dl_write_json(path, json_incref(document), err)) return err->status;
    json_object_set_new(i->strategy, key, json_string(dl_name_from(q->out ? q->out : "-", path, arena)));
    return DL_OK;
}

static enum dl_status write_strategy(struct request *q, const struct dl_imported *i, struct dl_arena *arena,
                                     struct dl_error *err)
{
    const bool to_file = q->out && dl_tells_text(q->out);
    if (i->workload && !q->workload_out && to_file) q->workload_out = beside(q->out, "workload", arena);
    if (q->workload_out && write_named(q, i, "workload", i->workload, q->workload_out, arena, err)) return err->status;
    if (i->software && to_file &&
        write_named(q, i, "software", i->software, beside(q->out, "software", arena), arena, err))
        return err->status;
    if (!q->out && !dl_tells_text(q->json)) return DL_OK;
    return dl_write_json(q->out ? q->out : "-", json_incref(i->strategy), err);
}

static enum dl_status write_workload(const struct request *q, const struct dl_imported *i, struct dl_error *err)
{
    if (q->workload_out && dl_write_json(q->workload_out, json_incref(i->workload), err)) return err->status;
    if (!q->out && (q->workload_out || !dl_tells_text(q->json))) return DL_OK;
    return dl_write_json(q->out ? q->out : "-", json_incref(i->workload), err);
}

/* As the command line names it, so that it is found from the strategy. */
static void name_workload(const struct request *q, const struct dl_imported *i, struct dl_arena *arena)
{
    const bool is_path = strchr(q->workload, '/') && q->out;
    json_object_set_new(i->strategy, "workload",
                        json_string(is_path ? dl_name_from(q->out, q->workload, arena) : q->workload));
}

static enum dl_status write_files(struct request *q, const struct dl_imported *i, struct dl_arena *arena,
                                  struct dl_error *err)
{
    if (q->workload_out && !i->workload)
        return dl_fail(err, DL_IMPOSSIBLE, "--workload-out", "the file does not describe a model");
    if (q->workload && (i->workload || !i->strategy))
        return dl_fail(err, DL_IMPOSSIBLE, "--workload", "the file describes the model itself");
    if (q->workload) name_workload(q, i, arena);
    return i->strategy ? write_strategy(q, i, arena, err) : write_workload(q, i, err);
}

/* ---- the command ---- */

static enum dl_status import(struct request *q, const struct dl_foreign *file, struct dl_arena *arena,
                             struct dl_error *err)
{
    struct dl_imported imported;
    const struct dl_import_format *format = NULL;
    if (!dl_import(file, arena, &imported, &format, err) && !write_files(q, &imported, arena, err) &&
        !(q->json && write_answer(q, file, format, &imported, err)))
        tell(q, file->where, &imported);
    dl_imported_release(&imported);
    return err->status;
}

/* All that is refused is told, each on a line. */
static void note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "dlsim: %s\n", text);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts names = {0};
    struct dl_arena *const arena = dl_arena_new();
    char *text = NULL;
    struct dl_foreign file = {0};
    struct dl_error found = {.tell = note};
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, &names, err) && names.n != 1)
        dl_fail(err, DL_SYNTAX, "import", "needs one file, got %zu", names.n);
    if (!err->status && !dl_read_file(names.items[0], max_bytes, &text, &file.bytes, err)) {
        file.text = text;
        file.format = q.format;
        file.where = dl_base_name(names.items[0]);
        import(&q, &file, arena, &found);
        dl_go_on(&found); /* which tells the last */
    }
    dl_free(text);
    dl_arena_free(arena);
    return found.n_told ? 2 : 0;
}

const struct dl_command dl_command_import = {
    .name = "import",
    .doc = "a file of another tool (Hugging Face, Megatron-LM, DeepSpeed, torchtitan) as a workload or a strategy file",
    .usage = "import FILE [--format F] [--out FILE] [--workload W] [--workload-out FILE] [--json FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
