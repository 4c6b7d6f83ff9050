/* measured_read.c - tables of measured times become points and curves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost/measured_points.h"
#include "sim/cost/operations.h"

struct table {
    const char *kernel, *library;
    int64_t pass, precision;
    struct dl_json columns, rows;
};

static const char *const passes[] = {[DL_TABLE_FORWARD] = "forward",
                                     [DL_TABLE_INPUT_GRADIENT] = "input_gradient",
                                     [DL_TABLE_WEIGHT_GRADIENT] = "weight_gradient",
                                     [DL_TABLE_BACKWARD] = "backward",
                                     [DL_TABLE_ANY] = NULL};

/* The columns of enum dl_column and then those of the time. */
enum { seconds_column = DL_N_COLUMNS, spread_column, n_names };
static const struct {
    const char *name;
    double min, max;
} columns[n_names] = {[DL_BATCH] = {"batch", 1, 1e9},
                      [DL_M] = {"m", 1, 1e12},
                      [DL_N] = {"n", 1, 1e12},
                      [DL_K] = {"k", 1, 1e12},
                      [DL_ELEMENTS] = {"elements", 1, 1e15},
                      [DL_CAUSAL] = {"causal", 0, 1},
                      [DL_KV_SHARE] = {"kv_share", 0, 1},
                      [DL_ACCUMULATES] = {"accumulates", 0, 1},
                      [DL_WINDOW] = {"window", 1, 1e6},
                      [DL_STRIDE] = {"stride", 1, 1e6},
                      [DL_DROPS] = {"dropout", 0, 1},
                      [seconds_column] = {"seconds", 1e-9, 1e6},
                      [spread_column] = {"spread", 0, 10}};

static enum dl_status read_table(struct dl_json at, struct dl_arena *arena, struct table *out, struct dl_error *err)
{
    static const struct dl_field fields[] = {
        {"kernel", DL_TEXT, offsetof(struct table, kernel), 0, 0, false, NULL, "gemm, attention, conv, layernorm, ..."},
        {"pass", DL_CHOICE, offsetof(struct table, pass), 0, 0, true, passes, "all of them if absent"},
        {"precision", DL_CHOICE, offsetof(struct table, precision), 0, 0, false, dl_precision_names, "of operands"},
        {"library", DL_TEXT, offsetof(struct table, library), 0, 0, false, NULL, "whose kernels were timed"},
        {"columns", DL_LIST, offsetof(struct table, columns), 0, 0, false, NULL, "what the numbers of a row are"},
        {"rows", DL_LIST, offsetof(struct table, rows), 0, 0, false, NULL, "one for each shape"},
    };
    *out = (struct table){.pass = DL_TABLE_ANY};
    if (dl_read(at, fields, DL_COUNT(fields), out, arena, err)) return err->status;
    return dl_operation_check(out->kernel, dl_json_member(at, "kernel", arena).where, err);
}

static enum dl_kernel_kind kind_of(const struct table *t) { return dl_operation_named(t->kernel)->kind; }

/* Columns without which a row is no shape. */
static unsigned needed(enum dl_kernel_kind kind)
{
    const unsigned time = 1u << seconds_column;
    return time | (kind == DL_KERNEL_MEMORY ? 1u << DL_ELEMENTS : 1u << DL_M | 1u << DL_N | 1u << DL_K);
}

/* which[i]: the name of the i-th column of the table. */
static enum dl_status read_columns(const struct table *t, enum dl_kernel_kind kind, struct dl_arena *arena, int *which,
                                   unsigned *known, struct dl_error *err)
{
    size_t i;
    json_t *value;
    *known = 0;
    json_array_foreach(t->columns.value, i, value)
    {
        const char *const name = json_string_value(value);
        int c = 0;
        while (name && c < n_names && strcmp(columns[c].name, name)) c++;
        if (!name || c == n_names || *known >> c & 1)
            return dl_fail(err, DL_KEY, dl_json_element(t->columns, i, arena).where,
                           "must be one of batch, m, n, k, elements, causal, kv_share, accumulates, window, stride, "
                           "dropout, seconds, spread, each once");
        which[i] = c;
        *known |= 1u << c;
    }
    if (~*known & needed(kind))
        return dl_fail(err, DL_KEY, t->columns.where, "needs seconds and %s",
                       kind == DL_KERNEL_MEMORY ? "elements" : "m, n, k");
    return DL_OK;
}

