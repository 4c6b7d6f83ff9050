/* list_command.c - every name that dlsim knows, with its options and their ranges. */
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/inputs.h"
#include "sim/collective/collective.h"
#include "sim/core/files.h"
#include "sim/engine/engine.h"

static void print_range(const struct dl_field *f)
{
    switch (f->type) {
    case DL_INT:
    case DL_NUMBER:
    case DL_INT_LIST: printf(" [%g, %g]", f->min, f->max); break;
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

static void list_files(const char *folder)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder(folder, arena, &names);
    for (size_t i = 0; i < n; i++) {
        struct dl_json doc;
        struct dl_error err = {0};
        const char *const path = dl_arena_format(arena, "%s/%s.json", dl_shipped(folder, arena), names[i]);
        if (dl_json_load(path, arena, &doc, &err)) continue;
        const json_t *const source = json_object_get(doc.value, "source");
        printf("  %-18s %.120s\n", names[i], json_is_string(source) ? json_string_value(source) : "");
        json_decref(doc.value);
    }
    dl_arena_free(arena);
}

static void list_topologies(void)
{
    list_files(DL_SYSTEMS);
    puts("  kinds of networks");
    for (size_t i = 0; i < dl_network_count(); i++) {
        const struct dl_network_kind *const k = dl_network_get(i);
        printf("    %-16s %s\n", k->name, k->doc);
        print_fields(k->fields, k->n_fields);
    }
    puts("  kinds of parts of a node");
    for (size_t i = 0; i < dl_interior_count(); i++) {
        const struct dl_interior *const k = dl_interior_get(i);
        printf("    %-16s %s\n", k->name, k->doc);
        print_fields(k->fields, k->n_fields);
    }
}

static void list_transports(void) { list_files(DL_TRANSPORTS); }

static void list_collectives(void)
{
    for (int op = 0; op < DL_N_OPS; op++) {
        printf("  %s\n", dl_op_name((enum dl_op)op));
        for (size_t i = 0; i < dl_algorithm_count(); i++)
            if (dl_algorithm_get(i)->op == (enum dl_op)op)
                printf("    %-26s %s\n", dl_algorithm_get(i)->name, dl_algorithm_get(i)->doc);
    }
}

static void list_engines(void)
{
    for (size_t i = 0; i < dl_engine_count(); i++)
        printf("  %-18s %s\n", dl_engine_get(i)->name, dl_engine_get(i)->doc);
    puts("  analytic           alpha, beta and gamma on the routes; nothing is simulated");
}

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    {"topologies", list_topologies},
    {"transports", list_transports},
    {"collectives", list_collectives},
    {"engines", list_engines},
};

static enum dl_status print_list(const char *name, struct dl_error *err)
{
    const char *names[DL_COUNT(lists)];
    for (size_t i = 0; i < DL_COUNT(lists); i++) {
        names[i] = lists[i].name;
        if (strcmp(name, names[i])) continue;
        lists[i].print();
        return DL_OK;
    }
    const char *const nearest = dl_nearest(name, names, DL_COUNT(names));
    return dl_fail(err, DL_NOT_FOUND, name, "no such list%s%s%s (topologies, transports, collectives, engines)",
                   nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct dl_texts wanted = {0};
    if (dl_read_options(argc, argv, NULL, 0, NULL, &wanted, err)) return 2;
    for (size_t i = 0; i < wanted.n && !err->status; i++) print_list(wanted.items[i], err);
    for (size_t i = 0; !wanted.n && i < DL_COUNT(lists); i++) {
        printf("%s\n", lists[i].name);
        lists[i].print();
    }
    return 0;
}

const struct dl_command dl_command_list = {
    .name = "list",
    .doc = "every name with its options and ranges",
    .usage = "list [topologies|transports|collectives|engines]",
    .run = run,
};
