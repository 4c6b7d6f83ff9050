/* calibrate_command.c - a user's own measurements into a system and a transport file. */
#define _POSIX_C_SOURCE 200809L /* gmtime_r */
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sim/app/calibrate_parts.h"
#include "sim/app/commands.h"

static const char *const ops[] = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast",
                                  "reduce",    "gather",    "scatter",       "sendrecv", NULL};
static const char *const pairs[] = {"node", "network", NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct dl_calibrate_request, topo), true, 0, 0, NULL,
     "the machine: a name of `dlsim list topologies`, or a file"},
    {"transport", DL_OPT_TEXT, offsetof(struct dl_calibrate_request, transport), false, 0, 0, NULL,
     "the library that is calibrated; the machine's if absent"},
    {"op", DL_OPT_CHOICE, offsetof(struct dl_calibrate_request, op), false, 0, 0, ops,
     "what was measured, where the files do not say"},
    {"devices", DL_OPT_COUNT, offsetof(struct dl_calibrate_request, devices), false, 2, 2147483647.0, NULL,
     "ranks of the measured runs, where the files do not say"},
    {"pair", DL_OPT_CHOICE, offsetof(struct dl_calibrate_request, pair), false, 0, 0, pairs,
     "whether the two ranks of a ping-pong were on one node or on two"},
    {"write-system", DL_OPT_OUTPUT, offsetof(struct dl_calibrate_request, write_system), false, 0, 0, NULL,
     "the machine with the links that were found"},
    {"write-transport", DL_OPT_OUTPUT, offsetof(struct dl_calibrate_request, write_transport), false, 0, 0, NULL,
     "the transport with the constants that were found"},
    {"json", DL_OPT_OUTPUT, offsetof(struct dl_calibrate_request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"set", DL_OPT_TEXTS, offsetof(struct dl_calibrate_request, set), false, 0, 0, NULL,
     "override a value of the machine or its transport: topo.nodes=4, transport.reduction_s_per_byte=0; may be "
     "repeated"},
};

/* ---- inputs ---- */

