/* check_command.c - read and verify files, run nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/deprecated.h"
#include "sim/app/file_kinds.h"
#include "sim/core/inherit.h"
#include "sim/cost/measured.h"
#include "sim/engine/scenario.h"
#include "sim/report/asked.h"
#include "sim/report/assumptions.h"
#include "sim/report/discrepancy.h"
#include "sim/report/units.h"
#include "sim/session/whole_job.h"
#include "sim/study/row_columns.h"
#include "sim/study/sweep_point.h"
#include "sim/study/training_row.h"
#include "strategies/job.h"

static enum dl_status check_system(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_topology *t = NULL;
    char devices[DL_QUANTITY], links[DL_QUANTITY];
    if (dl_topology_read(doc, arena, &t, err)) return err->status;
    *said = dl_arena_format(arena, "a system of %s devices and %s links", dl_format_count(t->n_devices, devices),
                            dl_format_count(t->first_storage_link, links));
    dl_topology_free(t);
    return DL_OK;
}

static enum dl_status check_transport(struct dl_json doc, struct dl_arena *arena, const char **said,
                                      struct dl_error *err)
{
    const struct dl_topology nowhere = {.arena = arena}; /* no links: whatever is said of them is only read */
    struct dl_transport transport;
    if (dl_transport_read(doc, &nowhere, 1, arena, &transport, err) || dl_check_algorithms(doc, &transport, arena, err))
        return err->status;
    *said = dl_arena_format(arena, "a transport with %zu protocol%s", transport.n_protocols,
                            transport.n_protocols == 1 ? "" : "s");
    return DL_OK;
}

static enum dl_status check_device(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_device device;
    char memory[DL_QUANTITY];
    if (dl_device_read(doc, arena, &device, err)) return err->status;
    const char *const libraries = dl_device_libraries(&device);
    *said =
        dl_arena_format(arena, "a device with %s of memory, for %s%s%s", dl_format_bytes(device.memory_bytes, memory),
                        dl_device_precisions(&device, arena), *libraries ? ", with times of " : "", libraries);
    return DL_OK;
}

/* Whether the times are possible is for the device to say that names the file. */
static enum dl_status check_kernels(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    const char *libraries;
    if (dl_kernels_check(doc, arena, &libraries, err)) return err->status;
    *said = dl_arena_format(arena, "measured kernels for a device, with times of %s", libraries);
    return DL_OK;
}

static enum dl_status check_workload(struct dl_json doc, struct dl_arena *arena, const char **said,
                                     struct dl_error *err)
{
    struct dl_model model;
    char parameters[DL_QUANTITY];
    if (dl_workload_read(doc, 1, (struct dl_model_code){.attention = "flash"}, arena, &model, err)) return err->status;
    *said = dl_arena_format(arena, "a workload of %s parameters in %zu layers",
                            dl_format_count(dl_model_parameters(&model), parameters), model.n_layers);
    return DL_OK;
}

static enum dl_status check_software(struct dl_json doc, struct dl_arena *arena, const char **said,
                                     struct dl_error *err)
{
    struct dl_software software;
    if (dl_software_read(doc, arena, &software, err)) return err->status;
    *said = dl_arena_format(arena, "a software profile with %s attention", software.code.attention);
    return DL_OK;
}

static enum dl_status check_strategy(struct dl_json doc, struct dl_arena *arena, const char **said,
                                     struct dl_error *err)
{
    const struct dl_session_request nothing = {0};
    struct dl_whole_job whole;
    const struct dl_job *const job = &whole.job;
    char devices[DL_QUANTITY], micros[DL_QUANTITY];
    if (dl_whole_job_read(doc, &nothing, arena, &whole, err)) return err->status;
    *said = dl_arena_format(arena, "a strategy for %s on %s device%s with %s micro-batch%s", job->workload,
                            dl_format_count(job->n_devices, devices), job->n_devices == 1 ? "" : "s",
                            dl_format_count(job->setting.micros, micros), job->setting.micros == 1 ? "" : "es");
    return DL_OK;
}

/* Names are not looked for: the file does not say of which system and strategy they are. */
static enum dl_status check_scenario(struct dl_json doc, struct dl_arena *arena, const char **said,
                                     struct dl_error *err)
{
    struct dl_scenario scenario;
    if (dl_scenario_read(doc, NULL, arena, &scenario, err)) return err->status;
    dl_tell_old_key(&scenario);
    *said =
        dl_arena_format(arena, "a scenario with %zu changes of links, %zu slow replicas or stages and %g %% of jitter",
                        scenario.n_changes, scenario.n_slow, 100 * scenario.jitter_fraction);
    return DL_OK;
}

