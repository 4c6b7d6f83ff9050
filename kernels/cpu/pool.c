/* pool.c - the largest of windows, means of planes, sums of rows. */
#include "kernels/cpu/cpu.h"

enum { planes, height, width, window, stride, pad, rows, columns };

/* The first largest in the window of output pixel (r, c) of a plane, as an index into the plane. */
static int64_t largest(const int64_t *d, const float *plane, int64_t r, int64_t c)
{
    const int64_t top = r * d[stride] - d[pad], left = c * d[stride] - d[pad];
    const int64_t bottom = top + d[window] < d[height] ? top + d[window] : d[height];
    const int64_t right = left + d[window] < d[width] ? left + d[window] : d[width];
    int64_t best = (top < 0 ? 0 : top) * d[width] + (left < 0 ? 0 : left);
    for (int64_t i = top < 0 ? 0 : top; i < bottom; i++)
        for (int64_t j = left < 0 ? 0 : left; j < right; j++)
            if (plane[i * d[width] + j] > plane[best]) best = i * d[width] + j;
    return best;
}

static void pool(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0];
    float *y = call->tensor[1];
    for (int64_t p = 0; p < d[planes]; p++, x += d[height] * d[width])
        for (int64_t r = 0; r < d[rows]; r++)
            for (int64_t c = 0; c < d[columns]; c++) *y++ = x[largest(d, x, r, c)];
}

static void pool_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0], *dy = call->tensor[1];
    float *dx = call->tensor[2];
    memset(dx, 0, (size_t)(d[planes] * d[height] * d[width]) * sizeof *dx);
    for (int64_t p = 0; p < d[planes]; p++, x += d[height] * d[width], dx += d[height] * d[width])
        for (int64_t r = 0; r < d[rows]; r++)
            for (int64_t c = 0; c < d[columns]; c++) dx[largest(d, x, r, c)] += *dy++;
}

enum { first, second };

static void global_pool(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *x = call->tensor[0];
    float *const y = call->tensor[1];
    for (int64_t p = 0; p < d[first]; p++, x += d[second]) {
        float sum = 0;
        DL_SUM(sum)
        for (int64_t i = 0; i < d[second]; i++) sum += x[i];
        y[p] = sum / (float)d[second];
    }
}

static void global_pool_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const dy = call->tensor[0];
    float *dx = call->tensor[1];
    for (int64_t p = 0; p < d[first]; p++, dx += d[second])
        for (int64_t i = 0; i < d[second]; i++) dx[i] = dy[p] / (float)d[second];
}

static void bias_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *dy = call->tensor[0];
    float *const dbias = call->tensor[1];
    memset(dbias, 0, (size_t)d[second] * sizeof *dbias);
    for (int64_t r = 0; r < d[first]; r++, dy += d[second]) {
        DL_VECTOR
        for (int64_t i = 0; i < d[second]; i++) dbias[i] += dy[i];
    }
}

const struct dl_routine dl_cpu_pools[] = {
    {DL_CPU("pool", "forward", pool)},
    {DL_CPU("pool", "input_gradient", pool_input)},
    {DL_CPU("global_pool", "forward", global_pool)},
    {DL_CPU("global_pool", "input_gradient", global_pool_input)},
    {DL_CPU("bias", "weight_gradient", bias_gradient)},
    {0},
};
