#include "sim/report/ranking.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { fewest_ranked = 4 }; /* three runs are in the right order by chance too often */

/* ---- cells ---- */

static bool is_measured(const struct dl_compared *row)
{
    return row->cell && !row->failure && row->quantity == DL_STEP && !isnan(row->measured_s);
}

static bool is_in(const struct dl_compared *row, const char *cell)
{
    return is_measured(row) && strcmp(row->cell, cell) == 0;
}

static bool is_first(const struct dl_compared *const *rows, size_t i)
{
    if (!is_measured(rows[i])) return false;
    for (size_t j = 0; j < i; j++)
        if (is_in(rows[j], rows[i]->cell)) return false;
    return true;
}

struct cell {
    double *predicted_s, *measured_s;
    size_t n;
};

static void fill(struct cell *c, const struct dl_compared *const *rows, size_t n, const char *name)
{
    c->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_in(rows[i], name)) continue;
        c->predicted_s[c->n] = rows[i]->predicted_s;
        c->measured_s[c->n++] = rows[i]->measured_s;
    }
}

static double regret(const struct cell *c)
{
    size_t chosen = 0, best = 0;
    for (size_t i = 1; i < c->n; i++) {
        if (c->predicted_s[i] < c->predicted_s[chosen]) chosen = i;
        if (c->measured_s[i] < c->measured_s[best]) best = i;
    }
    return c->measured_s[chosen] / c->measured_s[best] - 1;
}

/* NAN if all are alike, predicted or measured. */
static double correlation(const struct cell *c)
{
    double *const work = dl_alloc(2 * c->n * sizeof *work);
    const double rho = gsl_stats_spearman(c->predicted_s, 1, c->measured_s, 1, c->n, work);
    dl_free(work);
    return rho;
}

static double mean(const double *x, size_t n) { return n ? gsl_stats_mean(x, 1, n) : NAN; }

static double median(double *x, size_t n)
{
    if (!n) return NAN;
    gsl_sort(x, 1, n);
    return gsl_stats_median_from_sorted_data(x, 1, n);
}

struct dl_ranking dl_ranking_of(const struct dl_compared *const *rows, size_t n)
{
    double *const room = dl_alloc(4 * (n + 1) * sizeof *room);
    struct cell c = {.predicted_s = room, .measured_s = room + n};
    double *const regrets = room + 2 * n, *const correlations = room + 3 * n;
    struct dl_ranking r = {0};
    for (size_t i = 0; i < n; i++) {
        if (!is_first(rows, i)) continue;
        fill(&c, rows, n, rows[i]->cell);
        if (c.n < 2) continue;
        regrets[r.n_cells++] = regret(&c);
        const double rho = c.n < fewest_ranked ? NAN : correlation(&c);
        if (!isnan(rho)) correlations[r.n_ranked++] = rho;
    }
    r.mean_regret = mean(regrets, r.n_cells);
    r.median_regret = median(regrets, r.n_cells);
    r.mean_correlation = mean(correlations, r.n_ranked);
    r.median_correlation = median(correlations, r.n_ranked);
    dl_free(room);
    return r;
}

/* ---- a choice by memory and time ---- */

static bool ran_out(const struct dl_compared *row)
{
    return row->cell && !row->failure && row->quantity == DL_STEP && row->ran == DL_RAN_OUT_OF_MEMORY;
}

/* What the choice would be, and the fastest that was measured. */
struct chosen {
    const struct dl_compared *row, *best;
    size_t n_out; /* in the cell */
};

static struct chosen choose(const struct dl_compared *const *rows, size_t n, const char *cell)
{
    struct chosen c = {0};
    for (size_t i = 0; i < n; i++) {
        const struct dl_compared *const row = rows[i];
        const bool is_out = ran_out(row) && strcmp(row->cell, cell) == 0;
        if (!is_out && !is_in(row, cell)) continue;
        c.n_out += is_out;
        if (row->fits && (!c.row || row->predicted_s < c.row->predicted_s)) c.row = row;
        if (!is_out && (!c.best || row->measured_s < c.best->measured_s)) c.best = row;
    }
    return c;
}

struct dl_choices dl_choices_of(const struct dl_compared *const *rows, size_t n)
{
    double *const regrets = dl_alloc((n + 1) * sizeof *regrets);
    struct dl_choices all = {0};
    size_t n_ran = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_first(rows, i)) continue;
        const struct chosen c = choose(rows, n, rows[i]->cell);
        if (!c.n_out) continue;
        all.n_cells++;
        all.n_none += !c.row;
        all.n_out += c.row && ran_out(c.row);
        if (c.row && !ran_out(c.row)) regrets[n_ran++] = c.row->measured_s / c.best->measured_s - 1;
    }
    all.mean_regret = mean(regrets, n_ran);
    all.median_regret = median(regrets, n_ran);
    dl_free(regrets);
    return all;
}

/* ---- memory ---- */

struct dl_memory_verdicts dl_memory_verdicts_of(const struct dl_compared *const *rows, size_t n)
{
    struct dl_memory_verdicts m = {0};
    for (size_t i = 0; i < n; i++) {
        if (rows[i]->failure || rows[i]->ran == DL_END_NOT_SAID) continue;
        const bool ran = rows[i]->ran == DL_RAN;
        size_t *const place =
            rows[i]->fits ? (ran ? &m.ran_fits : &m.out_fits) : (ran ? &m.ran_does_not : &m.out_does_not);
        ++*place;
    }
    return m;
}