static const char *date_of(const char *path, struct dl_arena *arena)
{
    struct stat info;
    struct tm day;
    if (stat(path, &info) || !gmtime_r(&info.st_mtime, &day)) return "?";
    return dl_arena_format(arena, "%d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

static bool is_collective(const struct dl_timings *t) { return t->timed == DL_TIMED_COLLECTIVE; }

static enum dl_status load_tables(struct dl_calibrating *r, struct dl_error *err)
{
    const struct dl_texts *const files = &r->request.files;
    if (!files->n) return dl_fail(err, DL_SYNTAX, "calibrate", "needs at least one file of measured times");
    r->source = "";
    for (size_t i = 0; i < files->n; i++) {
        struct dl_timings *const t = &r->tables[r->n_tables++];
        if (dl_timings_load(files->items[i], r->arena, t, err)) return err->status;
        if (is_collective(t) != is_collective(r->tables))
            return dl_fail(err, DL_IMPOSSIBLE, t->name,
                           "is of %s, others are not: messages and collectives go one after the other", t->format);
        r->source = dl_arena_format(r->arena, "%s%s%s (%s, %s)", r->source, i ? ", " : "", t->name, t->format,
                                    date_of(files->items[i], r->arena));
    }
    return DL_OK;
}

static enum dl_status open_machine(struct dl_calibrating *r, struct dl_error *err)
{
    const struct dl_calibrate_request *const q = &r->request;
    if (dl_only_machine_set(&q->set, err) ||
        dl_machine_open((struct dl_input){.name = q->topo}, &q->set, r->arena, &r->machine, err))
        return err->status;
    return dl_machine_use_transport(&r->machine, q->transport, 1, &q->set, r->arena, err);
}

/* The documents of the machine are still as they were read. */
static enum dl_status note_what_was_asked(struct dl_calibrating *r, struct dl_error *err)
{
    const struct dl_calibrate_request *const q = &r->request;
    struct dl_fingerprint f;
    r->asked = (struct dl_asked){.command = "calibrate",
                                 .topology = r->machine.topology->name,
                                 .transport = r->machine.transport.name,
                                 .n_devices = (uint32_t)q->devices,
                                 .overrides = q->set.items,
                                 .n_overrides = q->set.n};
    dl_fingerprint_begin(&f);
    dl_machine_fingerprint(&r->machine, &f);
    dl_fingerprint_text(&f, "op", q->op);
    dl_fingerprint_text(&f, "pair", q->pair);
    dl_fingerprint_number(&f, "devices", (double)q->devices);
    for (size_t i = 0; i < q->files.n && !err->status; i++) dl_fingerprint_file(&f, "times", q->files.items[i], err);
    dl_fingerprint_end(&f, r->asked.sha256);
    return err->status;
}

/* ---- for both sorts of tables ---- */

void dl_calibrate_add(struct dl_calibrating *r, struct dl_timed_run run)
{
    DL_GROW(r->runs, r->n_runs, r->capacity);
    r->runs[r->n_runs++] = run;
}

/* ---- files ---- */

static enum dl_status write(const struct dl_calibrating *r, json_t *doc, const char *path, struct dl_error *err)
{
    const char *const before = json_string_value(json_object_get(doc, "source"));
    json_object_set_new(doc, "source",
                        json_sprintf("%s%scalibrated with %s", before ? before : "", before ? "; " : "", r->source));
    return dl_write_json(path, json_incref(doc), err);
}

/* Names of files in a document are relative to it: in another folder they must be others. */
static void rename_file(const struct dl_calibrating *r, json_t *object, const struct dl_sought *said)
{
    const char *path;
    struct dl_error absent = {0};
    if (!said->name || dl_find_sought(said, r->arena, &path, &absent) || dl_is_shipped(path, said->folder, r->arena))
        return;
    json_object_set_new(object, said->what, json_string(dl_name_from(r->request.write_system, path, r->arena)));
}

static void rename_files(const struct dl_calibrating *r)
{
    const struct dl_json doc = r->machine.system_doc;
    const struct dl_topology *const t = r->machine.topology;
    json_t *const node = json_object_get(doc.value, "node");
    rename_file(r, node,
                &(struct dl_sought){.folder = DL_DEVICES, .what = "device", .name = t->node.device, .file = doc.file});
    rename_file(
        r, doc.value,
        &(struct dl_sought){.folder = DL_TRANSPORTS, .what = "transport", .name = t->transport, .file = doc.file});
}

static enum dl_status write_files(const struct dl_calibrating *r, struct dl_error *err)
{
    const struct dl_calibrate_request *const q = &r->request;
    json_t *const system = r->machine.system_doc.value;
    if (q->write_transport) write(r, r->machine.transport_doc.value, q->write_transport, err);
    if (!q->write_system || err->status) return err->status;
    rename_files(r);
    if (q->write_transport && dl_is_regular(q->write_transport))
        json_object_set_new(system, "transport",
                            json_string(dl_name_from(q->write_system, q->write_transport, r->arena)));
    return write(r, system, q->write_system, err);
}

static json_t *answer_json(const struct dl_calibrating *r)
{
    return is_collective(r->tables) ? dl_calibration_json(&r->collectives)
                                    : dl_message_calibration_json(&r->messages, &r->collectives);
}

static enum dl_status tell(const struct dl_calibrating *r, struct dl_error *err)
{
    const char *const json = r->request.json;
    if (json && dl_write_json(json, dl_answer(&r->asked, answer_json(r)), err)) return err->status;
    if (!dl_tells_text(json)) return DL_OK;
    if (is_collective(r->tables))
        dl_calibration_text(&r->collectives);
    else
        dl_message_calibration_text(&r->messages, &r->collectives);
    return DL_OK;
}

static enum dl_status calibrate(struct dl_calibrating *r, struct dl_error *err)
{
    return is_collective(r->tables) ? dl_calibrate_groups(r, err) : dl_calibrate_pair(r, err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct dl_calibrating r = {.arena = dl_arena_new()};
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &r.request, &r.request.files, err) &&
        !load_tables(&r, err) && !open_machine(&r, err) && !note_what_was_asked(&r, err) && !calibrate(&r, err) &&
        (r.tells_nothing || !write_files(&r, err)))
        tell(&r, err);
    const int code = r.tells_nothing ? 1 : 0;
    for (size_t i = 0; i < r.n_tables; i++) dl_timings_release(&r.tables[i]);
    dl_free(r.runs);
    dl_machine_close(&r.machine);
    dl_arena_free(r.arena);
    return code;
}

const struct dl_command dl_command_calibrate = {
    .name = "calibrate",
    .doc = "measured times of messages or collectives into a system and a transport file",
    .usage = "calibrate FILE... --topo T [--write-system FILE] [--write-transport FILE] [--json FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
