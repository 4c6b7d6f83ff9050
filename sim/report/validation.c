#include "sim/report/validation.h"

#include <math.h>
#include <string.h>

#include "sim/core/random.h"

/* ---- errors ---- */

double dl_compared_error(const struct dl_compared *row)
{
    return (row->predicted_s - row->measured_s) / row->measured_s;
}

void dl_compare_pair(const struct dl_compared *first, struct dl_compared *second)
{
    if (!second->failure) second->failure = first->failure;
    second->fits = second->fits && first->fits;
    second->low_s = second->high_s = 0; /* those of one of the two */
    if (second->quantity == DL_SPEEDUP)
        second->predicted_s = second->samples_per_s / first->samples_per_s;
    else
        second->predicted_s -= first->predicted_s;
}

static void add_error(struct dl_errors *e, const struct dl_compared *row)
{
    if (row->failure) {
        e->n_failed++;
        return;
    }
    const double error = dl_compared_error(row);
    if (isnan(error)) return;
    e->n++;
    e->mape += fabs(error);
    e->bias += error;
    e->n_bounded += row->high_s > 0;
    if (row->high_s > 0) e->width += (row->high_s - row->low_s) / row->predicted_s;
    e->n_within += row->low_s <= row->measured_s && row->measured_s <= row->high_s;
    if (e->worst && !(fabs(error) > e->max)) return;
    e->max = fabs(error);
    e->worst = row;
}

/* Rows that are nearly as long say little about who is faster. */
static void add_pair(struct dl_errors *e, const struct dl_compared *a, const struct dl_compared *b)
{
    const double apart = 1.15;
    if (a->failure || b->failure || a->quantity != DL_STEP || b->quantity != DL_STEP) return;
    if (strcmp(a->model, b->model)) return;
    const struct dl_compared *const less = a->measured_s < b->measured_s ? a : b, *const more = less == a ? b : a;
    if (!(more->measured_s > apart * less->measured_s)) return;
    e->n_pairs++;
    e->n_ordered += less->predicted_s < more->predicted_s;
}

struct dl_errors dl_sum_errors(const struct dl_compared *const *rows, size_t n)
{
    struct dl_errors e = {0};
    for (size_t i = 0; i < n; i++) add_error(&e, rows[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) add_pair(&e, rows[i], rows[j]);
    e.mape = e.n ? e.mape / (double)e.n : NAN;
    e.bias = e.n ? e.bias / (double)e.n : NAN;
    if (e.n_bounded) e.width /= (double)e.n_bounded;
    if (!e.n) e.max = NAN;
    return e;
}

bool dl_is_kept_out(const char *id)
{
    uint64_t hash = 0;
    for (const char *c = id; *c; c++) hash = dl_mix(hash ^ (unsigned char)*c);
    return hash & 1;
}

/* ---- families ---- */

static size_t key_length(const char *source)
{
    size_t n = strcspn(source, "[");
    while (n && source[n - 1] == ' ') n--;
    return n;
}

/* Made if it is the first of its family. */
static size_t find_family(struct dl_validation *v, const struct dl_compared *row, struct dl_arena *arena)
{
    const size_t length = key_length(row->source);
    for (size_t i = 0; i < v->n_families; i++)
        if (strlen(v->families[i].source) == length && strncmp(v->families[i].source, row->source, length) == 0)
            return i;
    v->families[v->n_families].source = dl_arena_format(arena, "%.*s", (int)length, row->source);
    return v->n_families++;
}

/* "VT-M" for VT-M-0001 and VT-M-0093: whole words that all ids begin with. */
static const char *common_name(const struct dl_row_family *f, struct dl_arena *arena)
{
    const char *const first = f->rows[0]->id;
    size_t length = strlen(first);
    for (size_t i = 1; i < f->n_rows; i++) {
        size_t same = 0;
        while (same < length && f->rows[i]->id[same] == first[same]) same++;
        length = same;
    }
    size_t word = length;
    while (word && first[word - 1] != '-') word--;
    return word > 1 ? dl_arena_format(arena, "%.*s", (int)word - 1, first) : f->source;
}

static bool is_alone(const char *const *names, size_t n, size_t i)
{
    for (size_t j = 0; j < n; j++)
        if (j != i && strcmp(names[j], names[i]) == 0) return false;
    return true;
}

/* Where families share the beginning of their ids, by what they come from. */
static void name_families(struct dl_validation *v, struct dl_arena *arena)
{
    const char **const names = dl_arena_alloc(arena, v->n_families * sizeof *names);
    for (size_t i = 0; i < v->n_families; i++) names[i] = common_name(&v->families[i], arena);
    for (size_t i = 0; i < v->n_families; i++)
        v->families[i].name = is_alone(names, v->n_families, i) ? names[i] : v->families[i].source;
}

static void join_constants(struct dl_validation *v, struct dl_arena *arena)
{
    v->constants.arena = arena;
    for (size_t i = 0; i < v->n_families; i++) v->families[i].constants.arena = arena;
    for (size_t i = 0; i < v->n_rows; i++) {
        v->has_budget = v->has_budget || v->rows[i].knows_parts;
        if (!v->rows[i].constants) continue;
        dl_constants_join(&v->families[v->family_of[i]].constants, v->rows[i].constants);
        dl_constants_join(&v->constants, v->rows[i].constants);
    }
}

struct dl_validation dl_validation_of(const struct dl_compared *rows, size_t n_rows, const char *engine,
                                      struct dl_arena *arena)
{
    struct dl_validation v = {.engine = engine, .rows = rows, .n_rows = n_rows};
    v.families = dl_arena_alloc(arena, n_rows * sizeof *v.families);
    memset(v.families, 0, n_rows * sizeof *v.families);
    v.family_of = dl_arena_alloc(arena, n_rows * sizeof *v.family_of);
    for (size_t i = 0; i < n_rows; i++) {
        v.family_of[i] = find_family(&v, &rows[i], arena);
        v.families[v.family_of[i]].n_rows++;
    }
    for (size_t i = 0; i < v.n_families; i++) {
        v.families[i].rows = dl_arena_alloc(arena, v.families[i].n_rows * sizeof *v.families[i].rows);
        v.families[i].n_rows = 0;
    }
    for (size_t i = 0; i < n_rows; i++) {
        struct dl_row_family *const f = &v.families[v.family_of[i]];
        f->rows[f->n_rows++] = &rows[i];
    }
    name_families(&v, arena);
    join_constants(&v, arena);
    return v;
}

struct dl_errors dl_validation_summary(const struct dl_validation *v)
{
    const struct dl_compared **const rows = dl_alloc(v->n_rows * sizeof *rows);
    for (size_t i = 0; i < v->n_rows; i++) rows[i] = &v->rows[i];
    const struct dl_errors errors = dl_sum_errors(rows, v->n_rows);
    dl_free(rows);
    return errors;
}

struct dl_errors dl_half_errors(const struct dl_row_family *f, bool kept_out)
{
    const struct dl_compared **const rows = dl_alloc(f->n_rows * sizeof *rows);
    size_t n = 0;
    for (size_t i = 0; i < f->n_rows; i++)
        if (dl_is_kept_out(f->rows[i]->id) == kept_out) rows[n++] = f->rows[i];
    const struct dl_errors errors = dl_sum_errors(rows, n);
    dl_free(rows);
    return errors;
}