static size_t n_said(const struct dl_memory_verdicts *m)
{
    return m->ran_fits + m->ran_does_not + m->out_fits + m->out_does_not;
}

static double right(const struct dl_memory_verdicts *m)
{
    return (double)(m->ran_fits + m->out_does_not) / (double)n_said(m);
}

struct dl_reserved_errors dl_reserved_errors_of(const struct dl_compared *const *rows, size_t n)
{
    struct dl_reserved_errors e = {0};
    for (size_t i = 0; i < n; i++) {
        if (rows[i]->failure || !(rows[i]->measured_reserved_bytes > 0)) continue;
        const double error = rows[i]->reserved_bytes / rows[i]->measured_reserved_bytes - 1;
        e.mean += fabs(error);
        e.bias += error;
        e.n++;
    }
    e.mean = e.n ? e.mean / (double)e.n : NAN;
    e.bias = e.n ? e.bias / (double)e.n : NAN;
    return e;
}

/* ---- reports ---- */

static void print_ranking(const struct dl_row_family *f)
{
    const struct dl_ranking r = dl_ranking_of(f->rows, f->n_rows);
    if (!r.n_cells) return;
    printf("  %-16.16s regret of the choice %.1f %% in the median of %zu cells, %.1f %% in their mean", f->name,
           100 * r.median_regret, r.n_cells, 100 * r.mean_regret);
    if (r.n_ranked)
        printf("; rank correlation %.2f and %.2f in %zu", r.median_correlation, r.mean_correlation, r.n_ranked);
    putchar('\n');
}

static void print_choices(const struct dl_row_family *f)
{
    const struct dl_choices c = dl_choices_of(f->rows, f->n_rows);
    if (!c.n_cells) return;
    printf("  %-16.16s chosen as search does, the fastest that is said to fit: of %zu cells %zu out of memory, %zu "
           "without "
           "a choice",
           f->name, c.n_cells, c.n_out, c.n_none);
    if (!isnan(c.mean_regret))
        printf("; regret of the others %.1f %% in the median, %.1f %% in the mean", 100 * c.median_regret,
               100 * c.mean_regret);
    putchar('\n');
}

static void print_memory(const struct dl_row_family *f)
{
    const struct dl_memory_verdicts m = dl_memory_verdicts_of(f->rows, f->n_rows);
    if (!n_said(&m)) return;
    printf("  %-16.16s ran: %zu said to fit, %zu not; out of memory: %zu said not to fit, %zu to fit; %.1f %% right\n",
           f->name, m.ran_fits, m.ran_does_not, m.out_does_not, m.out_fits, 100 * right(&m));
}

static void print_reserved(const struct dl_row_family *f)
{
    const struct dl_reserved_errors e = dl_reserved_errors_of(f->rows, f->n_rows);
    if (!e.n) return;
    printf("  %-16.16s reserved bytes: mean error %.1f %%, bias %+.1f %% in %zu rows\n", f->name, 100 * e.mean,
           100 * e.bias, e.n);
}

void dl_promises_text(const struct dl_validation *v)
{
    for (size_t i = 0; i < v->n_families; i++) print_ranking(&v->families[i]);
    for (size_t i = 0; i < v->n_families; i++) print_choices(&v->families[i]);
    for (size_t i = 0; i < v->n_families; i++) print_memory(&v->families[i]);
    for (size_t i = 0; i < v->n_families; i++) print_reserved(&v->families[i]);
}

static json_t *number(double x) { return isnan(x) ? json_null() : dl_json_real(x); }

void dl_promises_add_json(const struct dl_row_family *f, json_t *family)
{
    const struct dl_ranking r = dl_ranking_of(f->rows, f->n_rows);
    const struct dl_choices c = dl_choices_of(f->rows, f->n_rows);
    const struct dl_memory_verdicts m = dl_memory_verdicts_of(f->rows, f->n_rows);
    const struct dl_reserved_errors e = dl_reserved_errors_of(f->rows, f->n_rows);
    if (e.n)
        json_object_set_new(family, "reserved",
                            dl_json_pack("{s:I, s:f, s:f}", "n", (json_int_t)e.n, "mape", e.mean, "bias", e.bias));
    if (r.n_cells)
        json_object_set_new(family, "ranking",
                            dl_json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "cells", (json_int_t)r.n_cells,
                                         "ranked_cells", (json_int_t)r.n_ranked, "median_correlation",
                                         number(r.median_correlation), "mean_correlation", number(r.mean_correlation),
                                         "median_regret", number(r.median_regret), "mean_regret",
                                         number(r.mean_regret)));
    if (c.n_cells)
        json_object_set_new(family, "choices",
                            dl_json_pack("{s:I, s:I, s:I, s:o, s:o}", "cells", (json_int_t)c.n_cells, "out_of_memory",
                                         (json_int_t)c.n_out, "none", (json_int_t)c.n_none, "median_regret",
                                         number(c.median_regret), "mean_regret", number(c.mean_regret)));
    if (n_said(&m))
        json_object_set_new(family, "memory",
                            dl_json_pack("{s:I, s:I, s:I, s:I, s:f}", "ran_fits", (json_int_t)m.ran_fits,
                                         "ran_does_not_fit", (json_int_t)m.ran_does_not, "out_of_memory_fits",
                                         (json_int_t)m.out_fits, "out_of_memory_does_not_fit",
                                         (json_int_t)m.out_does_not, "right", right(&m)));
}