static enum dl_status find_named(const struct dl_training_row *row, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json place = {.where = row->where};
    const char *path;
    const struct dl_want named[] = {
        {DL_SYSTEMS, "topology", dl_row_input(row, row->topo), NULL, dl_place_of_name(NULL, place, "topo", arena)},
        {DL_SOFTWARE, "software", dl_row_input(row, row->software), NULL,
         dl_place_of_name(NULL, place, "software", arena)},
        {DL_STRATEGIES, "strategy", dl_row_input(row, row->strategy), NULL,
         dl_place_of_name(NULL, place, "strategy", arena)},
        {DL_WORKLOADS, "workload", dl_row_input(row, row->workload), NULL,
         dl_place_of_name(NULL, place, "workload", arena)},
    };
    const size_t told = err->n_told;
    for (size_t i = 0; i < DL_COUNT(named); i++)
        if (named[i].input.name && dl_find_wanted(&named[i], arena, &path, err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

static enum dl_status check_row(const struct dl_training_row *row, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_session_request made = {0};
    struct dl_json strategy = {0};
    struct dl_whole_job job;
    if (find_named(row, arena, err) ||
        dl_training_row_request(row, row->microbatch ? row->microbatch : 1, arena, &made, err))
        return err->status;
    const struct dl_want how = {DL_STRATEGIES, "strategy", made.strategy, "strategy", NULL};
    if (!dl_load_document(&how, &made.set, arena, &strategy, err)) dl_whole_job_read(strategy, &made, arena, &job, err);
    json_decref(strategy.value);
    return err->status;
}

/* Rows that were read are looked at although others were refused. */
static enum dl_status check_rows(const struct dl_training_rows *rows, struct dl_arena *arena, const char **said,
                                 struct dl_error *err)
{
    for (size_t i = 0; dl_go_on(err) && i < rows->n; i++) check_row(&rows->items[i], arena, err);
    if (dl_stop_if_told(err, 0)) return err->status;
    *said = dl_arena_format(arena, "a table of %zu training step%s", rows->n, rows->n == 1 ? "" : "s");
    return DL_OK;
}

static enum dl_status check_steps(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_training_rows rows = {0};
    dl_training_rows_add(doc, arena, &rows, err);
    check_rows(&rows, arena, said, err);
    dl_training_rows_release(&rows);
    return err->status;
}

static enum dl_status check_csv(const char *path, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_training_rows rows = {0};
    dl_training_rows_read(path, arena, &rows, err);
    check_rows(&rows, arena, said, err);
    dl_training_rows_release(&rows);
    return err->status;
}

static enum dl_status check_discrepancy(struct dl_json doc, struct dl_arena *arena, const char **said,
                                        struct dl_error *err)
{
    const struct dl_setup nobody = {.software = "", .system = ""};
    struct dl_discrepancy all;
    if (dl_discrepancy_read(doc, &nobody, arena, &all, err)) return err->status;
    *said =
        dl_arena_format(arena, "errors of the model, %+.1f %%, give or take %.1f, over %lld families of measured steps",
                        100 * expm1(all.bias), 100 * all.spread, (long long)all.families);
    return DL_OK;
}

static enum dl_status check_columns(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_row_columns columns;
    if (dl_row_columns_read(doc, arena, &columns, err)) return err->status;
    *said = dl_arena_format(arena, "what %zu columns of a table are", json_object_size(columns.columns.value));
    return DL_OK;
}

static enum dl_status check_sweep(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err)
{
    struct dl_sweep sweep;
    uint64_t *points = NULL;
    size_t n = 0;
    if (!dl_sweep_read(doc, arena, &sweep, err) && !dl_sweep_check_options(&sweep, err) &&
        !dl_sweep_points(&sweep, &points, &n, err))
        *said = dl_arena_format(arena, "a sweep of %zu point%s", n, n == 1 ? "" : "s");
    dl_sweep_close(&sweep);
    dl_free(points);
    return err->status;
}

static const struct {
    const char *schema;
    enum dl_status (*check)(struct dl_json doc, struct dl_arena *arena, const char **said, struct dl_error *err);
    bool says_facts; /* about the world; others say what someone wants */
} kinds[] = {
    {"dlsim/system/1", check_system, true},      {"dlsim/transport/1", check_transport, true},
    {"dlsim/device/1", check_device, true},      {"dlsim/workload/1", check_workload, true},
    {"dlsim/strategy/1", check_strategy, false}, {"dlsim/software/1", check_software, true},
    {"dlsim/scenario/1", check_scenario, false}, {"dlsim/steps/1", check_steps, false},
    {"dlsim/columns/1", check_columns, false},   {"dlsim/discrepancy/1", check_discrepancy, true},
    {"dlsim/sweep/1", check_sweep, false},       {"dlsim/kernels/1", check_kernels, false},
};

static size_t n_assumed(struct dl_json doc, struct dl_arena *arena)
{
    struct dl_assumptions assumptions = {0};
    dl_assumptions_add(&assumptions, doc, arena);
    const size_t n = assumptions.n;
    dl_assumptions_release(&assumptions);
    return n;
}

/* A file, and what was found. */
struct checked {
    const char *path, *schema; /* NULL: it has none */
    const char *said;          /* what it is; NULL: something is wrong with it */
    json_t *errors;
    struct dl_arena *arena;
    struct dl_fingerprint *inputs;
};

static enum dl_status check(struct dl_json doc, struct checked *c, struct dl_error *err)
{
    const struct dl_json schema = dl_json_member(doc, "schema", c->arena);
    const char *const name = json_is_string(schema.value) ? json_string_value(schema.value) : "";
    const struct dl_file_kind *const file = dl_file_kind_of(doc); /* NULL: one that is like no other */
    const char *all = "";
    for (size_t i = 0; i < DL_COUNT(kinds); i++) {
        all = dl_arena_format(c->arena, "%s%s%s", all, i ? ", " : "", kinds[i].schema);
        if (strcmp(name, kinds[i].schema)) continue;
        c->schema = kinds[i].schema;
        if ((file && file->folder && dl_json_inherit(doc, file->folder, file->name, c->arena, err)) ||
            kinds[i].check(doc, c->arena, &c->said, err))
            return err->status;
        if (kinds[i].says_facts)
            c->said = dl_arena_format(c->arena, "%s; %zu assumed figures", c->said, n_assumed(doc, c->arena));
        return DL_OK;
    }
    return dl_fail(err, DL_KEY, schema.where, "must be one of %s", all);
}

static bool is_csv(const char *path)
{
    const char *const ending = strrchr(path, '.');
    return ending && strcmp(ending, ".csv") == 0;
}

static void check_file(struct checked *c, struct dl_error *err)
{
    struct dl_json doc = {0};
    struct dl_error unreadable = {0};
    if (is_csv(c->path))
        check_csv(c->path, c->arena, &c->said, err);
    else if (!dl_json_load(c->path, c->arena, &doc, err))
        check(doc, c, err);
    if (doc.value)
        dl_fingerprint_json(c->inputs, "file", doc.value); /* with what it is like */
    else
        dl_fingerprint_file(c->inputs, "file", c->path, &unreadable);
    json_decref(doc.value);
}

/* null: not UTF-8, as a name of a file may be. */
static json_t *text_json(const char *text)
{
    json_t *const out = text ? json_string(text) : NULL;
    return out ? out : json_null();
}

/* Many rows may name one file: what is wrong with it is told once. */
static bool is_told_of_other(const struct checked *c, const char *text)
{
    const char *const name = dl_base_name(c->path);
    if (strncmp(text, name, strlen(name)) == 0) return false;
    for (size_t i = 0; i < json_array_size(c->errors); i++) {
        const char *const before = json_string_value(json_array_get(c->errors, i));
        if (before && strcmp(before, text) == 0) return true;
    }
    return false;
}

static void note(void *user, const char *text)
{
    struct checked *const c = user;
    if (is_told_of_other(c, text)) return;
    json_array_append_new(c->errors, text_json(text));
    fprintf(stderr, "dlsim: %s\n", text);
}

/* One file with all its errors, each on a line. */
static json_t *checked_json(const char *path, bool tells_text, struct dl_fingerprint *inputs)
{
    struct checked c = {.path = path, .errors = json_array(), .arena = dl_arena_new(), .inputs = inputs};
    struct dl_error found = {.tell = note, .user = &c};
    check_file(&c, &found);
    dl_go_on(&found); /* which tells the last */
    if (c.said && tells_text) printf("%s: %s\n", dl_base_name(path), c.said);
    json_t *const out = json_pack("{s:o, s:s?, s:o, s:o}", "file", text_json(path), "kind", c.schema, "says",
                                  text_json(c.said), "errors", c.errors);
    dl_arena_free(c.arena);
    return out;
}

struct request {
    const char *json;
};

static const struct dl_option options[] = {
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "what was found, for programs too; - is standard output, in place of the text"},
};

static int check_all(const struct request *q, const struct dl_texts *files, struct dl_error *err)
{
    struct dl_asked asked = {.command = "check"};
    struct dl_fingerprint inputs;
    json_t *const checked = json_array();
    size_t n_wrong = 0;
    dl_fingerprint_begin(&inputs);
    for (size_t i = 0; i < files->n; i++) {
        json_t *const one = checked_json(files->items[i], dl_tells_text(q->json), &inputs);
        n_wrong += json_array_size(json_object_get(one, "errors"));
        json_array_append_new(checked, one);
    }
    dl_fingerprint_end(&inputs, asked.sha256);
    if (q->json) dl_write_json(q->json, dl_answer(&asked, json_pack("{s:O}", "checked", checked)), err);
    json_decref(checked);
    return n_wrong ? 2 : 0;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts files = {0};
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, &files, err)) return 2;
    if (!files.n) dl_fail(err, DL_SYNTAX, "check", "needs at least one file");
    return files.n ? check_all(&q, &files, err) : 2;
}

const struct dl_command dl_command_check = {
    .name = "check",
    .doc = "all that is wrong with files, JSON or CSV; nothing is run",
    .usage = "check FILE... [--json FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
