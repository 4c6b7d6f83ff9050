/* norms.c - layer and RMS norm, row by row. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { rows, width };

static float mean_of(const float *x, int64_t n)
{
    float sum = 0;
    DL_SUM(sum)
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum / (float)n;
}

static float scale_of(const float *x, float mean, int64_t n)
{
    float sum = 0;
    DL_SUM(sum)
    for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return 1 / sqrtf(sum / (float)n + DL_NORM_EPSILON);
}

static void layernorm(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0], *const gain = call->tensor[1], *const bias = call->tensor[2];
    float *y = call->tensor[3], *const mean = call->tensor[4], *const scale = call->tensor[5];
    for (int64_t r = 0; r < d[rows]; r++, x += d[width], y += d[width]) {
        const float centre = mean[r] = mean_of(x, d[width]);
        const float factor = scale[r] = scale_of(x, centre, d[width]);
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) y[i] = gain[i] * (x[i] - centre) * factor + bias[i];
    }
}

static void rmsnorm(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0], *const gain = call->tensor[1];
    float *y = call->tensor[2], *const scale = call->tensor[3];
    for (int64_t r = 0; r < d[rows]; r++, x += d[width], y += d[width]) {
        const float factor = scale[r] = scale_of(x, 0, d[width]);
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) y[i] = gain[i] * x[i] * factor;
    }
}

/* A row of x with what forward left of it; the formula is in problems/norms.c. */
struct row {
    const float *x, *gain, *dy;
    float mean, scale;
    bool has_mean;
};

static void row_gradient(const struct row *r, float *dx, int64_t n)
{
    float sum = 0, sum_z = 0;
    DL_SUM(sum, sum_z)
    for (int64_t i = 0; i < n; i++) {
        const float g = r->gain[i] * r->dy[i];
        sum += g;
        sum_z += g * (r->x[i] - r->mean) * r->scale;
    }
    const float of_mean = r->has_mean ? sum / (float)n : 0, of_z = sum_z / (float)n;
    DL_VECTOR
    for (int64_t i = 0; i < n; i++)
        dx[i] = r->scale * (r->gain[i] * r->dy[i] - of_mean - (r->x[i] - r->mean) * r->scale * of_z);
}

static void layernorm_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const gain = call->tensor[1], *const mean = call->tensor[2],
                       *const scale = call->tensor[3], *const dy = call->tensor[4];
    float *const dx = call->tensor[5];
    for (int64_t r = 0, at = 0; r < d[rows]; r++, at += d[width])
        row_gradient(&(struct row){x + at, gain, dy + at, mean[r], scale[r], true}, dx + at, d[width]);
}

static void rmsnorm_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const gain = call->tensor[1], *const scale = call->tensor[2],
                       *const dy = call->tensor[3];
    float *const dx = call->tensor[4];
    for (int64_t r = 0, at = 0; r < d[rows]; r++, at += d[width])
        row_gradient(&(struct row){x + at, gain, dy + at, 0, scale[r], false}, dx + at, d[width]);
}

static void layernorm_weight(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0], *const mean = call->tensor[2], *const scale = call->tensor[3],
                *dy = call->tensor[4];
    float *const dgain = call->tensor[5], *const dbias = call->tensor[6];
    memset(dgain, 0, (size_t)d[width] * sizeof *dgain);
    memset(dbias, 0, (size_t)d[width] * sizeof *dbias);
    for (int64_t r = 0; r < d[rows]; r++, x += d[width], dy += d[width]) {
        const float centre = mean[r], factor = scale[r];
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) {
            dgain[i] += dy[i] * (x[i] - centre) * factor;
            dbias[i] += dy[i];
        }
    }
}

static void rmsnorm_weight(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0], *const scale = call->tensor[2], *dy = call->tensor[3];
    float *const dgain = call->tensor[4];
    memset(dgain, 0, (size_t)d[width] * sizeof *dgain);
    for (int64_t r = 0; r < d[rows]; r++, x += d[width], dy += d[width]) {
        const float factor = scale[r];
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) dgain[i] += dy[i] * x[i] * factor;
    }
}

const struct dl_routine dl_cpu_norms[] = {
    {DL_CPU("layernorm", "forward", layernorm)},
    {DL_CPU("layernorm", "input_gradient", layernorm_input)},
    {DL_CPU("layernorm", "weight_gradient", layernorm_weight)},
    {DL_CPU("rmsnorm", "forward", rmsnorm)},
    {DL_CPU("rmsnorm", "input_gradient", rmsnorm_input)},
    {DL_CPU("rmsnorm", "weight_gradient", rmsnorm_weight)},
    {0},
};
