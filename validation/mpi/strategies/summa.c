/* summa.c - products by panels on a grid of ranks (SUMMA, van de Geijn and Watts 1997): A, B and C are cut into blocks,
 * by rows over the columns of ranks and by columns over the rows of ranks.
 *
 *   C  = A B      panel of A along the row, panel of B along the column, product added to C
 *   dA = dC B^T   panel of B along the column, product, its sum along the row where the panel belongs
 *   dB = A^T dC   panel of A along the row, product, its sum along the column where the panel belongs
 *
 * As many panels as the least common multiple of the sides of the grid, as in dlsim (strategies/tensor_summa.c). */
#include <string.h>

#include "validation/mpi/layers/gemm.h"
#include "validation/mpi/layers/units.h"

static size_t common_divisor(size_t a, size_t b) { return b ? common_divisor(b, a % b) : a; }

/* A panel is `width` of the inner dimension of n, and lies in one column of A's blocks and one row of B's. */
struct panel {
    size_t width;
    int of_column, of_row; /* who has it: of A the rank of that column, of B that of that row */
    size_t in_a, in_b;     /* where in their blocks */
};

static size_t n_panels(const struct dl_train *t)
{
    const size_t x = (size_t)t->row.n, y = (size_t)t->column.n;
    return x / common_divisor(x, y) * y;
}

static struct panel panel_at(const struct dl_train *t, size_t inner, size_t i)
{
    const size_t width = inner / n_panels(t), from = i * width;
    const size_t in_column = inner / (size_t)t->row.n, in_row = inner / (size_t)t->column.n;
    return (struct panel){width, (int)(from / in_column), (int)(from / in_row), from % in_column, from % in_row};
}

/* Columns from..from + width of a block, along the row of ranks. */
static void spread_columns(struct dl_train *t, struct dl_rows block, const struct panel *p, dl_real *out)
{
    if (t->row.rank == p->of_column)
        for (size_t i = 0; i < block.n; i++)
            memcpy(out + i * p->width, block.at + i * block.width + p->in_a, p->width * sizeof *out);
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
    dl_tree_broadcast(&t->row, out, block.n * p->width, p->of_column);
    dl_switch_cause(&t->timeline, before);
}

/* Rows of the weights, along the column of ranks. */
static void spread_rows(struct dl_train *t, const struct dl_unit *u, const struct panel *p, dl_real *out)
{
    const size_t n = p->width * u->cols.n;
    if (t->column.rank == p->of_row) memcpy(out, u->values + p->in_b * u->cols.n, n * sizeof *out);
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
    dl_tree_broadcast(&t->column, out, n, p->of_row);
    dl_switch_cause(&t->timeline, before);
}

static void collect(struct dl_train *t, const struct dl_team *team, dl_real *values, size_t n, int root)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
    dl_tree_reduce(team, values, n, root);
    dl_switch_cause(&t->timeline, before);
}

static void forward(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows y)
{
    const size_t most = u->inputs / n_panels(t);
    dl_real *const a = dl_alloc(x.n * most * sizeof *a), *const b = dl_alloc(most * y.width * sizeof *b);
    for (size_t i = 0; i < n_panels(t); i++) {
        const struct panel p = panel_at(t, u->inputs, i);
        spread_columns(t, x, &p, a);
        spread_rows(t, u, &p, b);
        dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)x.n, (int)y.width, (int)p.width, 1, a, (int)p.width, b,
                (int)y.width, i ? 1 : 0, y.at, (int)y.width);
    }
    dl_free(a);
    dl_free(b);
}

static void input_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_rows dy, struct dl_rows dx)
{
    const size_t most = u->inputs / n_panels(t);
    dl_real *const a = dl_alloc(dy.n * most * sizeof *a), *const b = dl_alloc(most * dy.width * sizeof *b);
    for (size_t i = 0; i < n_panels(t); i++) {
        const struct panel p = panel_at(t, u->inputs, i);
        spread_rows(t, u, &p, b);
        dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)dy.n, (int)p.width, (int)dy.width, 1, dy.at,
                (int)dy.width, b, (int)dy.width, 0, a, (int)p.width);
        collect(t, &t->row, a, dy.n * p.width, p.of_column);
        for (size_t j = 0; j < dy.n && t->row.rank == p.of_column; j++)
            memcpy(dx.at + j * dx.width + p.in_a, a + j * p.width, p.width * sizeof *a);
    }
    dl_free(a);
    dl_free(b);
}

static void weight_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows dy)
{
    const size_t most = u->inputs / n_panels(t);
    dl_real *const a = dl_alloc(x.n * most * sizeof *a), *const b = dl_alloc(most * dy.width * sizeof *b);
    for (size_t i = 0; i < n_panels(t); i++) {
        const struct panel p = panel_at(t, u->inputs, i);
        spread_columns(t, x, &p, a);
        dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)p.width, (int)dy.width, (int)x.n, 1, a, (int)p.width,
                dy.at, (int)dy.width, 0, b, (int)dy.width);
        collect(t, &t->column, b, p.width * dy.width, p.of_row);
        dl_real *const to = u->gradients + p.in_b * dy.width;
        for (size_t j = 0; j < p.width * dy.width && t->column.rank == p.of_row; j++) to[j] += b[j];
    }
    dl_free(a);
    dl_free(b);
}

const struct dl_product_way dl_product_summa = {forward, input_gradient, weight_gradient};
