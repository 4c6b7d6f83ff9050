/* grouped_gemm.c - a linear layer of every expert, on the tokens that it got: as many as dl_group_begin says. The
 * passes are those of gemm.c, with the tokens of all experts one after the other. */
#include "kernels/problems/problems.h"

enum { groups, tokens, outputs, inputs };

static double flop(const int64_t *d) { return 2.0 * (double)d[tokens] * (double)d[outputs] * (double)d[inputs]; }

static double tokens_each(const int64_t *d) { return (double)d[tokens] / (double)d[groups]; }

static void set(double *v, double b, double m, double n, double k) { v[0] = b, v[1] = m, v[2] = n, v[3] = k; }

static void forward_values(const int64_t *d, double *v)
{
    set(v, (double)d[groups], tokens_each(d), (double)d[outputs], (double)d[inputs]);
}

static void input_values(const int64_t *d, double *v)
{
    set(v, (double)d[groups], tokens_each(d), (double)d[inputs], (double)d[outputs]);
}

static void weight_values(const int64_t *d, double *v)
{
    set(v, (double)d[groups], (double)d[inputs], (double)d[outputs], tokens_each(d));
}

/* Calls `visit` for every product that is to be added: token i of expert g, output o, input c. */
static void each(const int64_t *d, double *const *t, dl_visitor *visit)
{
    for (int64_t g = 0; g < d[groups]; g++)
        for (int64_t i = dl_group_begin(g, d[groups], d[tokens]); i < dl_group_begin(g + 1, d[groups], d[tokens]); i++)
            for (int64_t o = 0; o < d[outputs]; o++)
                for (int64_t c = 0; c < d[inputs]; c++)
                    visit(t, i * d[inputs] + c, (g * d[outputs] + o) * d[inputs] + c, i * d[outputs] + o);
}

static void forward(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[tokens] * d[outputs]);
    each(d, t, dl_add_forward);
}

static void input_gradient(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[tokens] * d[inputs]);
    each(d, t, dl_add_input);
}

static void weight_gradient(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[groups] * d[outputs] * d[inputs]);
    each(d, t, dl_add_weight);
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "x", .shape = "tokens inputs"},
    {.name = "w", .shape = "groups outputs inputs"},
    {.name = "y", .role = DL_OUTPUT, .shape = "tokens outputs"},
};
static const struct dl_tensor_spec input_tensors[] = {
    {.name = "dy", .shape = "tokens outputs"},
    {.name = "w", .shape = "groups outputs inputs"},
    {.name = "dx", .role = DL_OUTPUT, .shape = "tokens inputs"},
};
static const struct dl_tensor_spec weight_tensors[] = {
    {.name = "x", .shape = "tokens inputs"},
    {.name = "dy", .shape = "tokens outputs"},
    {.name = "dw", .role = DL_OUTPUT, .shape = "groups outputs inputs"},
};

/* Few tokens: some experts get none. Where matrices must be aligned, only rows of eight numbers are. */
static const int64_t odd[][DL_MAX_DIMS] = {{1, 5, 3, 2},   {4, 37, 9, 17},    {5, 3, 4, 6}, {8, 100, 33, 31},
                                           {6, 11, 8, 16}, {3, 301, 136, 72}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {4, 1024, 256, 256},     {8, 512, 512, 256},
    {8, 1024, 3072, 768},    {8, 1024, 768, 3072},
    {16, 2048, 1024, 512},   {64, 4096, 2048, 768},
    {8, 8192, 14336, 4096},  {8, 8192, 4096, 14336},
    {64, 16384, 2048, 2048}, {0},
};

#define GROUPED(tensor_list, the_pass, the_doc, the_reference, the_values)                                             \
    {                                                                                                                  \
        .name = "grouped_gemm", .pass = the_pass, .doc = the_doc, .dims = {"groups", "tokens", "outputs", "inputs"},   \
        .n_given = 4, DL_TENSORS(tensor_list), .row = DL_ROW_PRODUCT, .flop = flop, .values = the_values,              \
        .reference = the_reference, .odd = odd, .timed = timed                                                         \
    }
const struct dl_problem dl_problem_grouped_gemm =
    GROUPED(forward_tensors, "forward", "a linear layer of every expert", forward, forward_values);
const struct dl_problem dl_problem_grouped_gemm_input_gradient =
    GROUPED(input_tensors, "input_gradient", "gradient of its input", input_gradient, input_values);
const struct dl_problem dl_problem_grouped_gemm_weight_gradient =
    GROUPED(weight_tensors, "weight_gradient", "gradient of its weights", weight_gradient, weight_values);
