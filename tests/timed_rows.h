/* timed_rows.h - rows of a device file's "measured" as kernels, in two halves by a hash of their shapes: figures are
 * fitted to the first, what is kept out of it says how good they are. dl_device_read must have checked the file. */
#ifndef DL_TESTS_TIMED_ROWS_H
#define DL_TESTS_TIMED_ROWS_H

#include <string.h>

#include "sim/core/random.h"
#include "sim/cost/device.h"

static inline double timed_cell(const json_t *table, const json_t *row, const char *column, double otherwise)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(table, "columns"), i, name)
    {
        if (strcmp(json_string_value(name), column)) continue;
        const json_t *const value = json_array_get(row, i);
        return json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    }
    return otherwise;
}

static inline const char *timed_text(const json_t *table, const char *key)
{
    const char *const text = json_string_value(json_object_get(table, key));
    return text ? text : "";
}

static inline struct dl_kernel timed_kernel(const json_t *table, const json_t *row)
{
    const char *const name = timed_text(table, "kernel"), *const pass = timed_text(table, "pass");
    const bool is_backward = strcmp(pass, "backward") == 0 || strcmp(pass, "input_gradient") == 0;
    const bool is_attention = strcmp(name, "attention") == 0, is_grouped = strcmp(name, "grouped_gemm") == 0;
    return (struct dl_kernel){.kind = strcmp(name, "gemm") == 0 || is_grouped ? DL_KERNEL_GEMM
                                      : strcmp(name, "conv") == 0             ? DL_KERNEL_CONV
                                      : is_attention                          ? DL_KERNEL_ATTENTION
                                                                              : DL_KERNEL_MEMORY,
                              .pass = strcmp(pass, "weight_gradient") == 0 ? DL_PASS_WEIGHT_GRADIENT
                                      : is_backward                        ? DL_PASS_INPUT_GRADIENT
                                                                           : DL_PASS_FORWARD,
                              .name = name,
                              .batch = timed_cell(table, row, "batch", 1),
                              .m = timed_cell(table, row, "m", 0),
                              .n = timed_cell(table, row, "n", 0),
                              .k = timed_cell(table, row, "k", 0),
                              .elements = timed_cell(table, row, "elements", 0),
                              .window = timed_cell(table, row, "window", 0),
                              .stride = timed_cell(table, row, "stride", 0),
                              .causal = timed_cell(table, row, "causal", 0) > 0,
                              .kv_share = timed_cell(table, row, "kv_share", 1),
                              .drops = timed_cell(table, row, "dropout", 0) > 0,
                              .by.batch = is_grouped ? DL_BY_EXPERT : 0,
                              .accumulates = timed_cell(table, row, "accumulates", 0) > 0,
                              .backward = is_attention && is_backward};
}

/* The same shape is in the same half, whatever else is in the file. */
static inline bool is_kept_out(const struct dl_kernel *k)
{
    const double numbers[] = {k->batch, k->m, k->n, k->k, k->elements};
    uint64_t hash = 0;
    for (size_t i = 0; i < DL_COUNT(numbers); i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        hash = dl_mix(hash ^ bits);
    }
    return hash & 1;
}

static inline enum dl_precision timed_precision(const json_t *table)
{
    int p = 0;
    while (strcmp(dl_precision_name((enum dl_precision)p), timed_text(table, "precision"))) p++;
    return (enum dl_precision)p;
}

/* Leaves only the first half in the file. */
static inline void remove_kept_out(json_t *device)
{
    size_t i;
    json_t *table;
    json_array_foreach(json_object_get(device, "measured"), i, table)
    {
        json_t *const rows = json_object_get(table, "rows");
        for (size_t j = json_array_size(rows); j-- > 0;) {
            const struct dl_kernel k = timed_kernel(table, json_array_get(rows, j));
            if (is_kept_out(&k)) json_array_remove(rows, j);
        }
    }
}

#endif
