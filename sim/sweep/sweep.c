#include "sim/sweep/sweep.h"

#include <math.h>
#include <string.h>

static const double usual_limit_s = 600;

struct sweep_fields {
    struct dl_json base, axes, constraints;
    double limit_s;
};
#define AT(member) offsetof(struct sweep_fields, member)
static const struct dl_field sweep_fields[] = {
    {"base", DL_OBJECT, AT(base), 0, 0, false, NULL, "options and --set paths that all points share"},
    {"axes", DL_LIST, AT(axes), 0, 0, false, NULL, "what varies"},
    {"constraints", DL_LIST, AT(constraints), 0, 0, true, NULL, "SQL expressions over columns that points must meet"},
    {"limit_s", DL_NUMBER, AT(limit_s), 1e-3, 1e9, true, NULL, "seconds that a point may take"},
};
#undef AT

struct axis_fields {
    struct dl_json name, path, values, range, powers_of_two;
};
#define AT(member) offsetof(struct axis_fields, member)
static const struct dl_field axis_fields[] = {
    {"name", DL_ANY, AT(name), 0, 0, true, NULL, "of the column, or a list of them; the path if absent"},
    {"path", DL_ANY, AT(path), 0, 0, false, NULL, "an option or a --set path, or a list of them that change together"},
    {"values", DL_LIST, AT(values), 0, 0, true, NULL, "each a value, or a list with one for each path"},
    {"range", DL_LIST, AT(range), 0, 0, true, NULL, "[first, last, step]"},
    {"powers_of_two", DL_LIST, AT(powers_of_two), 0, 0, true, NULL, "[first, last]"},
};
#undef AT

/* ---- columns ---- */

static enum dl_status add_column(struct dl_sweep *s, struct dl_sweep_column column, struct dl_error *err)
{
    for (size_t i = 0; i < s->n_columns; i++) {
        const bool same_path = strcmp(s->columns[i].path, column.path) == 0;
        if (!same_path && strcmp(s->columns[i].name, column.name)) continue;
        return dl_fail(err, DL_KEY, column.where, "%s '%.80s' stands at %s too; name it once",
                       same_path ? "the path" : "the column", same_path ? column.path : column.name,
                       s->columns[i].where);
    }
    s->columns[s->n_columns++] = column;
    return DL_OK;
}

static enum dl_status read_word(struct dl_json from, const char **out, struct dl_error *err)
{
    if (!json_is_string(from.value)) return dl_wrong_type(from, "a string", err);
    if (!json_string_length(from.value)) return dl_fail(err, DL_RANGE, from.where, "must not be empty");
    *out = json_string_value(from.value);
    return DL_OK;
}

static struct dl_json nth(struct dl_json one_or_many, size_t i, struct dl_arena *arena)
{
    return json_is_array(one_or_many.value) ? dl_json_element(one_or_many, i, arena) : one_or_many;
}

static enum dl_status read_columns(struct dl_sweep *s, const struct axis_fields *f, struct dl_sweep_axis *axis,
                                   struct dl_arena *arena, struct dl_error *err)
{
    const size_t n = json_is_array(f->path.value) ? json_array_size(f->path.value) : 1;
    const size_t n_names = json_is_array(f->name.value) ? json_array_size(f->name.value) : 1;
    if (!n) return dl_fail(err, DL_RANGE, f->path.where, "must name at least one path");
    if (f->name.value && n_names != n)
        return dl_fail(err, DL_IMPOSSIBLE, f->name.where, "has %zu names for %zu paths", n_names, n);
    axis->first_column = s->n_columns;
    axis->n_columns = n;
    for (size_t i = 0; i < n; i++) {
        const struct dl_json path = nth(f->path, i, arena), name = nth(f->name, i, arena);
        struct dl_sweep_column column = {.where = path.where};
        if (read_word(path, &column.path, err)) return err->status;
        column.name = column.path;
        if ((f->name.value && read_word(name, &column.name, err)) || add_column(s, column, err)) return err->status;
    }
    return DL_OK;
}

/* ---- values ---- */

static enum dl_status read_bounds(struct dl_json from, size_t n, const char *wanted, double *bounds,
                                  struct dl_arena *arena, struct dl_error *err)
{
    if (json_array_size(from.value) != n) return dl_fail(err, DL_RANGE, from.where, "must be %s", wanted);
    for (size_t i = 0; i < n; i++) {
        const struct dl_json element = dl_json_element(from, i, arena);
        if (!json_is_number(element.value)) return dl_wrong_type(element, "a number", err);
        bounds[i] = json_number_value(element.value);
    }
    return DL_OK;
}

