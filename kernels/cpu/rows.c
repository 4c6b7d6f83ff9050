/* rows.c - softmax, cross entropy and look-ups: one row after the other. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { rows, width };

float dl_cpu_exponentials(const float *x, float *y, int64_t n, float shift)
{
    float sum = 0;
    DL_SUM(sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = dl_exp(x[i] - shift);
        sum += y[i];
    }
    return sum;
}

float dl_cpu_largest(const float *x, int64_t n)
{
    float most = -INFINITY;
    DL_MAX(most)
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* Returns the logarithm of the sum. */
static float softmax_row(const float *x, float *y, int64_t n)
{
    const float most = dl_cpu_largest(x, n), sum = dl_cpu_exponentials(x, y, n, most), part = 1 / sum;
    DL_VECTOR
    for (int64_t i = 0; i < n; i++) y[i] *= part;
    return most + logf(sum);
}

static void softmax(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0];
    float *const y = call->tensor[1];
    for (int64_t at = 0; at < d[rows] * d[width]; at += d[width]) softmax_row(x + at, y + at, d[width]);
}

static void softmax_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *y = call->tensor[0], *dy = call->tensor[1];
    float *dx = call->tensor[2];
    for (int64_t r = 0; r < d[rows]; r++, y += d[width], dy += d[width], dx += d[width]) {
        float sum = 0;
        DL_SUM(sum)
        for (int64_t i = 0; i < d[width]; i++) sum += y[i] * dy[i];
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) dx[i] = y[i] * (dy[i] - sum);
    }
}

static void entropy(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0];
    const int32_t *const target = call->tensor[1];
    float *const y = call->tensor[2], *const p = call->tensor[3];
    for (int64_t r = 0; r < d[rows]; r++)
        y[r] = softmax_row(x + r * d[width], p + r * d[width], d[width]) - x[r * d[width] + target[r]];
}

static void entropy_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *p = call->tensor[0], *const dy = call->tensor[2];
    const int32_t *const target = call->tensor[1];
    float *dx = call->tensor[3];
    for (int64_t r = 0; r < d[rows]; r++, p += d[width], dx += d[width]) {
        const float factor = dy[r];
        DL_VECTOR
        for (int64_t i = 0; i < d[width]; i++) dx[i] = factor * p[i];
        dx[target[r]] -= factor;
    }
}

enum { tokens, vocab, hidden };

static void embedding(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const int32_t *const token = call->tensor[0];
    const float *const table = call->tensor[1];
    float *const y = call->tensor[2];
    for (int64_t i = 0; i < d[tokens]; i++)
        memcpy(y + i * d[hidden], table + token[i] * d[hidden], (size_t)d[hidden] * sizeof *y);
}

static void embedding_weight(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const int32_t *const token = call->tensor[0];
    const float *dy = call->tensor[1];
    float *const table = call->tensor[2];
    for (int64_t i = 0; i < d[tokens]; i++, dy += d[hidden]) {
        float *const row = table + token[i] * d[hidden];
        DL_VECTOR
        for (int64_t c = 0; c < d[hidden]; c++) row[c] += dy[c];
    }
}

const struct dl_routine dl_cpu_rows[] = {
    {DL_CPU("softmax", "forward", softmax)},
    {DL_CPU("softmax", "input_gradient", softmax_input)},
    {DL_CPU("cross_entropy", "forward", entropy)},
    {DL_CPU("cross_entropy", "input_gradient", entropy_input)},
    {DL_CPU("embedding", "forward", embedding)},
    {DL_CPU("embedding", "weight_gradient", embedding_weight)},
    {0},
};
