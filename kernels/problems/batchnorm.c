/* batchnorm.c - normalisation of every channel over samples and pixels, samples x channels x pixels, in training. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { samples, channels, pixels };

static double elements(const int64_t *d) { return (double)d[samples] * (double)d[channels] * (double)d[pixels]; }
static void forward_values(const int64_t *d, double *v) { v[0] = 3 * elements(d); }
static void backward_values(const int64_t *d, double *v) { v[0] = 5 * elements(d); }
/* Sums over a channel come before its first result: inputs are read twice. */
static double forward_traffic(const int64_t *d, enum dl_float f) { return 3 * elements(d) * (double)dl_float_bytes(f); }
static double backward_traffic(const int64_t *d, enum dl_float f)
{
    return 5 * elements(d) * (double)dl_float_bytes(f);
}

/* The i-th element of a channel. */
static int64_t at(const int64_t *d, int64_t channel, int64_t i)
{
    return (i / d[pixels] * d[channels] + channel) * d[pixels] + i % d[pixels];
}

static void statistics(const int64_t *d, const double *x, int64_t channel, double *mean, double *scale)
{
    const int64_t n = d[samples] * d[pixels];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[at(d, channel, i)];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[at(d, channel, i)] - *mean) * (x[at(d, channel, i)] - *mean);
    *scale = 1 / sqrt(squares / (double)n + (double)DL_NORM_EPSILON);
}

/* x, gain, bias -> y, mean, scale */
static void forward(const int64_t *d, double *const *t)
{
    for (int64_t c = 0; c < d[channels]; c++) {
        statistics(d, t[0], c, &t[4][c], &t[5][c]);
        for (int64_t i = 0; i < d[samples] * d[pixels]; i++)
            t[3][at(d, c, i)] = t[1][c] * (t[0][at(d, c, i)] - t[4][c]) * t[5][c] + t[2][c];
    }
}

/* The mean is a sum that cancels. */
static void forward_magnitudes(const int64_t *d, double *const *t, double *const *magnitude)
{
    const int64_t n = d[samples] * d[pixels];
    for (int64_t c = 0; c < d[channels]; c++)
        for (int64_t i = 0; i < n; i++) magnitude[4][c] += fabs(t[0][at(d, c, i)]) / (double)n;
}

static void derive(const int64_t *d, double *const *t)
{
    for (int64_t c = 0; c < d[channels]; c++) statistics(d, t[0], c, &t[2][c], &t[3][c]);
}

/* x, gain, mean, scale, dy -> dx, dgain, dbias */
static void backward(const int64_t *d, double *const *t)
{
    const int64_t n = d[samples] * d[pixels];
    for (int64_t c = 0; c < d[channels]; c++) {
        double *const dgain = &t[6][c], *const dbias = &t[7][c];
        *dgain = *dbias = 0;
        for (int64_t i = 0; i < n; i++) {
            *dgain += t[4][at(d, c, i)] * (t[0][at(d, c, i)] - t[2][c]) * t[3][c];
            *dbias += t[4][at(d, c, i)];
        }
        for (int64_t i = 0; i < n; i++) {
            const double z = (t[0][at(d, c, i)] - t[2][c]) * t[3][c];
            t[5][at(d, c, i)] = t[1][c] * t[3][c] * (t[4][at(d, c, i)] - *dbias / (double)n - z * *dgain / (double)n);
        }
    }
}

static void backward_magnitudes(const int64_t *d, double *const *t, double *const *magnitude)
{
    for (int64_t c = 0; c < d[channels]; c++)
        for (int64_t i = 0; i < d[samples] * d[pixels]; i++) {
            magnitude[6][c] += fabs(t[4][at(d, c, i)] * (t[0][at(d, c, i)] - t[2][c]) * t[3][c]);
            magnitude[7][c] += fabs(t[4][at(d, c, i)]);
        }
}

#define WHOLE(n, r)                                                                                                    \
    {                                                                                                                  \
        .name = n, .role = r, .shape = "samples channels pixels"                                                       \
    }
#define CHANNEL(n, r)                                                                                                  \
    {                                                                                                                  \
        .name = n, .role = r, .shape = "channels", .store = DL_STORE_FLOAT, .fill = DL_FILL_POSITIVE                   \
    }
static const struct dl_tensor_spec forward_tensors[] = {WHOLE("x", DL_INPUT),       CHANNEL("gain", DL_INPUT),
                                                        CHANNEL("bias", DL_INPUT),  WHOLE("y", DL_OUTPUT),
                                                        CHANNEL("mean", DL_OUTPUT), CHANNEL("scale", DL_OUTPUT)};
static const struct dl_tensor_spec backward_tensors[] = {
    WHOLE("x", DL_INPUT),  CHANNEL("gain", DL_INPUT), CHANNEL("mean", DL_INPUT),   CHANNEL("scale", DL_INPUT),
    WHOLE("dy", DL_INPUT), WHOLE("dx", DL_OUTPUT),    CHANNEL("dgain", DL_OUTPUT), CHANNEL("dbias", DL_OUTPUT)};

static const int64_t odd[][DL_MAX_DIMS] = {{5, 1, 1},    {3, 5, 7},    {1, 4, 65},   {9, 17, 16},
                                           {2, 33, 121}, {300, 2, 24}, {3, 2, 2056}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {
    {4, 6, 784},    {4, 32, 196},     {4, 64, 784},     {8, 128, 784},    {4, 512, 784},
    {4, 64, 12544}, {32, 512, 49},    {32, 2048, 49},   {32, 256, 784},   {32, 256, 3136},
    {5, 37, 841},   {128, 1024, 196}, {128, 256, 3136}, {128, 64, 12544}, {0},
};

#define BATCHNORM(the_pass, the_doc, tensor_list, the_values, the_traffic, the_reference)                              \
    .name = "batchnorm", .pass = the_pass, .doc = the_doc, .dims = {"samples", "channels", "pixels"}, .n_given = 3,    \
    DL_TENSORS(tensor_list), .row = DL_ROW_MEMORY, .values = the_values, .traffic = the_traffic,                       \
    .reference = the_reference, .odd = odd, .timed = timed
const struct dl_problem dl_problem_batchnorm = {
    BATCHNORM("forward", "batch normalisation in training", forward_tensors, forward_values, forward_traffic, forward),
    .magnitudes = forward_magnitudes};
const struct dl_problem dl_problem_batchnorm_backward = {BATCHNORM("backward", "gradients of its input, gain and bias",
                                                                   backward_tensors, backward_values, backward_traffic,
                                                                   backward),
                                                         .derive = derive, .magnitudes = backward_magnitudes};