static enum dl_status read_row(struct dl_json row, const int *which, size_t n, struct dl_arena *arena, double *values,
                               struct dl_error *err)
{
    if (!json_is_array(row.value) || json_array_size(row.value) != n)
        return dl_fail(err, DL_TYPE, row.where, "must be a list of %zu numbers, as there are columns", n);
    for (size_t i = 0; i < n; i++) {
        const json_t *const cell = json_array_get(row.value, i);
        const double x = json_is_boolean(cell)  ? json_is_true(cell)
                         : json_is_number(cell) ? json_number_value(cell)
                                                : NAN;
        if (!(x >= columns[which[i]].min && x <= columns[which[i]].max))
            return dl_fail(err, DL_RANGE, dl_json_element(row, i, arena).where, "%s must be in [%g, %g]",
                           columns[which[i]].name, columns[which[i]].min, columns[which[i]].max);
        values[which[i]] = x;
    }
    return DL_OK;
}

static struct dl_kernel kernel_of(const struct table *t, const double *values)
{
    const enum dl_kernel_kind kind = kind_of(t);
    const bool is_forward = t->pass == DL_TABLE_FORWARD || t->pass == DL_TABLE_ANY;
    return (struct dl_kernel){.kind = kind,
                              .pass = is_forward                            ? DL_PASS_FORWARD
                                      : t->pass == DL_TABLE_WEIGHT_GRADIENT ? DL_PASS_WEIGHT_GRADIENT
                                                                            : DL_PASS_INPUT_GRADIENT,
                              .name = t->kernel,
                              .batch = values[DL_BATCH],
                              .m = values[DL_M],
                              .n = values[DL_N],
                              .k = values[DL_K],
                              .elements = values[DL_ELEMENTS],
                              .window = values[DL_WINDOW],
                              .stride = values[DL_STRIDE],
                              .causal = values[DL_CAUSAL] > 0,
                              .kv_share = values[DL_KV_SHARE],
                              .drops = values[DL_DROPS] > 0,
                              .by.batch = dl_operation_named(t->kernel)->among_experts ? DL_BY_EXPERT : 0,
                              .accumulates = values[DL_ACCUMULATES] > 0,
                              .backward = kind == DL_KERNEL_ATTENTION && !is_forward};
}

/* Twice the peak is more than any clock makes of it: the time is wrong, or in another unit. Convolutions may do with
 * fewer multiplications than are counted. */
static enum dl_status check_rate(const struct table *t, size_t row, const struct dl_device *d, const double *values,
                                 struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_kernel k = kernel_of(t, values);
    const double most_of_peak = 2, least_s = dl_kernel_flop(&k) / d->peak_flop_per_s[t->precision];
    if (k.kind == DL_KERNEL_CONV || most_of_peak * values[seconds_column] >= least_s) return DL_OK;
    return dl_fail(err, DL_RANGE, dl_json_element(t->rows, row, arena).where,
                   "%g seconds are too few: at the peak of %s it takes %g", values[seconds_column],
                   dl_precision_name((enum dl_precision)t->precision), least_s);
}

static void add_point(struct dl_measured_points *to, const struct dl_device *d, const struct table *t, unsigned known,
                      const double *values)
{
    const struct dl_kernel k = kernel_of(t, values);
    const double modelled_s = d->model->price(d, &k, (enum dl_precision)t->precision).seconds;
    struct dl_point *const p = &to->points[to->n];
    struct dl_timed *const row = &to->timed[to->n++];
    *p = dl_point_at(to, &k, (enum dl_precision)t->precision);
    p->log_ratio = log(values[seconds_column] / modelled_s);
    to->has[p->kind.alignment] = true;
    to->has_windows |= k.window > 0;
    p->noise = values[spread_column] * values[spread_column];
    *row = (struct dl_timed){.seconds = values[seconds_column], .known = known};
    memcpy(row->column, values, sizeof row->column);
}

/* Of a table of a memory-bound kernel that tells the width of rows. */
static void add_rows(struct dl_curve *c, const struct dl_device *d, const struct table *t, unsigned known,
                     const double (*values)[n_names], size_t n, struct dl_arena *arena)
{
    if (!(known >> DL_N & 1)) return;
    c->rows.points = dl_arena_alloc(arena, n * sizeof *c->rows.points);
    c->rows.timed = dl_arena_alloc(arena, n * sizeof *c->rows.timed);
    for (size_t i = 0; i < n; i++) add_point(&c->rows, d, t, known, values[i]);
    dl_points_finish(&c->rows);
}

