/* measured_files.c - tables of measured times that have files of their own, each with kernels of one kind: who needs
 * some kinds only, as a device that takes them from another one, does not read the others. */
#include "sim/core/files.h"
#include "sim/cost/measured_points.h"
#include "sim/cost/operations.h"

#define FOLDER "topologies/devices/measured"

static const char *const kind_names[] = {[DL_KERNEL_GEMM] = "gemm",
                                         [DL_KERNEL_ATTENTION] = "attention",
                                         [DL_KERNEL_CONV] = "conv",
                                         [DL_KERNEL_MEMORY] = "memory",
                                         [DL_KERNEL_MEMORY + 1] = NULL};

/* An element of "measured" that names a file. */
struct named {
    int64_t kernels;
    const char *file;
};

static enum dl_status read_named(struct dl_json from, struct dl_arena *arena, struct named *out, struct dl_error *err)
{
    static const struct dl_field fields[] = {
        {"kernels", DL_CHOICE, offsetof(struct named, kernels), 0, 0, false, kind_names, "the kind of all in the file"},
        {"file", DL_TEXT, offsetof(struct named, file), 0, 0, false, NULL, "with tables of them"},
    };
    return dl_read(from, fields, DL_COUNT(fields), out, arena, err);
}

static enum dl_status load(const struct named *named, const char *beside, const char *where, struct dl_arena *arena,
                           struct dl_json *doc, struct dl_error *err)
{
    const struct dl_sought sought = {
        .folder = FOLDER, .what = "kernel table", .name = named->file, .file = beside, .is_unlisted = true};
    struct dl_error missing = {0};
    const char *path;
    if (dl_find_sought(&sought, arena, &path, &missing)) return dl_fail(err, missing.status, where, "%s", missing.text);
    return dl_json_load(path, arena, doc, err);
}

/* NULL: no operation has this name; its reader says so. */
static const struct dl_operation *operation_of(const json_t *table)
{
    const char *const kernel = json_string_value(json_object_get(table, "kernel"));
    return kernel ? dl_operation_named(kernel) : NULL;
}

/* No device can name a file of two kinds. */
static enum dl_status check_one_kind(struct dl_json tables, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_operation *first = NULL;
    for (size_t i = 0; i < json_array_size(tables.value); i++) {
        const struct dl_json table = dl_json_element(tables, i, arena);
        const struct dl_operation *const operation = operation_of(table.value);
        if (!first) first = operation;
        if (operation && operation->kind != first->kind)
            return dl_fail(err, DL_KEY, dl_json_member(table, "kernel", arena).where,
                           "is of kind %s, but a table before it of kind %s; a file has tables of one kind",
                           kind_names[operation->kind], kind_names[first->kind]);
    }
    return DL_OK;
}

enum dl_status dl_kernels_read(struct dl_json doc, struct dl_arena *arena, struct dl_json *tables, struct dl_error *err)
{
    static const struct dl_field fields[] = {
        {"measured", DL_LIST, 0, 0, 0, false, NULL, "tables of measured times"},
    };
    if (dl_read_document(doc, "kernels", fields, DL_COUNT(fields), tables, arena, err)) return err->status;
    if (!json_array_size(tables->value)) return dl_fail(err, DL_KEY, tables->where, "must have at least one table");
    return check_one_kind(*tables, arena, err);
}

static void add_table(struct dl_found_tables *found, struct dl_json table)
{
    DL_GROW(found->items, found->n, found->capacity);
    found->items[found->n++] = table;
    json_array_append(found->held, table.value);
}

static enum dl_status add_tables_of(const struct named *named, struct dl_json tables, struct dl_arena *arena,
                                    struct dl_found_tables *found, struct dl_error *err)
{
    for (size_t i = 0; i < json_array_size(tables.value); i++) {
        const struct dl_json table = dl_json_element(tables, i, arena);
        const struct dl_operation *const operation = operation_of(table.value);
        if (operation && operation->kind != (enum dl_kernel_kind)named->kernels)
            return dl_fail(err, DL_KEY, dl_json_member(table, "kernel", arena).where,
                           "is of kind %s, in a file that is named for %s", kind_names[operation->kind],
                           kind_names[named->kernels]);
        add_table(found, table);
    }
    return DL_OK;
}

static enum dl_status add_file(struct dl_json element, const struct dl_tables *asked, struct dl_arena *arena,
                               struct dl_found_tables *found, struct dl_error *err)
{
    struct named named;
    struct dl_json doc = {0}, tables;
    if (read_named(element, arena, &named, err)) return err->status;
    if (!(asked->kinds >> named.kernels & 1)) return DL_OK;
    const char *const where = dl_json_member(element, "file", arena).where;
    (void)(load(&named, asked->list.file, where, arena, &doc, err) || dl_kernels_read(doc, arena, &tables, err) ||
           add_tables_of(&named, tables, arena, found, err));
    json_decref(doc.value);
    return err->status;
}

enum dl_status dl_tables_find(const struct dl_tables *asked, struct dl_arena *arena, struct dl_found_tables *found,
                              struct dl_error *err)
{
    const size_t told = err->n_told;
    *found = (struct dl_found_tables){.held = json_array()};
    for (size_t i = 0; i < json_array_size(asked->list.value); i++) {
        const struct dl_json element = dl_json_element(asked->list, i, arena);
        const struct dl_operation *const operation = operation_of(element.value);
        if (json_object_get(element.value, "file")) {
            if (add_file(element, asked, arena, found, err) && !dl_go_on(err)) break;
        } else if (!operation || asked->kinds >> operation->kind & 1) {
            add_table(found, element);
        }
    }
    return dl_stop_if_told(err, told);
}

void dl_tables_release(struct dl_found_tables *found)
{
    dl_free(found->items);
    json_decref(found->held);
}
