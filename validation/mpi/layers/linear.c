/* linear.c - y = x W with BLAS, and the bias after it. */
#include "validation/mpi/layers/gemm.h"
#include "validation/mpi/layers/units.h"

static void multiply(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows y)
{
    (void)t;
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)x.n, (int)y.width, (int)x.width, 1, x.at, (int)x.width,
            u->values, (int)y.width, 0, y.at, (int)y.width);
}

static void input_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_rows dy, struct dl_rows dx)
{
    (void)t;
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)dy.n, (int)dx.width, (int)dy.width, 1, dy.at, (int)dy.width,
            u->values, (int)dy.width, 0, dx.at, (int)dx.width);
}

static void weight_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_rows x, struct dl_rows dy)
{
    (void)t;
    dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)x.width, (int)dy.width, (int)x.n, 1, x.at, (int)x.width,
            dy.at, (int)dy.width, 1, u->gradients, (int)dy.width);
}

const struct dl_product_way dl_product_alone = {multiply, input_gradient, weight_gradient};

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_rows y = dl_rows_new(x.n, u->cols.n);
    t->product->forward(t, u, x, y);
    memo->given = x;
    return y;
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    memo->gradient = dy;
    if (u->is_first) return (struct dl_rows){0};
    const struct dl_rows dx = dl_rows_new(dy.n, memo->given.width);
    t->product->input_gradient(t, u, dy, dx);
    return dx;
}

static void weights(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    t->product->weight_gradient(t, u, memo->given, memo->gradient);
}

const struct dl_unit_kind dl_unit_linear = {"linear", forward, backward, weights};

static struct dl_rows add_bias(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)t, (void)memo;
    for (size_t i = 0; i < x.n; i++)
        for (size_t j = 0; j < x.width; j++) x.at[i * x.width + j] += u->values[j];
    return x;
}

static struct dl_rows keep_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo,
                                    struct dl_rows dy)
{
    (void)t, (void)u;
    memo->gradient = dl_rows_copy(dy);
    return dy;
}

static void sum_rows(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_rows dy = memo->gradient;
    (void)t;
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++) u->gradients[j] += dy.at[i * dy.width + j];
}

const struct dl_unit_kind dl_unit_bias = {"bias", add_bias, keep_gradient, sum_rows};
