#include "sim/app/lists.h"

#include <stdio.h>
#include <string.h>

#include "sim/app/inputs.h"
#include "sim/collective/collective.h"
#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "sim/cost/measured.h"
#include "sim/cost/power.h"
#include "sim/engine/engine.h"
#include "sim/report/units.h"
#include "strategies/stack.h"

static void print_range(const struct dl_field *f)
{
    switch (f->type) {
    case DL_INT:
    case DL_NUMBER:
    case DL_INT_LIST: printf(" [%.10g, %.10g]", f->min, f->max); break;
    case DL_BOOL: printf(" true|false"); break;
    case DL_CHOICE:
        for (size_t i = 0; f->choices[i]; i++) printf("%s%s", i ? "|" : " ", f->choices[i]);
        break;
    default: break;
    }
}

static void print_fields(const struct dl_field *fields, size_t n_fields)
{
    for (size_t i = 0; i < n_fields; i++) {
        printf("      %s%s", fields[i].key, fields[i].optional ? " (optional)" : "");
        print_range(&fields[i]);
        printf(": %s\n", fields[i].doc ? fields[i].doc : "");
    }
}

/* An entry of a table: its name, and the keys that a file may give it. */
static void print_kind(const char *name, const char *doc, const struct dl_field *fields, size_t n_fields)
{
    printf("    %-20s %s\n", name, doc);
    print_fields(fields, n_fields);
}

/* As many words of it as fit. */
static void print_source(const char *name, const char *source)
{
    enum { widest = 120 };
    size_t length = strlen(source);
    const bool is_cut = length > widest;
    for (length = is_cut ? widest : length; is_cut && length && source[length] != ' ';) length--;
    printf("  %-20s %.*s%s\n", name, (int)length, source, is_cut ? " ..." : "");
}

/* What is most asked about a file, in front of its source; "": nothing. */
typedef const char *(*about_fn)(struct dl_json doc, struct dl_arena *arena);

static const char *about_nothing(struct dl_json doc, struct dl_arena *arena)
{
    (void)doc, (void)arena;
    return "";
}

static const char *about_system(struct dl_json doc, struct dl_arena *arena)
{
    const json_t *const node = json_object_get(doc.value, "node"), *const device = json_object_get(node, "device");
    const double n_nodes = json_number_value(json_object_get(doc.value, "nodes")),
                 n_devices = json_number_value(json_object_get(node, "devices"));
    char nodes[DL_QUANTITY];
    if (!json_is_string(device)) return "";
    return dl_arena_format(arena, "%s x %.0f %s. ", dl_format_count(n_nodes, nodes), n_devices,
                           json_string_value(device));
}

static const char *about_workload(struct dl_json doc, struct dl_arena *arena)
{
    struct dl_model model;
    struct dl_error err = {0};
    char parameters[DL_QUANTITY];
    if (dl_workload_read(doc, 1, (struct dl_model_code){.attention = "flash"}, arena, &model, &err)) return "";
    return dl_arena_format(arena, "%s parameters. ", dl_format_parameters(dl_model_parameters(&model), parameters));
}

static void print_files(const char *folder, about_fn about)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder(folder, arena, &names);
    for (size_t i = 0; i < n; i++) {
        struct dl_json doc;
        struct dl_error err = {0};
        const char *const path = dl_arena_format(arena, "%s/%s.json", dl_shipped(folder, arena), names[i]);
        if (dl_json_load(path, arena, &doc, &err)) continue;
        dl_json_inherit(doc, folder, "file", arena, &err);
        const json_t *const source = json_object_get(doc.value, "source");
        print_source(names[i], dl_arena_format(arena, "%s%s", about(doc, arena),
                                               json_is_string(source) ? json_string_value(source) : ""));
        json_decref(doc.value);
    }
    dl_arena_free(arena);
}

