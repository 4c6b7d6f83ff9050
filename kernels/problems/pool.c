/* pool.c - sums and maxima over windows, pixels and rows. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { planes, height, width, window, stride, pad, rows, columns };

static void complete(int64_t *d)
{
    d[rows] = (d[height] + 2 * d[pad] - d[window]) / d[stride] + 1;
    d[columns] = (d[width] + 2 * d[pad] - d[window]) / d[stride] + 1;
}

static double inputs(const int64_t *d) { return (double)d[planes] * (double)d[height] * (double)d[width]; }
static double outputs(const int64_t *d) { return (double)d[planes] * (double)d[rows] * (double)d[columns]; }
static void forward_values(const int64_t *d, double *v) { v[0] = inputs(d) + outputs(d); }
static void input_values(const int64_t *d, double *v) { v[0] = 2 * inputs(d) + outputs(d); }

/* The first largest of the window of output y, as an index. */
static int64_t largest(const int64_t *d, const double *x, int64_t y)
{
    const int64_t plane = y / (d[rows] * d[columns]), top = y / d[columns] % d[rows] * d[stride] - d[pad];
    const int64_t left = y % d[columns] * d[stride] - d[pad];
    int64_t best = -1;
    for (int64_t i = top < 0 ? 0 : top; i < top + d[window] && i < d[height]; i++)
        for (int64_t j = left < 0 ? 0 : left; j < left + d[window] && j < d[width]; j++) {
            const int64_t at = (plane * d[height] + i) * d[width] + j;
            if (best < 0 || x[at] > x[best]) best = at;
        }
    return best;
}

/* x -> y */
static void forward(const int64_t *d, double *const *t)
{
    for (int64_t y = 0; y < d[planes] * d[rows] * d[columns]; y++) t[1][y] = t[0][largest(d, t[0], y)];
}

/* x, dy -> dx */
static void input_gradient(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[planes] * d[height] * d[width]; i++) t[2][i] = 0;
    for (int64_t y = 0; y < d[planes] * d[rows] * d[columns]; y++) t[2][largest(d, t[0], y)] += t[1][y];
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "x", .shape = "planes height width"}, {.name = "y", .role = DL_OUTPUT, .shape = "planes rows columns"}};
static const struct dl_tensor_spec input_tensors[] = {
    {.name = "x", .shape = "planes height width"},
    {.name = "dy", .shape = "planes rows columns"},
    {.name = "dx", .role = DL_OUTPUT, .shape = "planes height width"}};

static const int64_t odd[][DL_MAX_DIMS] = {{1, 1, 1, 1, 1, 0},   {3, 7, 9, 2, 2, 0},   {2, 13, 11, 3, 2, 1},
                                           {5, 8, 8, 3, 1, 1},   {4, 5, 6, 5, 5, 0},   {2, 70, 112, 3, 2, 1},
                                           {2, 50, 99, 2, 3, 0}, {3, 21, 24, 3, 2, 1}, {0}};
#define SQUARE(planes, side, window, stride, pad)                                                                      \
    {                                                                                                                  \
        planes, side, side, window, stride, pad                                                                        \
    }
static const int64_t timed[][DL_MAX_DIMS] = {
    SQUARE(384, 28, 2, 2, 0),   SQUARE(1024, 10, 2, 2, 0),  SQUARE(256, 112, 3, 2, 1), SQUARE(768, 55, 3, 2, 0),
    SQUARE(2048, 27, 3, 2, 0),  SQUARE(2048, 13, 3, 2, 0),  SQUARE(64, 224, 2, 2, 0),  SQUARE(512, 56, 2, 2, 0),
    SQUARE(2048, 112, 3, 2, 1), SQUARE(8192, 112, 3, 2, 1), SQUARE(99, 33, 3, 1, 1),   {0},
};