static json_t *number(double x) { return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x); }

static void add_value(struct dl_sweep *s, struct dl_sweep_axis *axis, double x, size_t *capacity)
{
    json_t *const value = number(x);
    json_array_append_new(s->made, value);
    DL_GROW(axis->values, axis->n_values, *capacity);
    axis->values[axis->n_values++] = value;
}

static enum dl_status read_range(struct dl_sweep *s, struct dl_json range, struct dl_sweep_axis *axis,
                                 struct dl_arena *arena, struct dl_error *err)
{
    double b[3] = {0};
    size_t capacity = 0;
    if (read_bounds(range, 3, "[first, last, step]", b, arena, err)) return err->status;
    const double n = floor((b[1] - b[0]) / b[2] * (1 + 1e-12)) + 1;
    if (!(b[2] > 0) || !(n >= 1 && n <= DL_SWEEP_MOST))
        return dl_fail(err, DL_RANGE, range.where, "goes from %g to %g in steps of %g; there must be 1 to %d of them",
                       b[0], b[1], b[2], DL_SWEEP_MOST);
    for (double i = 0; i < n; i++) add_value(s, axis, b[0] + i * b[2], &capacity);
    return DL_OK;
}

static enum dl_status read_powers(struct dl_sweep *s, struct dl_json powers, struct dl_sweep_axis *axis,
                                  struct dl_arena *arena, struct dl_error *err)
{
    double b[2] = {0};
    int exponent;
    size_t capacity = 0;
    if (read_bounds(powers, 2, "[first, last]", b, arena, err)) return err->status;
    if (!(b[0] > 0 && b[1] >= b[0] && isfinite(b[1])) || frexp(b[0], &exponent) != 0.5)
        return dl_fail(err, DL_RANGE, powers.where, "must begin with a power of two and not end below it");
    for (double x = b[0]; x <= b[1]; x *= 2) add_value(s, axis, x, &capacity);
    return DL_OK;
}

static enum dl_status read_list(struct dl_json list, struct dl_sweep_axis *axis, struct dl_arena *arena,
                                struct dl_error *err)
{
    const size_t n = axis->n_columns;
    axis->n_values = json_array_size(list.value);
    if (!axis->n_values) return dl_fail(err, DL_RANGE, list.where, "must have at least one value");
    axis->values = dl_alloc(axis->n_values * n * sizeof *axis->values);
    for (size_t i = 0; i < axis->n_values; i++) {
        const struct dl_json value = dl_json_element(list, i, arena);
        if (n > 1 && (!json_is_array(value.value) || json_array_size(value.value) != n))
            return dl_fail(err, DL_TYPE, value.where, "must be a list of %zu values, one for each path", n);
        for (size_t k = 0; k < n; k++) axis->values[i * n + k] = n > 1 ? json_array_get(value.value, k) : value.value;
    }
    return DL_OK;
}

static enum dl_status read_values(struct dl_sweep *s, const struct axis_fields *f, struct dl_json where,
                                  struct dl_sweep_axis *axis, struct dl_arena *arena, struct dl_error *err)
{
    const int n_given = !!f->values.value + !!f->range.value + !!f->powers_of_two.value;
    if (n_given != 1)
        return dl_fail(err, DL_KEY, where.where, "needs one of values, range and powers_of_two, has %d", n_given);
    if (f->values.value) return read_list(f->values, axis, arena, err);
    const struct dl_json made = f->range.value ? f->range : f->powers_of_two;
    if (axis->n_columns > 1)
        return dl_fail(err, DL_IMPOSSIBLE, made.where, "is for one path; %zu paths take values", axis->n_columns);
    return f->range.value ? read_range(s, made, axis, arena, err) : read_powers(s, made, axis, arena, err);
}

/* ---- the whole ---- */

static enum dl_status read_axis(struct dl_sweep *s, struct dl_json from, struct dl_arena *arena, struct dl_error *err)
{
    struct axis_fields f = {0};
    struct dl_sweep_axis *const axis = &s->axes[s->n_axes++];
    if (!json_is_object(from.value)) return dl_wrong_type(from, "an object", err);
    if (dl_read(from, axis_fields, DL_COUNT(axis_fields), &f, arena, err) || read_columns(s, &f, axis, arena, err))
        return err->status;
    return read_values(s, &f, from, axis, arena, err);
}

