/* embedding.c - tokens looked up in a table whose rows are cut over ranks, and positions added to them. Tokens that are
 * in another rank's part give nothing here; the mark after it adds the parts. On a grid the table comes by panels, one
 * of each rank of the column. */
#include <string.h>

#include "validation/mpi/layers/units.h"

static void add_rows(const dl_real *table, struct dl_range part, struct dl_rows tokens, struct dl_rows y)
{
    for (size_t i = 0; i < tokens.n; i++) {
        const size_t token = (size_t)tokens.at[i];
        if (token - part.from >= part.n) continue;
        for (size_t j = 0; j < y.width; j++) y.at[i * y.width + j] += table[(token - part.from) * y.width + j];
    }
}

static void add_gradients(dl_real *table, struct dl_range part, struct dl_rows tokens, struct dl_rows dy)
{
    for (size_t i = 0; i < tokens.n; i++) {
        const size_t token = (size_t)tokens.at[i];
        if (token - part.from >= part.n) continue;
        for (size_t j = 0; j < dy.width; j++) table[(token - part.from) * dy.width + j] += dy.at[i * dy.width + j];
    }
}

/* On a grid: the tokens of this row of ranks alone. */
static struct dl_rows own_tokens(struct dl_train *t, struct dl_rows all)
{
    const struct dl_range rows = dl_rows_outside(t);
    struct dl_rows own = dl_rows_new(rows.n, 1);
    memcpy(own.at, all.at + rows.from, rows.n * sizeof *own.at);
    dl_rows_free(&all);
    return own;
}

static void look_up_by_panels(struct dl_train *t, const struct dl_unit *u, struct dl_rows tokens, struct dl_rows y)
{
    dl_real *const panel = dl_alloc(u->n_parameters * sizeof *panel);
    for (int i = 0; i < t->column.n; i++) {
        if (i == t->column.rank) memcpy(panel, u->values, u->n_parameters * sizeof *panel);
        const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
        dl_tree_broadcast(&t->column, panel, u->n_parameters, i);
        dl_switch_cause(&t->timeline, before);
        add_rows(panel, dl_part_of(u->inputs, (size_t)i, (size_t)t->column.n), tokens, y);
    }
    dl_free(panel);
}

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows tokens)
{
    memo->given = t->summa ? own_tokens(t, tokens) : tokens;
    const struct dl_rows y = dl_rows_new(memo->given.n, u->cols.n);
    if (t->summa)
        look_up_by_panels(t, u, memo->given, y);
    else
        add_rows(u->values, u->rows, memo->given, y);
    return y;
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    (void)t, (void)u;
    memo->gradient = dy;
    return (struct dl_rows){0};
}

static void weights(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    if (!t->summa) {
        add_gradients(u->gradients, u->rows, memo->given, memo->gradient);
        return;
    }
    dl_real *const panel = dl_alloc(u->n_parameters * sizeof *panel);
    for (int i = 0; i < t->column.n; i++) {
        memset(panel, 0, u->n_parameters * sizeof *panel);
        add_gradients(panel, dl_part_of(u->inputs, (size_t)i, (size_t)t->column.n), memo->given, memo->gradient);
        const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
        dl_tree_reduce(&t->column, panel, u->n_parameters, i);
        dl_switch_cause(&t->timeline, before);
        for (size_t j = 0; j < u->n_parameters && i == t->column.rank; j++) u->gradients[j] += panel[j];
    }
    dl_free(panel);
}

const struct dl_unit_kind dl_unit_look_up = {"look_up", forward, backward, weights};

/* ---- positions ---- */

/* Where the table has the position of a row. */
static size_t position_at(const struct dl_train *t, const struct dl_unit *u, size_t row)
{
    return (dl_rows_outside(t).from + row) % t->rows_per_sample * u->cols.n;
}

static struct dl_rows add_positions(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)memo;
    for (size_t i = 0; i < x.n; i++)
        for (size_t j = 0; j < x.width; j++) x.at[i * x.width + j] += u->values[position_at(t, u, i) + j];
    return x;
}

static void position_gradients(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_rows dy = memo->gradient;
    for (size_t i = 0; i < dy.n; i++) {
        dl_real *const to = u->gradients + position_at(t, u, i);
        for (size_t j = 0; j < dy.width; j++) to[j] += dy.at[i * dy.width + j];
    }
}

const struct dl_unit_kind dl_unit_positions = {"positions", add_positions, dl_keep_gradient, position_gradients};
