/* norms.c - layer norm and RMS norm over the rows of a matrix.
 *
 *     y = gain (x - mean) scale + bias,   scale = 1 / sqrt(variance + epsilon)        RMS norm: no mean, no bias
 *
 * mean and scale of each row are kept for backward. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { rows, width };

static double elements(const int64_t *d) { return (double)d[rows] * (double)d[width]; }
static void forward_values(const int64_t *d, double *v) { v[0] = 2 * elements(d); }
static void input_values(const int64_t *d, double *v) { v[0] = 3 * elements(d); }
static void weight_values(const int64_t *d, double *v) { v[0] = 2 * elements(d); }

static double row_mean(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

static double row_scale(const double *x, double mean, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return 1 / sqrt(sum / (double)n + (double)DL_NORM_EPSILON);
}

/* x, gain, bias -> y, mean, scale */
static void layernorm(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++) {
        const double *const x = t[0] + r * d[width];
        t[4][r] = row_mean(x, d[width]);
        t[5][r] = row_scale(x, t[4][r], d[width]);
        for (int64_t i = 0; i < d[width]; i++) t[3][r * d[width] + i] = t[1][i] * (x[i] - t[4][r]) * t[5][r] + t[2][i];
    }
}

/* The mean is a sum that cancels. */
static void layernorm_magnitudes(const int64_t *d, double *const *t, double *const *magnitude)
{
    for (int64_t i = 0; i < d[rows] * d[width]; i++) magnitude[4][i / d[width]] += fabs(t[0][i]) / (double)d[width];
}

/* x, gain -> y, scale */
static void rmsnorm(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++) {
        const double *const x = t[0] + r * d[width];
        t[3][r] = row_scale(x, 0, d[width]);
        for (int64_t i = 0; i < d[width]; i++) t[2][r * d[width] + i] = t[1][i] * x[i] * t[3][r];
    }
}

/* dx = scale (g - mean(g) - z mean(g z)), with g = gain dy and z the normalised x; RMS norm has no mean(g). */
static void input_gradient(const int64_t *d, const double *gain, const double *dy, const double *x, double *dx,
                           const double *mean, double scale)
{
    double sum = 0, sum_z = 0;
    const double centre = mean ? *mean : 0, n = (double)d[width];
    for (int64_t i = 0; i < d[width]; i++) {
        sum += mean ? gain[i] * dy[i] : 0;
        sum_z += gain[i] * dy[i] * (x[i] - centre) * scale;
    }
    for (int64_t i = 0; i < d[width]; i++)
        dx[i] = scale * (gain[i] * dy[i] - sum / n - (x[i] - centre) * scale * sum_z / n);
}

/* x, gain, mean, scale, dy -> dx */
static void layernorm_input(const int64_t *d, double *const *t)
{
    for (int64_t r = 0, at = 0; r < d[rows]; r++, at += d[width])
        input_gradient(d, t[1], t[4] + at, t[0] + at, t[5] + at, &t[2][r], t[3][r]);
}

static void layernorm_derive(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++) {
        t[2][r] = row_mean(t[0] + r * d[width], d[width]);
        t[3][r] = row_scale(t[0] + r * d[width], t[2][r], d[width]);
    }
}

/* x, gain, scale, dy -> dx */
static void rmsnorm_input(const int64_t *d, double *const *t)
{
    for (int64_t r = 0, at = 0; r < d[rows]; r++, at += d[width])
        input_gradient(d, t[1], t[3] + at, t[0] + at, t[4] + at, NULL, t[2][r]);
}

static void rmsnorm_derive(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++) t[2][r] = row_scale(t[0] + r * d[width], 0, d[width]);
}

/* x, gain, mean, scale, dy -> dgain, dbias */
static void layernorm_weight(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[width]; i++) {
        t[5][i] = t[6][i] = 0;
        for (int64_t r = 0; r < d[rows]; r++) {
            t[5][i] += t[4][r * d[width] + i] * (t[0][r * d[width] + i] - t[2][r]) * t[3][r];
            t[6][i] += t[4][r * d[width] + i];
        }
    }
}

/* x, gain, scale, dy -> dgain */
static void rmsnorm_weight(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[width]; i++) {
        t[4][i] = 0;
        for (int64_t r = 0; r < d[rows]; r++) t[4][i] += t[3][r * d[width] + i] * t[0][r * d[width] + i] * t[2][r];
    }
}

#define X                                                                                                              \
    {                                                                                                                  \
        .name = "x", .shape = "rows width"                                                                             \
    }