void dl_list_topologies(void)
{
    print_files(DL_SYSTEMS, about_system);
    puts("  kinds of networks");
    for (size_t i = 0; i < dl_network_count(); i++) {
        const struct dl_network_kind *const k = dl_network_get(i);
        print_kind(k->name, k->doc, k->fields, k->n_fields);
    }
    puts("  kinds of parts of a node");
    for (size_t i = 0; i < dl_interior_count(); i++) {
        const struct dl_interior *const k = dl_interior_get(i);
        print_kind(k->name, k->doc, k->fields, k->n_fields);
    }
}

void dl_list_devices(void)
{
    print_files(DL_DEVICES, about_nothing);
    puts("  models of devices");
    for (size_t i = 0; i < dl_device_model_count(); i++) {
        const struct dl_device_model *const m = dl_device_model_get(i);
        print_kind(m->name, m->doc, m->fields, m->n_fields);
    }
    size_t n_fields;
    const struct dl_field *const fields = dl_power_fields(&n_fields);
    puts("  keys of \"power\"");
    print_fields(fields, n_fields);
    puts("  keys of \"interpolation\"");
    const struct dl_field *const constants = dl_interpolation_fields(&n_fields);
    print_fields(constants, n_fields);
}

void dl_list_transports(void) { print_files(DL_TRANSPORTS, about_nothing); }

void dl_list_workloads(void)
{
    print_files(DL_WORKLOADS, about_workload);
    puts("  kinds of workloads");
    for (size_t i = 0; i < dl_workload_count(); i++) {
        const struct dl_workload_kind *const k = dl_workload_get(i);
        print_kind(k->name, k->doc, k->fields, k->n_fields);
    }
}

void dl_list_strategies(void)
{
    size_t n_fields;
    const struct dl_field *const fields = dl_job_fields(&n_fields);
    print_files(DL_STRATEGIES, about_nothing);
    puts("  keys of a strategy file");
    print_fields(fields, n_fields);
    puts("  entries of a stack");
    for (size_t i = 0; i < dl_strategy_count(); i++) {
        const struct dl_strategy *const s = dl_strategy_get(i);
        print_kind(s->name, s->doc, s->fields, s->n_fields);
    }
}

void dl_list_schedules(void)
{
    for (size_t i = 0; i < dl_schedule_count(); i++) {
        const struct dl_schedule_kind *const k = dl_schedule_get(i);
        printf("  %-20s %s\n    chunks %u", k->name, k->doc, k->min_chunks);
        if (k->max_chunks == UINT32_MAX)
            puts(" or more");
        else
            printf(k->max_chunks > k->min_chunks ? " to %u\n" : "\n", k->max_chunks);
    }
}

void dl_list_software(void)
{
    static const struct {
        const char *what;
        const struct dl_field *(*fields)(size_t *n_fields);
    } parts[] = {{"a software file", dl_software_fields},
                 {"an entry of its kernels", dl_kernel_rule_fields},
                 {"an entry of its operands", dl_operand_rule_fields}};
    print_files(DL_SOFTWARE, about_nothing);
    for (size_t i = 0; i < DL_COUNT(parts); i++) {
        size_t n_fields;
        const struct dl_field *const fields = parts[i].fields(&n_fields);
        printf("  keys of %s\n", parts[i].what);
        print_fields(fields, n_fields);
    }
}

void dl_list_collectives(void)
{
    for (int op = 0; op < DL_N_OPS; op++) {
        printf("  %s\n", dl_op_name((enum dl_op)op));
        for (size_t i = 0; i < dl_algorithm_count(); i++)
            if (dl_algorithm_get(i)->op == (enum dl_op)op)
                printf("    %-26s %s\n", dl_algorithm_get(i)->name, dl_algorithm_get(i)->doc);
    }
}

void dl_list_engines(void)
{
    for (size_t i = 0; i < dl_engine_count(); i++)
        printf("  %-20s %s\n", dl_engine_get(i)->name, dl_engine_get(i)->doc);
}