struct place {
    double log_bytes, log_seconds, log_ratio;
};

static struct place place_of(const struct dl_device *d, const struct table *t, const double *values)
{
    const struct dl_kernel k = kernel_of(t, values);
    const enum dl_precision precision = (enum dl_precision)t->precision;
    return (struct place){.log_bytes = log(dl_kernel_bytes(&k, precision)),
                          .log_seconds = log(values[seconds_column]),
                          .log_ratio = log(values[seconds_column] / d->model->price(d, &k, precision).seconds)};
}

static int by_bytes(const void *a, const void *b)
{
    const double x = ((const struct place *)a)->log_bytes, y = ((const struct place *)b)->log_bytes;
    return (x > y) - (x < y);
}

/* Rows of as many bytes become one, at the mean of their times. */
static struct dl_curve make_curve(const struct table *t, const struct dl_device *d, const double (*values)[n_names],
                                  size_t n, struct dl_arena *arena)
{
    struct place *const places = dl_arena_alloc(arena, n * sizeof *places);
    for (size_t i = 0; i < n; i++) places[i] = place_of(d, t, values[i]);
    struct dl_curve c = {.operation = dl_arena_string(arena, t->kernel),
                         .pass = t->pass,
                         .precision = (enum dl_precision)t->precision,
                         .log_bytes = dl_arena_alloc(arena, n * sizeof *c.log_bytes),
                         .log_seconds = dl_arena_alloc(arena, n * sizeof *c.log_seconds),
                         .log_ratio = dl_arena_alloc(arena, n * sizeof *c.log_ratio)};
    qsort(places, n, sizeof *places, by_bytes);
    for (size_t i = 0, end; i < n; i = end, c.n++) {
        for (end = i; end < n && places[end].log_bytes == places[i].log_bytes; end++) {
            c.log_seconds[c.n] += places[end].log_seconds;
            c.log_ratio[c.n] += places[end].log_ratio;
        }
        c.log_bytes[c.n] = places[i].log_bytes;
        c.log_seconds[c.n] /= (double)(end - i);
        c.log_ratio[c.n] /= (double)(end - i);
    }
    return c;
}

/* values[i]: the columns of the i-th row. */
static enum dl_status read_rows(const struct table *t, struct dl_arena *arena, double (*values)[n_names],
                                unsigned *known, struct dl_error *err)
{
    const size_t n_columns = json_array_size(t->columns.value), n_rows = json_array_size(t->rows.value);
    int which[n_names];
    if (read_columns(t, kind_of(t), arena, which, known, err)) return err->status;
    for (size_t i = 0; i < n_rows; i++) {
        values[i][DL_BATCH] = values[i][DL_KV_SHARE] = 1;
        if (read_row(dl_json_element(t->rows, i, arena), which, n_columns, arena, values[i], err)) return err->status;
    }
    return DL_OK;
}

static double (*room_for_rows(const struct table *t, struct dl_arena *arena))[n_names]
{
    double(*const values)[n_names] = dl_arena_alloc(arena, (json_array_size(t->rows.value) + 1) * sizeof *values);
    return values;
}

static enum dl_status add_table(const struct table *t, const struct dl_device *d, struct dl_arena *arena,
                                struct dl_measured *out, struct dl_error *err)
{
    const enum dl_kernel_kind kind = kind_of(t);
    const size_t n_rows = json_array_size(t->rows.value);
    double(*const values)[n_names] = room_for_rows(t, arena);
    unsigned known;
    if (!d->peak_flop_per_s[t->precision])
        return dl_fail(err, DL_KEY, t->rows.where, "are in %s, which has no peak_flop_per_s",
                       dl_precision_name((enum dl_precision)t->precision));
    if (read_rows(t, arena, values, &known, err)) return err->status;
    for (size_t i = 0; i < n_rows; i++) {
        if (check_rate(t, i, d, values[i], arena, err)) return err->status;
        const struct dl_kernel k = kernel_of(t, values[i]);
        if (kind != DL_KERNEL_MEMORY) /* batch is 1 where it is not told */
            add_point(&out->points[dl_points_index(&k, (enum dl_precision)t->precision)][t->precision], d, t,
                      known | 1u << DL_BATCH, values[i]);
    }
    if (kind != DL_KERNEL_MEMORY || !n_rows) return DL_OK;
    struct dl_curve *const curve = &out->curves[out->n_curves++];
    *curve = make_curve(t, d, (const double(*)[n_names])values, n_rows, arena);
    curve->rows.by = out->by;
    add_rows(curve, d, t, known, (const double(*)[n_names])values, n_rows, arena);
    return DL_OK;
}

