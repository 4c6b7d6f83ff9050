/* batchnorm.c - batch norm, channel by channel. Sums of planes are added in double: there may be many. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { samples, channels, pixels };

static int64_t plane(const int64_t *d, int64_t sample, int64_t channel)
{
    return (sample * d[channels] + channel) * d[pixels];
}

static double sum_of(const float *x, int64_t n)
{
    float sum = 0;
    DL_SUM(sum)
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return (double)sum;
}

/* Sum of (x - centre) (y - other). */
static double moment_of(const float *x, float centre, const float *y, float other, int64_t n)
{
    float sum = 0;
    DL_SUM(sum)
    for (int64_t i = 0; i < n; i++) sum += (x[i] - centre) * (y[i] - other);
    return (double)sum;
}

static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const gain = call->tensor[1], *const bias = call->tensor[2];
    float *const y = call->tensor[3], *const mean = call->tensor[4], *const scale = call->tensor[5];
    const double n = (double)(d[samples] * d[pixels]);
    for (int64_t c = 0; c < d[channels]; c++) {
        double sum = 0, squares = 0;
        for (int64_t s = 0; s < d[samples]; s++) sum += sum_of(x + plane(d, s, c), d[pixels]);
        const float centre = mean[c] = (float)(sum / n);
        for (int64_t s = 0; s < d[samples]; s++)
            squares += moment_of(x + plane(d, s, c), centre, x + plane(d, s, c), centre, d[pixels]);
        scale[c] = 1 / sqrtf((float)(squares / n) + DL_NORM_EPSILON);
        const float factor = gain[c] * scale[c], added = bias[c] - factor * centre;
        for (int64_t s = 0; s < d[samples]; s++)
            for (int64_t i = plane(d, s, c); i < plane(d, s, c) + d[pixels]; i++) y[i] = factor * x[i] + added;
    }
}

static void backward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const gain = call->tensor[1], *const mean = call->tensor[2],
                       *const scale = call->tensor[3], *const dy = call->tensor[4];
    float *const dx = call->tensor[5], *const dgain = call->tensor[6], *const dbias = call->tensor[7];
    const float n = (float)(d[samples] * d[pixels]);
    for (int64_t c = 0; c < d[channels]; c++) {
        double sum = 0, product = 0;
        for (int64_t s = 0; s < d[samples]; s++) {
            sum += sum_of(dy + plane(d, s, c), d[pixels]);
            product += moment_of(x + plane(d, s, c), mean[c], dy + plane(d, s, c), 0, d[pixels]);
        }
        dbias[c] = (float)sum;
        dgain[c] = (float)product * scale[c];
        const float factor = gain[c] * scale[c], of_mean = dbias[c] / n, of_z = dgain[c] / n * scale[c];
        const float centre = mean[c];
        for (int64_t s = 0; s < d[samples]; s++)
            for (int64_t i = plane(d, s, c); i < plane(d, s, c) + d[pixels]; i++)
                dx[i] = factor * (dy[i] - of_mean - (x[i] - centre) * of_z);
    }
}

const struct dl_routine dl_cpu_batchnorms[] = {
    {DL_CPU("batchnorm", "forward", forward)},
    {DL_CPU("batchnorm", "backward", backward)},
    {0},
};
