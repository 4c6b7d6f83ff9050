/* gemm_gelu.c - the linear layers around GELU, which libraries do in one with it.
 *
 *     forward          z = x w^T + bias, y = gelu(z)                             m tokens, n outputs, k inputs
 *     input_gradient   dz = (dnext w) gelu'(z), dbias the sum of its rows        k outputs of the next layer, n inputs
 *
 * z is kept for backward. The gradients of the weights are those of gemm.c. */
#include "kernels/problems/problems.h"

enum { m, n, k };

static double flop(const int64_t *d) { return 2.0 * (double)d[m] * (double)d[n] * (double)d[k]; }

static void values(const int64_t *d, double *v)
{
    v[0] = 1;
    for (int i = 0; i < 3; i++) v[1 + i] = (double)d[i];
}

/* x, w, bias -> y, z */
static void forward(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[m]; i++)
        for (int64_t j = 0; j < d[n]; j++) {
            double z = t[2][j];
            for (int64_t l = 0; l < d[k]; l++) z += t[0][i * d[k] + l] * t[1][j * d[k] + l];
            t[3][i * d[n] + j] = dl_gelu(z);
            t[4][i * d[n] + j] = z;
        }
}

/* dnext, w, z -> dz, dbias */
static void input_gradient(const int64_t *d, double *const *t)
{
    for (int64_t j = 0; j < d[n]; j++) t[4][j] = 0;
    for (int64_t i = 0; i < d[m]; i++)
        for (int64_t j = 0; j < d[n]; j++) {
            double dy = 0;
            for (int64_t l = 0; l < d[k]; l++) dy += t[0][i * d[k] + l] * t[1][l * d[n] + j];
            t[3][i * d[n] + j] = dy * dl_gelu_slope(t[2][i * d[n] + j]);
            t[4][j] += t[3][i * d[n] + j];
        }
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "x", .shape = "m k"},
    {.name = "w", .shape = "n k"},
    {.name = "bias", .shape = "n"},
    {.name = "y", .role = DL_OUTPUT, .shape = "m n"},
    {.name = "z", .role = DL_OUTPUT, .shape = "m n"},
};
static const struct dl_tensor_spec input_tensors[] = {
    {.name = "dnext", .shape = "m k"},
    {.name = "w", .shape = "k n"},
    {.name = "z", .shape = "m n"},
    {.name = "dz", .role = DL_OUTPUT, .shape = "m n"},
    {.name = "dbias", .role = DL_OUTPUT, .shape = "n"},
};

static const int64_t odd[][DL_MAX_DIMS] = {{1, 1, 1}, {7, 5, 3}, {24, 40, 8}, {64, 136, 72}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {64, 256, 64},       {512, 4096, 1024},   {1024, 3072, 768},
    {2048, 6144, 1536},  {8192, 6400, 1600},  {2048, 16384, 4096},
    {4096, 16384, 4096}, {2048, 6144, 12288}, {0},
};

#define FUSED(tensor_list, the_pass, the_doc, the_reference)                                                           \
    {                                                                                                                  \
        .name = "gemm_gelu", .pass = the_pass, .doc = the_doc, .dims = {"m", "n", "k"}, .n_given = 3,                  \
        DL_TENSORS(tensor_list), .row = DL_ROW_PRODUCT, .is_no_workloads = true, .flop = flop, .values = values,       \
        .reference = the_reference, .odd = odd, .timed = timed                                                         \
    }
const struct dl_problem dl_problem_gemm_gelu = FUSED(forward_tensors, "forward", "a linear layer and GELU", forward);
const struct dl_problem dl_problem_gemm_gelu_input_gradient =
    FUSED(input_tensors, "input_gradient", "back through the next layer and GELU", input_gradient);
