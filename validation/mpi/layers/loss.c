/* loss.c - softmax and cross entropy of rows of logits, whose columns may be cut over ranks.
 *
 * The loss of a step is the mean over all rows of all samples; ranks that have the same rows count them together once.
 */
#include <math.h>

#include "validation/mpi/layers/units.h"

struct cut {
    const struct dl_team *team; /* of those that have other columns of the same rows; NULL: none */
    struct dl_range cols, rows;
    double share; /* of the loss that this rank counts */
};

static void over_team(const struct cut *cut, double *values, size_t n, MPI_Op op)
{
    if (cut->team && cut->team->n > 1) MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, op, cut->team->comm);
}

/* Turns logits into the gradient of the loss; adds to the loss. */
static double soften(const struct cut *cut, struct dl_rows z, const uint32_t *targets, double weight)
{
    double *const most = dl_alloc(3 * z.n * sizeof *most), *const sums = most + z.n, *const hits = sums + z.n;
    double loss = 0;
    for (size_t i = 0; i < z.n; i++) {
        most[i] = -INFINITY;
        for (size_t j = 0; j < z.width; j++) most[i] = fmax(most[i], (double)z.at[i * z.width + j]);
    }
    over_team(cut, most, z.n, MPI_MAX);
    for (size_t i = 0; i < z.n; i++)
        for (size_t j = 0; j < z.width; j++) {
            const double shifted = (double)z.at[i * z.width + j] - most[i];
            sums[i] += exp(shifted);
            if (cut->cols.from + j == targets[i]) hits[i] = shifted;
        }
    over_team(cut, sums, 2 * z.n, MPI_SUM);
    for (size_t i = 0; i < z.n; i++) {
        loss += log(sums[i]) - hits[i];
        for (size_t j = 0; j < z.width; j++) {
            dl_real *const at = &z.at[i * z.width + j];
            *at = (dl_real)(weight * (exp((double)*at - most[i]) / sums[i] - (cut->cols.from + j == targets[i])));
        }
    }
    dl_free(most);
    return loss;
}

static struct dl_rows forward(struct dl_train *t, const struct cut *cut, struct dl_memo *memo, struct dl_rows z)
{
    const double weight = 1 / (t->s->global_batch * (double)t->rows_per_sample);
    const double loss = soften(cut, z, dl_targets(t) + cut->rows.from, weight);
    if (!t->again) t->loss += cut->share * weight * loss;
    memo->given = z;
    return (struct dl_rows){0};
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const struct dl_rows dz = memo->given;
    (void)t, (void)u, (void)dy;
    memo->given = (struct dl_rows){0};
    return dz;
}

static struct dl_rows outside(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows z)
{
    struct cut cut = {.cols = dl_cols_outside(t, t->n_classes), .rows = dl_rows_outside(t)};
    (void)u;
    if (t->summa) cut.team = &t->row;
    cut.share = t->summa ? 1.0 / t->row.n : t->sequence ? 1 : 1.0 / t->tensor.n;
    return forward(t, &cut, memo, z);
}

static struct dl_rows inside(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows z)
{
    const struct cut cut = {.team = &t->tensor,
                            .cols = dl_part_of(t->n_classes, (size_t)t->tensor.rank, (size_t)t->tensor.n),
                            .rows = {0, z.n},
                            .share = 1.0 / t->tensor.n};
    if (t->summa) return outside(t, u, memo, z);
    return forward(t, &cut, memo, z);
}

const struct dl_unit_kind dl_unit_loss = {"loss", outside, backward, NULL};
const struct dl_unit_kind dl_unit_parallel_loss = {"parallel_loss", inside, backward, NULL};
