/* convolution.c - two-dimensional convolutions, samples x channels x height x width, filters in groups. */
#include "kernels/problems/problems.h"

enum { samples, channels, height, width, filters, window, stride, pad, groups, rows, columns, group_channels };

static void complete(int64_t *d)
{
    d[rows] = (d[height] + 2 * d[pad] - d[window]) / d[stride] + 1;
    d[columns] = (d[width] + 2 * d[pad] - d[window]) / d[stride] + 1;
    d[group_channels] = d[channels] / d[groups];
}

static double pixels(const int64_t *d) { return (double)(d[samples] * d[rows] * d[columns]); }
static double depth(const int64_t *d) { return (double)(d[group_channels] * d[window] * d[window]); }
static double group_filters(const int64_t *d) { return (double)d[filters] / (double)d[groups]; }

static double flop(const int64_t *d) { return 2 * pixels(d) * depth(d) * (double)d[filters]; }

static void set(const int64_t *d, double *v, double m, double n, double k)
{
    v[0] = (double)d[groups], v[1] = m, v[2] = n, v[3] = k, v[4] = (double)d[window], v[5] = (double)d[stride];
}

static void forward_values(const int64_t *d, double *v) { set(d, v, pixels(d), group_filters(d), depth(d)); }
static void input_values(const int64_t *d, double *v) { set(d, v, pixels(d), depth(d), group_filters(d)); }
static void weight_values(const int64_t *d, double *v) { set(d, v, depth(d), group_filters(d), pixels(d)); }

/* Visits every product of an input with a weight for one output pixel. */
static void each_tap(const int64_t *d, double *const *t, dl_visitor *visit, int64_t y, int64_t f, int64_t top,
                     int64_t left)
{
    const int64_t s = y / (d[filters] * d[rows] * d[columns]);
    const int64_t first = f / (d[filters] / d[groups]) * d[group_channels];
    for (int64_t c = 0; c < d[group_channels]; c++)
        for (int64_t i = 0; i < d[window]; i++)
            for (int64_t j = 0; j < d[window]; j++) {
                const int64_t row = top + i, column = left + j;
                if (row < 0 || row >= d[height] || column < 0 || column >= d[width]) continue;
                visit(t, ((s * d[channels] + first + c) * d[height] + row) * d[width] + column,
                      ((f * d[group_channels] + c) * d[window] + i) * d[window] + j, y);
            }
}

static void each(const int64_t *d, double *const *t, dl_visitor *visit)
{
    for (int64_t y = 0; y < d[samples] * d[filters] * d[rows] * d[columns]; y++) {
        const int64_t column = y % d[columns], row = y / d[columns] % d[rows];
        each_tap(d, t, visit, y, y / (d[columns] * d[rows]) % d[filters], row * d[stride] - d[pad],
                 column * d[stride] - d[pad]);
    }
}

static void forward(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[samples] * d[filters] * d[rows] * d[columns]);
    each(d, t, dl_add_forward);
}

static void input_gradient(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[samples] * d[channels] * d[height] * d[width]);
    each(d, t, dl_add_input);
}

static void weight_gradient(const int64_t *d, double *const *t)
{
    dl_clear(t[2], d[filters] * d[group_channels] * d[window] * d[window]);
    each(d, t, dl_add_weight);
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "x", .shape = "samples channels height width"},
    {.name = "w", .shape = "filters group_channels window window"},
    {.name = "y", .role = DL_OUTPUT, .shape = "samples filters rows columns"},
};
static const struct dl_tensor_spec input_tensors[] = {
    {.name = "dy", .shape = "samples filters rows columns"},
    {.name = "w", .shape = "filters group_channels window window"},
    {.name = "dx", .role = DL_OUTPUT, .shape = "samples channels height width"},
};
static const struct dl_tensor_spec weight_tensors[] = {
    {.name = "x", .shape = "samples channels height width"},
    {.name = "dy", .shape = "samples filters rows columns"},
    {.name = "dw", .role = DL_OUTPUT, .shape = "filters group_channels window window"},
};

static const int64_t odd[][DL_MAX_DIMS] = {
    {1, 1, 1, 1, 1, 1, 1, 0, 1},   {2, 3, 9, 7, 5, 3, 1, 1, 1},
    {1, 4, 11, 13, 6, 5, 2, 2, 2}, {3, 2, 8, 8, 4, 1, 1, 0, 1},
    {2, 3, 17, 19, 2, 7, 4, 0, 1}, {2, 5, 6, 9, 3, 1, 2, 0, 1},
    {1, 6, 5, 5, 6, 3, 1, 2, 6},   {0},
};

/* samples, channels, side, filters, window, stride, pad */
#define SQUARE(s, c, side, f, w, st, p)                                                                                \
    {                                                                                                                  \
        s, c, side, side, f, w, st, p, 1                                                                               \
    }