/* For the rows of all tables of a kind and precision; and for the curves, one a table. */
static void make_room(const struct table *tables, size_t n, struct dl_arena *arena, struct dl_measured *m)
{
    size_t rows[DL_KERNEL_MEMORY + 1][DL_N_PRECISIONS] = {{0}};
    for (size_t i = 0; i < n; i++)
        rows[kind_of(&tables[i])][tables[i].precision] += json_array_size(tables[i].rows.value);
    m->curves = dl_arena_alloc(arena, (n + 1) * sizeof *m->curves);
    for (int kind = 0; kind < dl_n_products; kind++)
        for (int p = 0; p < DL_N_PRECISIONS; p++) {
            const size_t most = rows[kind < dl_regrouped ? kind : DL_KERNEL_CONV][p] + 1;
            m->points[kind][p].by = m->by;
            m->points[kind][p].points = dl_arena_alloc(arena, most * sizeof(struct dl_point));
            m->points[kind][p].timed = dl_arena_alloc(arena, most * sizeof(struct dl_timed));
        }
}

static const char *list_libraries(const struct table *tables, size_t n, struct dl_arena *arena)
{
    const char *list = "";
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i; j++) is_new &= strcmp(tables[j].library, tables[i].library) != 0;
        if (is_new) list = dl_arena_format(arena, "%s%s%s", list, *list ? ", " : "", tables[i].library);
    }
    return list;
}

static enum dl_status read_found(const struct dl_found_tables *found, struct dl_arena *arena, struct table **tables,
                                 struct dl_error *err)
{
    const size_t told = err->n_told;
    *tables = dl_arena_alloc(arena, (found->n + 1) * sizeof **tables);
    for (size_t i = 0; i < found->n; i++)
        if (read_table(found->items[i], arena, &(*tables)[i], err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

static enum dl_status add_tables(const struct dl_found_tables *found, struct dl_arena *arena, struct dl_device *out,
                                 struct dl_measured *m, struct dl_error *err)
{
    struct table *tables;
    if (read_found(found, arena, &tables, err)) return err->status;
    make_room(tables, found->n, arena, m);
    m->libraries = list_libraries(tables, found->n, arena);
    for (size_t i = 0; i < found->n; i++)
        if (add_table(&tables[i], dl_measured_on(out), arena, m, err)) return err->status;
    for (int kind = 0; kind < dl_n_products; kind++)
        for (int p = 0; p < DL_N_PRECISIONS; p++) dl_points_finish(&m->points[kind][p]);
    out->measured = m;
    return DL_OK;
}

static void replace_all(json_t *list, json_t *by)
{
    json_array_clear(list);
    json_array_extend(list, by);
}

enum dl_status dl_measured_read(const struct dl_tables *asked, struct dl_arena *arena, struct dl_device *out,
                                struct dl_error *err)
{
    struct dl_measured *const m = dl_arena_alloc(arena, sizeof *m);
    struct dl_found_tables found;
    const size_t told = err->n_told;
    if (dl_interpolation_read(asked->interpolation, arena, &m->by, err) && !dl_go_on(err)) return err->status;
    if (!dl_tables_find(asked, arena, &found, err) && !dl_stop_if_told(err, told) &&
        !add_tables(&found, arena, out, m, err))
        replace_all(asked->list.value, found.held);
    dl_tables_release(&found);
    return err->status;
}

enum dl_status dl_kernels_check(struct dl_json doc, struct dl_arena *arena, const char **libraries,
                                struct dl_error *err)
{
    struct dl_json list;
    unsigned known;
    if (dl_kernels_read(doc, arena, &list, err)) return err->status;
    const size_t n = json_array_size(list.value), told = err->n_told;
    struct table *const tables = dl_arena_alloc(arena, (n + 1) * sizeof *tables);
    for (size_t i = 0; i < n; i++)
        if ((read_table(dl_json_element(list, i, arena), arena, &tables[i], err) ||
             read_rows(&tables[i], arena, room_for_rows(&tables[i], arena), &known, err)) &&
            !dl_go_on(err))
            return err->status;
    if (!dl_stop_if_told(err, told)) *libraries = list_libraries(tables, n, arena);
    return err->status;
}
