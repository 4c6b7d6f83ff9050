#include "sim/app/file_kinds.h"

#include <string.h>

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "sim/report/units.h"
#include "sim/session/inputs.h"
#include "workloads/workload.h"

static const char *about_system(struct dl_json doc, struct dl_arena *arena)
{
    const json_t *const node = json_object_get(doc.value, "node"), *const device = json_object_get(node, "device");
    const double n_nodes = json_number_value(json_object_get(doc.value, "nodes")),
                 n_devices = json_number_value(json_object_get(node, "devices"));
    char nodes[DL_QUANTITY];
    if (!json_is_string(device)) return "";
    return dl_arena_format(arena, "%s x %.0f %s", dl_format_count(n_nodes, nodes), n_devices,
                           json_string_value(device));
}

static const char *about_workload(struct dl_json doc, struct dl_arena *arena)
{
    struct dl_model model;
    struct dl_error err = {0};
    char parameters[DL_QUANTITY];
    if (dl_workload_read(doc, 1, (struct dl_model_code){.attention = "flash"}, arena, &model, &err)) return "";
    return dl_arena_format(arena, "%s parameters", dl_format_parameters(dl_model_parameters(&model), parameters));
}

const char *const dl_file_kind_names[] = {
    [DL_FILE_TOPOLOGY] = "topology", [DL_FILE_DEVICE] = "device",     [DL_FILE_TRANSPORT] = "transport",
    [DL_FILE_WORKLOAD] = "workload", [DL_FILE_STRATEGY] = "strategy", [DL_FILE_SOFTWARE] = "software",
    [DL_FILE_SCENARIO] = "scenario", [DL_N_FILE_KINDS] = NULL,
};

static const struct dl_file_kind kinds[] = {
    {DL_FILE_TOPOLOGY, "topology", "topologies", "dlsim/system/1", DL_SYSTEMS, about_system},
    {DL_FILE_DEVICE, "device", "devices", "dlsim/device/1", DL_DEVICES, NULL},
    {DL_FILE_TRANSPORT, "transport", "transports", "dlsim/transport/1", DL_TRANSPORTS, NULL},
    {DL_FILE_WORKLOAD, "workload", "workloads", "dlsim/workload/1", DL_WORKLOADS, about_workload},
    {DL_FILE_STRATEGY, "strategy", "strategies", "dlsim/strategy/1", DL_STRATEGIES, NULL},
    {DL_FILE_SOFTWARE, "software", "software", "dlsim/software/1", DL_SOFTWARE, NULL},
    {DL_FILE_SCENARIO, "scenario", "scenarios", "dlsim/scenario/1", NULL, NULL},
};

const struct dl_file_kind *dl_file_kind_get(enum dl_file_kind_index index) { return &kinds[index]; }

const struct dl_file_kind *dl_file_kind_of(struct dl_json doc)
{
    const char *const schema = json_string_value(json_object_get(doc.value, "schema"));
    for (size_t i = 0; schema && i < DL_COUNT(kinds); i++)
        if (strcmp(kinds[i].schema, schema) == 0) return &kinds[i];
    return NULL;
}

const char *dl_file_line(const struct dl_file_kind *kind, struct dl_json doc, struct dl_arena *arena)
{
    const char *const about = kind->about ? kind->about(doc, arena) : "";
    const char *const source = json_string_value(json_object_get(doc.value, "source"));
    return dl_arena_format(arena, "%s%s%s", about, *about && source ? ". " : "", source ? source : "");
}

void dl_each_shipped(const struct dl_file_kind *kind, struct dl_arena *arena,
                     void (*visit)(void *user, const struct dl_file_kind *kind, struct dl_json doc, const char *name),
                     void *user)
{
    const char **names;
    const size_t n = kind->folder ? dl_list_folder(kind->folder, arena, &names) : 0;
    for (size_t i = 0; i < n; i++) {
        struct dl_json doc;
        struct dl_error err = {0};
        const char *const path = dl_arena_format(arena, "%s/%s.json", dl_shipped(kind->folder, arena), names[i]);
        if (dl_json_load(path, arena, &doc, &err)) continue;
        dl_json_inherit(doc, kind->folder, kind->name, arena, &err);
        visit(user, kind, doc, names[i]);
        json_decref(doc.value);
    }
}
