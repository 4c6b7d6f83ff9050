/* pointwise.c - functions of single values, and ways that part and meet again. */
#include <math.h>
#include <string.h>

#include "validation/mpi/layers/units.h"

/* The pattern of all: the input is kept, the derivative is taken at it. */
static struct dl_rows apply(dl_real (*f)(dl_real), struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_rows y = dl_rows_new(x.n, x.width);
    for (size_t i = 0; i < x.n * x.width; i++) y.at[i] = f(x.at[i]);
    memo->given = x;
    return y;
}

static struct dl_rows apply_slope(dl_real (*slope)(dl_real), const struct dl_memo *memo, struct dl_rows dy)
{
    for (size_t i = 0; i < dy.n * dy.width; i++) dy.at[i] *= slope(memo->given.at[i]);
    return dy;
}

#define POINTWISE(NAME, F, SLOPE)                                                                                      \
    static struct dl_rows NAME##_forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo,            \
                                         struct dl_rows x)                                                             \
    {                                                                                                                  \
        (void)t, (void)u;                                                                                              \
        return apply(F, memo, x);                                                                                      \
    }                                                                                                                  \
    static struct dl_rows NAME##_backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo,           \
                                          struct dl_rows dy)                                                           \
    {                                                                                                                  \
        (void)t, (void)u;                                                                                              \
        return apply_slope(SLOPE, memo, dy);                                                                           \
    }                                                                                                                  \
    const struct dl_unit_kind dl_unit_##NAME = {#NAME, NAME##_forward, NAME##_backward, NULL}

static dl_real relu(dl_real x) { return x > 0 ? x : 0; }
static dl_real relu_slope(dl_real x) { return x > 0; }
POINTWISE(relu, relu, relu_slope);

/* x times the normal distribution (Hendrycks and Gimpel, arXiv 1606.08415). */
static dl_real normal(dl_real x) { return (dl_real)(0.5 * erfc(-(double)x / sqrt(2))); }
static dl_real gelu(dl_real x) { return x * normal(x); }
static dl_real gelu_slope(dl_real x)
{
    const double density = exp(-0.5 * (double)x * (double)x) / sqrt(2 * acos(-1));
    return normal(x) + x * (dl_real)density;
}
POINTWISE(gelu, gelu, gelu_slope);

/* ---- residuals ---- */

static struct dl_rows fork_forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)t, (void)u;
    memo->given = dl_rows_copy(x);
    return x;
}

static void add_to(struct dl_rows sum, struct dl_rows x)
{
    for (size_t i = 0; i < sum.n * sum.width; i++) sum.at[i] += x.at[i];
}

static struct dl_rows fork_backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo,
                                    struct dl_rows dy)
{
    (void)t, (void)u;
    add_to(dy, memo->gradient); /* of the other way, which the join left here */
    return dy;
}

static struct dl_rows join_forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)t;
    add_to(x, (memo - u->other)->given);
    return x;
}

static struct dl_rows join_backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo,
                                    struct dl_rows dy)
{
    (void)t;
    (memo - u->other)->gradient = dl_rows_copy(dy);
    return dy;
}

const struct dl_unit_kind dl_unit_fork = {"fork", fork_forward, fork_backward, NULL};
const struct dl_unit_kind dl_unit_join = {"join", join_forward, join_backward, NULL};
