/* calibrate_select.c - which constants the times can tell. */
#include <math.h>

#include "sim/calibrate/calibrate_work.h"

enum { runs_per_constant = 3 };

/* What the times say of each constant beyond those before it: columns of slopes, and of residuals, that are made
 * orthogonal to them. */
struct columns {
    double *slopes; /* run by run: n_fit x n */
    double *rest;   /* by run */
    size_t n;
};

/* In later rounds only of those that had an effect in the first: the others take most of the time. */
static struct columns all_slopes(struct dl_calibration_work *w, bool first)
{
    struct dl_calibration_work asked = *w;
    struct columns columns = {.n = w->constants.n, .rest = dl_calibration_residuals(w)};
    columns.slopes = dl_alloc(w->n_fit * columns.n * sizeof *columns.slopes);
    asked.active = dl_alloc(columns.n * sizeof *asked.active);
    asked.n_active = 0;
    for (size_t j = 0; j < columns.n; j++)
        if (first || w->c->fitted[j].state != DL_FIT_NO_EFFECT) asked.active[asked.n_active++] = j;
    double *const x = dl_calibration_x(&asked), *const slopes = dl_alloc(w->n_fit * asked.n_active * sizeof *slopes);
    const struct dl_residuals problem = dl_calibration_problem(&asked);
    dl_residual_slopes(&problem, x, slopes);
    for (size_t i = 0; i < w->n_fit; i++)
        for (size_t j = 0; j < asked.n_active; j++)
            columns.slopes[i * columns.n + asked.active[j]] = slopes[i * asked.n_active + j];
    dl_free(dl_calibration_residuals(&asked)); /* which leaves the document as it was */
    dl_free(asked.active);
    dl_free(slopes);
    dl_free(x);
    return columns;
}

static double product(const struct dl_calibration_work *w, const struct columns *c, size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_fit; i++) sum += c->slopes[i * c->n + a] * c->slopes[i * c->n + b];
    return sum;
}

static void clear(const struct dl_calibration_work *w, struct columns *c, size_t column)
{
    for (size_t i = 0; i < w->n_fit; i++) c->slopes[i * c->n + column] = 0;
}

/* How much of the residuals a column explains: times this, it is the nearest to them. */
static double part_of_rest(const struct dl_calibration_work *w, const struct columns *c, size_t column)
{
    double sum = 0;
    for (size_t i = 0; i < w->n_fit; i++) sum += c->slopes[i * c->n + column] * c->rest[i];
    return sum / product(w, c, column, column);
}

static void take_out(const struct dl_calibration_work *w, struct columns *c, size_t taken)
{
    const double norm = product(w, c, taken, taken), of_rest = norm > 0 ? part_of_rest(w, c, taken) : 0;
    for (size_t i = 0; i < w->n_fit; i++) c->rest[i] -= of_rest * c->slopes[i * c->n + taken];
    for (size_t j = 0; j < c->n && norm > 0; j++) {
        if (j == taken) continue;
        const double part = product(w, c, taken, j) / norm;
        for (size_t i = 0; i < w->n_fit; i++) c->slopes[i * c->n + j] -= part * c->slopes[i * c->n + taken];
    }
    clear(w, c, taken);
}

/* Half of the interval that a constant would have, with the spread that is left once it is fitted too. */
static double expected_width(const struct dl_calibration_work *w, const struct columns *c, size_t column)
{
    const double norm = product(w, c, column, column), deviations = 2; /* 95 % */
    const double freedom = fmax((double)w->n_fit - (double)w->n_active - 1, 1);
    if (norm <= 0) return INFINITY;
    const double part = part_of_rest(w, c, column);
    double left = -part * part * norm;
    for (size_t i = 0; i < w->n_fit; i++) left += c->rest[i] * c->rest[i];
    return deviations * fmax(sqrt(fmax(left, 0) / freedom), DL_LEAST_SPREAD) / sqrt(norm);
}

/* Which distinct runs there are: times in and out of place say the same twice. */
static size_t count_distinct(const struct dl_calibration_work *w)
{
    size_t n = 0;
    const struct dl_timed_run *last = NULL;
    for (size_t i = 0; i < w->c->n_runs; i++) {
        const struct dl_timed_run *const run = &w->c->runs[i];
        if (run->kept_out) continue;
        n += !last || !dl_same_timed_run(last, run);
        last = run;
    }
    return n;
}

static void note_effects(const struct dl_calibration_work *w, const struct columns *c)
{
    for (size_t j = 0; j < c->n; j++)
        if (w->c->fitted[j].state == DL_FIT_NO_EFFECT && product(w, c, j, j) > 0)
            w->c->fitted[j].state = DL_FIT_NOT_TOLD;
}

size_t dl_calibration_select(struct dl_calibration_work *w, bool first)
{
    const size_t before = w->n_active, most = count_distinct(w) / runs_per_constant;
    struct columns columns = all_slopes(w, first);
    note_effects(w, &columns);
    for (size_t i = 0; i < w->n_active; i++) take_out(w, &columns, w->active[i]);
    for (size_t j = 0; j < columns.n; j++)
        if (w->given_up[j]) clear(w, &columns, j);
    while (w->n_active < most && columns.n) {
        size_t best = 0;
        for (size_t j = 1; j < columns.n; j++)
            if (expected_width(w, &columns, j) < expected_width(w, &columns, best)) best = j;
        if (expected_width(w, &columns, best) > DL_WIDEST_TOLD) break;
        take_out(w, &columns, best);
        w->active[w->n_active++] = best;
    }
    dl_free(columns.slopes);
    dl_free(columns.rest);
    return w->n_active - before;
}