static const int64_t timed[][DL_MAX_DIMS] = {
    SQUARE(64, 1, 32, 6, 5, 1, 0), /* lenet-5 */
    SQUARE(64, 6, 14, 16, 5, 1, 0),
    SQUARE(64, 16, 5, 120, 5, 1, 0),
    SQUARE(8, 3, 227, 96, 11, 4, 0), /* alexnet */
    {8, 96, 27, 27, 256, 5, 1, 2, 2},
    SQUARE(8, 256, 13, 384, 3, 1, 1),
    {8, 384, 13, 13, 384, 3, 1, 1, 2},
    SQUARE(4, 3, 224, 64, 7, 2, 3), /* resnet-50 */
    SQUARE(4, 64, 56, 64, 1, 1, 0),
    SQUARE(4, 64, 56, 64, 3, 1, 1),
    SQUARE(4, 64, 56, 256, 1, 1, 0),
    SQUARE(4, 256, 56, 64, 1, 1, 0),
    SQUARE(4, 256, 56, 512, 1, 2, 0),
    SQUARE(4, 128, 56, 128, 3, 2, 1),
    SQUARE(4, 128, 28, 128, 3, 1, 1),
    SQUARE(4, 128, 28, 512, 1, 1, 0),
    SQUARE(4, 512, 28, 128, 1, 1, 0),
    SQUARE(4, 256, 14, 256, 3, 1, 1),
    SQUARE(4, 256, 14, 1024, 1, 1, 0),
    SQUARE(4, 1024, 14, 256, 1, 1, 0),
    SQUARE(4, 512, 7, 512, 3, 1, 1),
    SQUARE(4, 512, 7, 2048, 1, 1, 0),
    SQUARE(4, 2048, 7, 512, 1, 1, 0),
    SQUARE(1, 64, 56, 64, 3, 1, 1),
    SQUARE(16, 64, 56, 64, 3, 1, 1),
    SQUARE(32, 256, 14, 256, 3, 1, 1),
    SQUARE(1, 64, 224, 64, 3, 1, 1), /* vgg-19 */
    SQUARE(1, 128, 112, 128, 3, 1, 1),
    SQUARE(2, 256, 56, 256, 3, 1, 1),
    SQUARE(2, 512, 28, 512, 3, 1, 1),
    SQUARE(4, 512, 14, 512, 3, 1, 1),
    SQUARE(8, 192, 28, 64, 1, 1, 0), /* googlenet, densenet-121 */
    SQUARE(8, 96, 28, 128, 3, 1, 1),
    SQUARE(8, 16, 28, 32, 5, 1, 2),
    SQUARE(8, 128, 28, 32, 3, 1, 1),
    SQUARE(32, 3, 224, 64, 7, 2, 3), /* resnet-50, a mini-batch */
    SQUARE(32, 64, 56, 64, 3, 1, 1),
    SQUARE(32, 64, 56, 256, 1, 1, 0),
    SQUARE(32, 128, 28, 128, 3, 1, 1),
    SQUARE(32, 512, 7, 512, 3, 1, 1),
    SQUARE(128, 3, 224, 64, 7, 2, 3),
    SQUARE(128, 64, 56, 64, 3, 1, 1),
    SQUARE(128, 256, 56, 64, 1, 1, 0),
    SQUARE(128, 128, 28, 128, 3, 1, 1),
    SQUARE(128, 256, 14, 256, 3, 1, 1),
    SQUARE(128, 1024, 14, 256, 1, 1, 0),
    SQUARE(128, 512, 7, 512, 3, 1, 1),
    SQUARE(32, 64, 224, 64, 3, 1, 1),
    SQUARE(32, 512, 28, 512, 3, 1, 1),
    SQUARE(3, 7, 33, 13, 3, 1, 1), /* odd sizes */
    SQUARE(5, 37, 29, 61, 3, 2, 1),
    {7, 100, 31, 47, 100, 1, 1, 0, 1},
    {0},
};

#define CONV(tensor_list, the_pass, the_doc, the_reference, the_values)                                                \
    {                                                                                                                  \
        .name = "conv", .pass = the_pass, .doc = the_doc,                                                              \
        .dims = {"samples", "channels", "height", "width", "filters", "window",                                        \
                 "stride",  "pad",      "groups", "rows",  "columns", "group_channels"},                               \
        .n_given = 9, DL_TENSORS(tensor_list), .row = DL_ROW_CONV, .complete = complete, .flop = flop,                 \
        .values = the_values, .reference = the_reference, .odd = odd, .timed = timed                                   \
    }
const struct dl_problem dl_problem_conv = CONV(forward_tensors, "forward", "a convolution", forward, forward_values);
const struct dl_problem dl_problem_conv_input_gradient =
    CONV(input_tensors, "input_gradient", "gradient of its input", input_gradient, input_values);
const struct dl_problem dl_problem_conv_weight_gradient =
    CONV(weight_tensors, "weight_gradient", "gradient of its filters", weight_gradient, weight_values);
