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

/* With sequence parallelism a product by columns keeps of its input the rows of this rank, and gathers the others again
 * for the gradient of its weights (Korthikanti et al., MLSys 2023, section 4.2.2). */
static bool gathers_again(const struct dl_train *t, const struct dl_unit *u)
{
    return t->sequence && u->cols.n < u->outputs && !u->is_first;
}

static struct dl_rows keep_own(const struct dl_train *t, struct dl_rows x)
{
    const size_t n = x.n / (size_t)t->tensor.n;
    const struct dl_rows own = dl_rows_copy((struct dl_rows){x.at + n * x.width * (size_t)t->tensor.rank, n, x.width});
    dl_rows_free(&x);
    return own;
}

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_rows y = dl_rows_new(x.n, u->cols.n);
    t->product->forward(t, u, x, y);
    memo->given = gathers_again(t, u) ? keep_own(t, x) : x;
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
    if (gathers_again(t, u)) memo->given = dl_tensor_enter(t, memo->given);
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

static void sum_rows(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_rows dy = memo->gradient;
    (void)t;
    for (size_t i = 0; i < dy.n; i++)
        for (size_t j = 0; j < dy.width; j++) u->gradients[j] += dy.at[i * dy.width + j];
}

const struct dl_unit_kind dl_unit_bias = {"bias", add_bias, dl_keep_gradient, sum_rows};