#define POOL(the_pass, the_doc, tensor_list, the_values, the_reference)                                                \
    {                                                                                                                  \
        .name = "pool", .pass = the_pass, .doc = the_doc,                                                              \
        .dims = {"planes", "height", "width", "window", "stride", "pad", "rows", "columns"}, .n_given = 6,             \
        DL_TENSORS(tensor_list), .row = DL_ROW_MEMORY, .complete = complete, .values = the_values,                     \
        .reference = the_reference, .odd = odd, .timed = timed                                                         \
    }
const struct dl_problem dl_problem_pool =
    POOL("forward", "the largest of each window", forward_tensors, forward_values, forward);
const struct dl_problem dl_problem_pool_input_gradient =
    POOL("input_gradient", "gradient of its input", input_tensors, input_values, input_gradient);

/* Means over all pixels of a plane, and sums over the rows of a matrix. */
enum { first, second };

static void global_values(const int64_t *d, double *v) { v[0] = (double)d[first] * (double)(d[second] + 1); }

static void global_forward(const int64_t *d, double *const *t)
{
    for (int64_t p = 0; p < d[first]; p++) {
        t[1][p] = 0;
        for (int64_t i = 0; i < d[second]; i++) t[1][p] += t[0][p * d[second] + i] / (double)d[second];
    }
}

static void global_input(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[first] * d[second]; i++) t[1][i] = t[0][i / d[second]] / (double)d[second];
}

static void bias_values(const int64_t *d, double *v) { v[0] = (double)d[first] * (double)d[second]; }

static void bias_gradient(const int64_t *d, double *const *t)
{
    for (int64_t j = 0; j < d[second]; j++) {
        t[1][j] = 0;
        for (int64_t i = 0; i < d[first]; i++) t[1][j] += t[0][i * d[second] + j];
    }
}

static const struct dl_tensor_spec global_tensors[] = {{.name = "x", .shape = "planes pixels"},
                                                       {.name = "y", .role = DL_OUTPUT, .shape = "planes"}};
static const struct dl_tensor_spec global_input_tensors[] = {
    {.name = "dy", .shape = "planes"}, {.name = "dx", .role = DL_OUTPUT, .shape = "planes pixels"}};
static const struct dl_tensor_spec bias_tensors[] = {{.name = "dy", .shape = "rows width"},
                                                     {.name = "dbias", .role = DL_OUTPUT, .shape = "width"}};

static const int64_t odd_pairs[][DL_MAX_DIMS] = {{1, 1}, {3, 49}, {130, 7}, {33, 65}, {257, 1000}, {0}};
static const int64_t timed_planes[][DL_MAX_DIMS] = {{512, 49},  {2048, 49},   {16384, 49},   {65536, 49}, {4096, 196},
                                                    {1000, 33}, {262144, 49}, {2097152, 49}, {0}};
static const int64_t timed_biases[][DL_MAX_DIMS] = {{32, 10},      {32, 1000},    {128, 4096},  {1024, 768},
                                                    {1024, 3072},  {1000, 999},   {4096, 1024}, {8192, 1600},
                                                    {2048, 12288}, {8192, 16384}, {0}};

#define PAIR(the_name, the_pass, the_doc, one, two, tensor_list, the_values, the_reference, the_timed)                 \
    {                                                                                                                  \
        .name = the_name, .pass = the_pass, .doc = the_doc, .dims = {one, two}, .n_given = 2, DL_TENSORS(tensor_list), \
        .row = DL_ROW_MEMORY, .values = the_values, .reference = the_reference, .odd = odd_pairs, .timed = the_timed   \
    }
const struct dl_problem dl_problem_global_pool =
    PAIR("global_pool", "forward", "the mean of each plane", "planes", "pixels", global_tensors, global_values,
         global_forward, timed_planes);
const struct dl_problem dl_problem_global_pool_input_gradient =
    PAIR("global_pool", "input_gradient", "gradient of its input", "planes", "pixels", global_input_tensors,
         global_values, global_input, timed_planes);
const struct dl_problem dl_problem_bias_weight_gradient =
    PAIR("bias", "weight_gradient", "the sum of all rows", "rows", "width", bias_tensors, bias_values, bias_gradient,
         timed_biases);
