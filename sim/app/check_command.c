/* check_command.c - read and verify files, run nothing. */
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/inputs.h"
#include "sim/report/assumptions.h"
#include "sim/report/units.h"

static enum dl_status check_system(struct dl_json doc, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_topology *t = NULL;
    char devices[DL_QUANTITY], links[DL_QUANTITY];
    if (dl_topology_read(doc, arena, &t, err)) return err->status;
    printf("%s: a system of %s devices and %s links", doc.where, dl_format_count(t->n_devices, devices),
           dl_format_count((double)t->n_links, links));
    dl_topology_free(t);
    return DL_OK;
}

static enum dl_status check_transport(struct dl_json doc, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_topology nowhere = {.arena = arena}; /* no links: whatever is said of them is only read */
    struct dl_transport transport;
    if (dl_transport_read(doc, &nowhere, 1, arena, &transport, err)) return err->status;
    printf("%s: a transport with %zu protocol%s", doc.where, transport.n_protocols,
           transport.n_protocols == 1 ? "" : "s");
    return DL_OK;
}

static const struct {
    const char *schema;
    enum dl_status (*check)(struct dl_json doc, struct dl_arena *arena, struct dl_error *err);
} kinds[] = {
    {"dlsim/system/1", check_system},
    {"dlsim/transport/1", check_transport},
};

static enum dl_status check(struct dl_json doc, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json schema = dl_json_member(doc, "schema", arena);
    const char *const name = json_is_string(schema.value) ? json_string_value(schema.value) : NULL;
    for (size_t i = 0; name && i < DL_COUNT(kinds); i++)
        if (strcmp(name, kinds[i].schema) == 0) return kinds[i].check(doc, arena, err);
    return dl_fail(err, DL_KEY, schema.where, "must be \"dlsim/system/1\" or \"dlsim/transport/1\"");
}

static enum dl_status check_file(const char *path, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_json doc;
    struct dl_assumptions assumptions = {0};
    if (dl_json_load(path, arena, &doc, err)) return err->status;
    if (!check(doc, arena, err)) {
        dl_assumptions_add(&assumptions, doc, arena);
        printf("; %zu assumed figures\n", assumptions.n);
    }
    dl_assumptions_release(&assumptions);
    json_decref(doc.value);
    return err->status;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct dl_texts files = {0};
    struct dl_arena *const arena = dl_arena_new();
    dl_read_options(argc, argv, NULL, 0, NULL, &files, err);
    if (!err->status && !files.n) dl_fail(err, DL_SYNTAX, "check", "needs at least one file");
    for (size_t i = 0; i < files.n && !err->status; i++) check_file(files.items[i], arena, err);
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_check = {
    .name = "check",
    .doc = "read and verify files, run nothing",
    .usage = "check FILE...",
    .run = run,
};
