/* norm.c - LayerNorm (Ba et al., arXiv 1607.06450); rows may be cut over the ranks of a grid's row. The parameters are
 * what is added to a gain of 1, and a bias. */
#include <math.h>

#include "validation/mpi/layers/units.h"

/* Two sums of each row, over all of its columns. */
static void sum_rows(struct dl_train *t, double *sums, size_t n)
{
    if (!t->summa || t->row.n == 1) return;
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)(2 * n), MPI_DOUBLE, MPI_SUM, t->row.comm);
    dl_switch_cause(&t->timeline, before);
}

/* Keeps the normalised rows as what it was given, and one over the deviation of each. */
static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const double epsilon = 1e-5, width = (double)u->outputs;
    const dl_real *const gain = u->values, *const bias = u->values + u->cols.n;
    const struct dl_rows y = dl_rows_new(x.n, x.width);
    double *const sums = dl_alloc(2 * x.n * sizeof *sums);
    memo->more = dl_alloc(x.n * sizeof *memo->more);
    for (size_t i = 0; i < x.n; i++)
        for (size_t j = 0; j < x.width; j++) {
            const double value = (double)x.at[i * x.width + j];
            sums[2 * i] += value;
            sums[2 * i + 1] += value * value;
        }
    sum_rows(t, sums, x.n);
    for (size_t i = 0; i < x.n; i++) {
        const double mean = sums[2 * i] / width, variance = sums[2 * i + 1] / width - mean * mean;
        memo->more[i] = (dl_real)(1 / sqrt(variance + epsilon));
        for (size_t j = 0; j < x.width; j++) {
            dl_real *const normal = &x.at[i * x.width + j];
            *normal = (*normal - (dl_real)mean) * memo->more[i];
            y.at[i * x.width + j] = *normal * (1 + gain[j]) + bias[j];
        }
    }
    memo->given = x;
    dl_free(sums);
    return y;
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const double width = (double)u->outputs;
    const struct dl_rows x = memo->given, dx = dl_rows_new(dy.n, dy.width);
    double *const sums = dl_alloc(2 * dy.n * sizeof *sums);
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++) {
            const size_t at = i * dy.width + j;
            dx.at[at] = dy.at[at] * (1 + u->values[j]);
            sums[2 * i] += (double)dx.at[at];
            sums[2 * i + 1] += (double)dx.at[at] * (double)x.at[at];
        }
    sum_rows(t, sums, dy.n);
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++) {
            const size_t at = i * dy.width + j;
            const double along = (sums[2 * i] + (double)x.at[at] * sums[2 * i + 1]) / width;
            dx.at[at] = memo->more[i] * (dl_real)((double)dx.at[at] - along);
        }
    memo->gradient = dy;
    dl_free(sums);
    return dx;
}

static void weights(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_rows dy = memo->gradient;
    (void)t;
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++) {
            u->gradients[j] += dy.at[i * dy.width + j] * memo->given.at[i * dy.width + j];
            u->gradients[u->cols.n + j] += dy.at[i * dy.width + j];
        }
}

const struct dl_unit_kind dl_unit_layernorm = {"layernorm", forward, backward, weights};
