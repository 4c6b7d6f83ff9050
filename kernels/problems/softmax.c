/* softmax.c - softmax of every row, and the cross entropy of rows of logits, which are kept in fp32. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { rows, width };

static double elements(const int64_t *d) { return (double)d[rows] * (double)d[width]; }
static void forward_values(const int64_t *d, double *v) { v[0] = 2 * elements(d); }
static void input_values(const int64_t *d, double *v) { v[0] = 3 * elements(d); }
/* Two passes over fp32, which counts twice. */
static void entropy_values(const int64_t *d, double *v) { v[0] = 4 * elements(d); }

/* Returns the logarithm of the sum. */
static double softmax_row(const double *x, double *y, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++) sum += y[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++) y[i] /= sum;
    return most + log(sum);
}

/* x -> y */
static void softmax(const int64_t *d, double *const *t)
{
    for (int64_t at = 0; at < d[rows] * d[width]; at += d[width]) softmax_row(t[0] + at, t[1] + at, d[width]);
}

/* y, dy -> dx */
static void softmax_input(const int64_t *d, double *const *t)
{
    for (int64_t at = 0; at < d[rows] * d[width]; at += d[width]) {
        double sum = 0;
        for (int64_t i = at; i < at + d[width]; i++) sum += t[0][i] * t[1][i];
        for (int64_t i = at; i < at + d[width]; i++) t[2][i] = t[0][i] * (t[1][i] - sum);
    }
}

/* Any positive rows that sum to one are a softmax. */
static void softmax_derive(const int64_t *d, double *const *t)
{
    for (int64_t at = 0; at < d[rows] * d[width]; at += d[width]) softmax_row(t[0] + at, t[0] + at, d[width]);
}

/* x, target -> y (a loss for each row), p */
static void entropy(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++) {
        const double *const x = t[0] + r * d[width];
        t[2][r] = softmax_row(x, t[3] + r * d[width], d[width]) - x[(int64_t)t[1][r]];
    }
}

/* p, target, dy -> dx */
static void entropy_input(const int64_t *d, double *const *t)
{
    for (int64_t r = 0; r < d[rows]; r++)
        for (int64_t i = 0; i < d[width]; i++)
            t[3][r * d[width] + i] = t[2][r] * (t[0][r * d[width] + i] - (i == (int64_t)t[1][r]));
}

static const struct dl_tensor_spec softmax_tensors[] = {{.name = "x", .shape = "rows width"},
                                                        {.name = "y", .role = DL_OUTPUT, .shape = "rows width"}};
static const struct dl_tensor_spec softmax_input_tensors[] = {
    {.name = "y", .shape = "rows width", .fill = DL_FILL_POSITIVE},
    {.name = "dy", .shape = "rows width"},
    {.name = "dx", .role = DL_OUTPUT, .shape = "rows width"}};

#define MATRIX(n, r)                                                                                                   \
    {                                                                                                                  \
        .name = n, .role = r, .shape = "rows width", .store = DL_STORE_FLOAT                                           \
    }
#define TARGET                                                                                                         \
    {                                                                                                                  \
        .name = "target", .shape = "rows", .store = DL_STORE_INT, .fill = DL_FILL_BELOW, .below = "width"              \
    }
static const struct dl_tensor_spec entropy_tensors[] = {
    MATRIX("x", DL_INPUT),
    TARGET,
    {.name = "y", .role = DL_OUTPUT, .shape = "rows", .store = DL_STORE_FLOAT},
    MATRIX("p", DL_OUTPUT)};
static const struct dl_tensor_spec entropy_input_tensors[] = {
    {.name = "p", .shape = "rows width", .store = DL_STORE_FLOAT, .fill = DL_FILL_POSITIVE},
    TARGET,
    {.name = "dy", .shape = "rows", .store = DL_STORE_FLOAT},
    MATRIX("dx", DL_OUTPUT)};

/* Long rows are shared by many threads of a GPU, and by several blocks of them. */
static const int64_t odd[][DL_MAX_DIMS] = {{1, 1},   {3, 7},    {65, 2},    {2, 1023},   {7, 5001}, {31, 1000},
                                           {33, 64}, {3, 4096}, {2, 20000}, {1, 100000}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {64, 64},    {128, 128},  {1000, 333},  {1536, 128},   {12288, 128},  {4096, 512},    {12288, 1024},
    {8192, 512}, {3072, 256}, {2048, 2048}, {98304, 1024}, {65536, 2048}, {131072, 4096}, {0},
};
/* A row for each image, with 10 or 1000 classes, and a row for each token. */
static const int64_t timed_entropy[][DL_MAX_DIMS] = {
    {32, 10},     {128, 10},    {32, 1000},   {128, 1000},   {256, 1000},   {512, 1000},   {64, 32000},    {128, 50257},
    {512, 30522}, {1024, 8192}, {512, 50257}, {1024, 50257}, {4096, 32000}, {8192, 50304}, {4096, 128256}, {0},
};

#define ROWS(the_name, the_pass, the_doc, tensor_list, the_values, the_reference, the_timed)                           \
    .name = the_name, .pass = the_pass, .doc = the_doc, .dims = {"rows", "width"}, .n_given = 2,                       \
    DL_TENSORS(tensor_list), .row = DL_ROW_MEMORY, .values = the_values, .reference = the_reference, .odd = odd,       \
    .timed = the_timed
const struct dl_problem dl_problem_softmax = {
    ROWS("softmax", "forward", "softmax of every row", softmax_tensors, forward_values, softmax, timed)};
const struct dl_problem dl_problem_softmax_input_gradient = {ROWS("softmax", "input_gradient", "gradient of its input",
                                                                  softmax_input_tensors, input_values, softmax_input,
                                                                  timed),
                                                             .derive = softmax_derive};
const struct dl_problem dl_problem_cross_entropy = {ROWS("cross_entropy", "forward", "a loss for each row of logits",
                                                         entropy_tensors, entropy_values, entropy, timed_entropy)};
const struct dl_problem dl_problem_cross_entropy_input_gradient = {ROWS("cross_entropy", "input_gradient",
                                                                        "gradient of the logits", entropy_input_tensors,
                                                                        entropy_values, entropy_input, timed_entropy),
                                                                   .derive = softmax_derive};