static enum dl_status read_base(struct dl_sweep *s, struct dl_json base, struct dl_arena *arena, struct dl_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(base.value, key, value)
    {
        struct dl_sweep_axis *const axis = &s->axes[s->n_axes++];
        *axis = (struct dl_sweep_axis){.first_column = s->n_columns, .n_columns = 1, .n_values = 1};
        axis->values = dl_alloc(sizeof *axis->values);
        axis->values[0] = value;
        if (add_column(s, (struct dl_sweep_column){key, key, dl_json_member(base, key, arena).where}, err))
            return err->status;
    }
    return DL_OK;
}

static enum dl_status read_constraints(struct dl_sweep *s, struct dl_json list, struct dl_arena *arena,
                                       struct dl_error *err)
{
    const size_t n = json_array_size(list.value);
    s->constraints = dl_arena_alloc(arena, (n + 1) * sizeof *s->constraints);
    for (; s->n_constraints < n; s->n_constraints++)
        if (read_word(dl_json_element(list, s->n_constraints, arena), &s->constraints[s->n_constraints], err))
            return err->status;
    return DL_OK;
}

static enum dl_status count_combinations(struct dl_sweep *s, struct dl_json axes, struct dl_error *err)
{
    double n = 1;
    for (size_t i = 0; i < s->n_axes; i++) n *= (double)s->axes[i].n_values;
    if (n > DL_SWEEP_MOST)
        return dl_fail(err, DL_RANGE, axes.where, "have %.4g combinations; a sweep has at most %d: split it", n,
                       DL_SWEEP_MOST);
    s->n_combinations = (uint64_t)n;
    return DL_OK;
}

static size_t most_columns(const struct sweep_fields *f)
{
    size_t n = json_object_size(f->base.value), i;
    json_t *axis;
    json_array_foreach(f->axes.value, i, axis)
    {
        const size_t n_paths = json_array_size(json_object_get(axis, "path"));
        n += n_paths ? n_paths : 1;
    }
    return n;
}

static enum dl_status read_fields(struct dl_json doc, struct sweep_fields *f, struct dl_arena *arena,
                                  struct dl_error *err)
{
    if (dl_check_schema(doc, "sweep", arena, err)) return err->status;
    const struct dl_json rest = {.value = json_copy(doc.value), .where = doc.where};
    json_object_del(rest.value, "schema");
    dl_read(rest, sweep_fields, DL_COUNT(sweep_fields), f, arena, err);
    json_decref(rest.value); /* a shallow copy: the members that the fields point to stay with doc */
    return err->status;
}

enum dl_status dl_sweep_read(struct dl_json doc, struct dl_arena *arena, struct dl_sweep *out, struct dl_error *err)
{
    struct sweep_fields f = {.limit_s = usual_limit_s};
    *out = (struct dl_sweep){.doc = doc, .made = json_array()};
    if (read_fields(doc, &f, arena, err)) return err->status;
    const size_t n_axes = json_object_size(f.base.value) + json_array_size(f.axes.value);
    out->limit_s = f.limit_s;
    out->columns = dl_arena_alloc(arena, (most_columns(&f) + 1) * sizeof *out->columns);
    out->axes = dl_arena_alloc(arena, (n_axes + 1) * sizeof *out->axes);
    memset(out->axes, 0, (n_axes + 1) * sizeof *out->axes);
    if (read_base(out, f.base, arena, err)) return err->status;
    for (size_t i = 0; i < json_array_size(f.axes.value); i++)
        if (read_axis(out, dl_json_element(f.axes, i, arena), arena, err)) return err->status;
    if (f.constraints.value && read_constraints(out, f.constraints, arena, err)) return err->status;
    return count_combinations(out, f.axes, err);
}

void dl_sweep_close(struct dl_sweep *s)
{
    for (size_t i = 0; i < s->n_axes; i++) dl_free(s->axes[i].values);
    json_decref(s->made);
}

void dl_sweep_point(const struct dl_sweep *s, uint64_t point, const json_t **values)
{
    for (size_t i = s->n_axes; i-- > 0;) {
        const struct dl_sweep_axis *const a = &s->axes[i];
        const uint64_t value = point % a->n_values;
        point /= a->n_values;
        for (size_t k = 0; k < a->n_columns; k++) values[a->first_column + k] = a->values[value * a->n_columns + k];
    }
}
