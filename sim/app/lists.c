#include "sim/app/lists.h"

#include <stdio.h>
#include <string.h>

#include "sim/app/file_kinds.h"
#include "sim/collective/collective.h"
#include "sim/cost/measured.h"
#include "sim/cost/power.h"
#include "sim/cost/taken.h"
#include "sim/engine/engine.h"
#include "strategies/job.h"
#include "topologies/facility.h"

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

static void print_file(void *user, const struct dl_file_kind *kind, struct dl_json doc, const char *name)
{
    print_source(name, dl_file_line(kind, doc, user));
}

static void print_files(enum dl_file_kind_index kind)
{
    struct dl_arena *const arena = dl_arena_new();
    dl_each_shipped(dl_file_kind_get(kind), arena, print_file, arena);
    dl_arena_free(arena);
}

static void print_keys(const char *what, const struct dl_field *(*get)(size_t *n_fields))
{
    size_t n_fields;
    const struct dl_field *const fields = get(&n_fields);
    printf("  keys of %s\n", what);
    print_fields(fields, n_fields);
}

void dl_list_topologies(void)
{
    print_files(DL_FILE_TOPOLOGY);
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
    print_keys("\"variability\"", dl_variability_fields);
    print_keys("\"node_power\"", dl_node_power_fields);
    print_keys("\"network_power\"", dl_network_power_fields);
    print_keys("\"site\"", dl_facility_fields);
}

void dl_list_devices(void)
{
    print_files(DL_FILE_DEVICE);
    puts("  models of devices");
    for (size_t i = 0; i < dl_device_model_count(); i++) {
        const struct dl_device_model *const m = dl_device_model_get(i);
        print_kind(m->name, m->doc, m->fields, m->n_fields);
    }
    print_keys("\"taken_by_exchanges\" and \"taken_by_sends\"", dl_taken_fields);
    print_keys("\"power\"", dl_power_fields);
    print_keys("\"interpolation\"", dl_interpolation_fields);
}

void dl_list_transports(void) { print_files(DL_FILE_TRANSPORT); }

void dl_list_workloads(void)
{
    print_files(DL_FILE_WORKLOAD);
    puts("  kinds of workloads");
    for (size_t i = 0; i < dl_workload_count(); i++) {
        const struct dl_workload_kind *const k = dl_workload_get(i);
        print_kind(k->name, k->doc, k->fields, k->n_fields);
    }
}

void dl_list_strategies(void)
{
    print_files(DL_FILE_STRATEGY);
    print_keys("a strategy file", dl_job_fields);
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
    print_files(DL_FILE_SOFTWARE);
    for (size_t i = 0; i < DL_COUNT(parts); i++) print_keys(parts[i].what, parts[i].fields);
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