#define GAIN                                                                                                           \
    {                                                                                                                  \
        .name = "gain", .shape = "width", .fill = DL_FILL_POSITIVE                                                     \
    }
#define STATISTIC(n, r)                                                                                                \
    {                                                                                                                  \
        .name = n, .role = r, .shape = "rows", .store = DL_STORE_FLOAT, .fill = DL_FILL_POSITIVE                       \
    }
#define DY                                                                                                             \
    {                                                                                                                  \
        .name = "dy", .shape = "rows width"                                                                            \
    }
#define RESULT(n, s)                                                                                                   \
    {                                                                                                                  \
        .name = n, .role = DL_OUTPUT, .shape = s                                                                       \
    }
static const struct dl_tensor_spec layernorm_tensors[] = {X,
                                                          GAIN,
                                                          {.name = "bias", .shape = "width"},
                                                          RESULT("y", "rows width"),
                                                          STATISTIC("mean", DL_OUTPUT),
                                                          STATISTIC("scale", DL_OUTPUT)};
static const struct dl_tensor_spec rmsnorm_tensors[] = {X, GAIN, RESULT("y", "rows width"),
                                                        STATISTIC("scale", DL_OUTPUT)};
static const struct dl_tensor_spec layernorm_input_tensors[] = {
    X, GAIN, STATISTIC("mean", DL_INPUT), STATISTIC("scale", DL_INPUT), DY, RESULT("dx", "rows width")};
static const struct dl_tensor_spec rmsnorm_input_tensors[] = {X, GAIN, STATISTIC("scale", DL_INPUT), DY,
                                                              RESULT("dx", "rows width")};
static const struct dl_tensor_spec layernorm_weight_tensors[] = {X,
                                                                 GAIN,
                                                                 STATISTIC("mean", DL_INPUT),
                                                                 STATISTIC("scale", DL_INPUT),
                                                                 DY,
                                                                 RESULT("dgain", "width"),
                                                                 RESULT("dbias", "width")};
static const struct dl_tensor_spec rmsnorm_weight_tensors[] = {X, GAIN, STATISTIC("scale", DL_INPUT), DY,
                                                               RESULT("dgain", "width")};

/* Long rows are shared by many threads of a GPU, and by several blocks of them. */
static const int64_t odd[][DL_MAX_DIMS] = {{1, 5},    {3, 7},    {5, 64},    {17, 129}, {130, 33},
                                           {2, 1001}, {3, 4096}, {2, 20000}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {16, 64},     {64, 256},    {128, 768},   {512, 768},   {1024, 768},   {1000, 999},  {2048, 1024},  {4096, 1600},
    {8192, 1600}, {4096, 4096}, {2048, 5120}, {8192, 4096}, {2048, 12288}, {8192, 8192}, {16384, 8192}, {0},
};

#define NORM(the_name, the_pass, the_doc, tensor_list, the_values, the_reference, the_derive)                          \
    .name = the_name, .pass = the_pass, .doc = the_doc, .dims = {"rows", "width"}, .n_given = 2,                       \
    DL_TENSORS(tensor_list), .row = DL_ROW_MEMORY, .derive = the_derive, .values = the_values,                         \
    .reference = the_reference, .odd = odd, .timed = timed
const struct dl_problem dl_problem_layernorm = {
    NORM("layernorm", "forward", "layer normalisation", layernorm_tensors, forward_values, layernorm, NULL),
    .magnitudes = layernorm_magnitudes};
const struct dl_problem dl_problem_layernorm_input_gradient = {NORM("layernorm", "input_gradient",
                                                                    "gradient of its input", layernorm_input_tensors,
                                                                    input_values, layernorm_input, layernorm_derive)};
const struct dl_problem dl_problem_layernorm_weight_gradient = {
    NORM("layernorm", "weight_gradient", "gradients of gain and bias", layernorm_weight_tensors, weight_values,
         layernorm_weight, layernorm_derive)};
const struct dl_problem dl_problem_rmsnorm = {
    NORM("rmsnorm", "forward", "RMS normalisation", rmsnorm_tensors, forward_values, rmsnorm, NULL)};
const struct dl_problem dl_problem_rmsnorm_input_gradient = {NORM("rmsnorm", "input_gradient", "gradient of its input",
                                                                  rmsnorm_input_tensors, input_values, rmsnorm_input,
                                                                  rmsnorm_derive)};
const struct dl_problem dl_problem_rmsnorm_weight_gradient = {NORM("rmsnorm", "weight_gradient", "gradient of the gain",
                                                                   rmsnorm_weight_tensors, weight_values,
                                                                   rmsnorm_weight, rmsnorm_derive)};
