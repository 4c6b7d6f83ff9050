/* lists_json.c - what `dlsim list` knows, for programs: one table of names, whatever list they are of. */
#include <string.h>

#include "sim/app/file_kinds.h"
#include "sim/app/lists.h"
#include "sim/collective/collective.h"
#include "sim/core/files.h"
#include "sim/cost/device.h"
#include "sim/engine/engine.h"
#include "strategies/schedule.h"
#include "strategies/strategy.h"
#include "topologies/network.h"
#include "topologies/node.h"

static json_t *add(json_t *to, const char *list, const char *kind, const char *name, const char *doc)
{
    json_t *const entry = json_pack("{s:s, s:s, s:s, s:s}", "list", list, "kind", kind, "name", name, "doc", doc);
    json_array_append_new(to, entry);
    return entry;
}

/* ---- files ---- */

struct files {
    json_t *to;
    struct dl_arena *arena;
};

static void add_file(void *user, const struct dl_file_kind *kind, struct dl_json doc, const char *name)
{
    const struct files *const f = user;
    json_t *const entry = add(f->to, kind->list, kind->name, name, dl_file_line(kind, doc, f->arena));
    json_object_set_new(entry, "path", json_string(doc.file));
}

/* ---- tables ---- */

static void add_topologies(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_network_count(); i++)
        add(to, list, "network", dl_network_get(i)->name, dl_network_get(i)->doc);
    for (size_t i = 0; i < dl_interior_count(); i++)
        add(to, list, "node part", dl_interior_get(i)->name, dl_interior_get(i)->doc);
}

static void add_devices(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_device_model_count(); i++)
        add(to, list, "device model", dl_device_model_get(i)->name, dl_device_model_get(i)->doc);
}

static void add_workloads(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_workload_count(); i++)
        add(to, list, "workload kind", dl_workload_get(i)->name, dl_workload_get(i)->doc);
}

static void add_strategies(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_strategy_count(); i++)
        add(to, list, "stack entry", dl_strategy_get(i)->name, dl_strategy_get(i)->doc);
}

static void add_schedules(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_schedule_count(); i++)
        add(to, list, "schedule", dl_schedule_get(i)->name, dl_schedule_get(i)->doc);
}

static void add_collectives(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        json_t *const entry = add(to, list, "algorithm", dl_algorithm_get(i)->name, dl_algorithm_get(i)->doc);
        json_object_set_new(entry, "operation", json_string(dl_op_name(dl_algorithm_get(i)->op)));
    }
}

static void add_engines(json_t *to, const char *list)
{
    for (size_t i = 0; i < dl_engine_count(); i++)
        add(to, list, "engine", dl_engine_get(i)->name, dl_engine_get(i)->doc);
}

static const struct {
    const char *list;
    void (*add)(json_t *to, const char *list);
} tables[] = {
    {"topologies", add_topologies}, {"devices", add_devices},     {"workloads", add_workloads},
    {"strategies", add_strategies}, {"schedules", add_schedules}, {"collectives", add_collectives},
    {"engines", add_engines},
};

void dl_list_json(const char *list, json_t *to)
{
    struct dl_arena *const arena = dl_arena_new();
    struct files files = {to, arena};
    for (int i = 0; i < DL_N_FILE_KINDS; i++) {
        const struct dl_file_kind *const kind = dl_file_kind_get((enum dl_file_kind_index)i);
        if (strcmp(kind->list, list) == 0) dl_each_shipped(kind, arena, add_file, &files);
    }
    for (size_t i = 0; i < DL_COUNT(tables); i++)
        if (strcmp(tables[i].list, list) == 0) tables[i].add(to, list);
    dl_arena_free(arena);
}
