/* optimizers.c - steps of optimizers, norms and sums of gradients. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { count };
enum { chunk = 4096 }; /* long sums are made of short ones in fp32, added in double */

static void sgd(const struct dl_call *call)
{
    const float *const g = call->tensor[0];
    float *const p = call->tensor[1];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) p[i] -= DL_SGD_RATE * (g[i] + DL_WEIGHT_DECAY * p[i]);
}

static void momentum(const struct dl_call *call)
{
    const float *const g = call->tensor[0];
    float *const p = call->tensor[1], *const velocity = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        velocity[i] = DL_MOMENTUM * velocity[i] + g[i] + DL_WEIGHT_DECAY * p[i];
        p[i] -= DL_SGD_RATE * velocity[i];
    }
}

/* What the two moments are divided by: they begin at zero. */
struct correction {
    float mean, square;
};
static struct correction correction(void)
{
    return (struct correction){(float)(1 / (1 - pow((double)DL_ADAM_BETA1, DL_ADAM_STEP))),
                               (float)(1 / (1 - pow((double)DL_ADAM_BETA2, DL_ADAM_STEP)))};
}

static inline float new_mean(float mean, float g) { return DL_ADAM_BETA1 * mean + (1 - DL_ADAM_BETA1) * g; }
static inline float new_square(float square, float g) { return DL_ADAM_BETA2 * square + (1 - DL_ADAM_BETA2) * g * g; }
static inline float step_of(struct correction c, float mean, float square, float p)
{
    return mean * c.mean / (sqrtf(square * c.square) + DL_ADAM_EPSILON) + DL_WEIGHT_DECAY * p;
}

static void adam(const struct dl_call *call)
{
    const float *const g = call->tensor[0];
    float *const p = call->tensor[1], *const mean = call->tensor[2], *const square = call->tensor[3];
    const struct correction c = correction();
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        mean[i] = new_mean(mean[i], g[i]);
        square[i] = new_square(square[i], g[i]);
        p[i] -= DL_ADAM_RATE * step_of(c, mean[i], square[i], p[i]);
    }
}

/* Two passes: the norms need every step, and so does what they scale. */
static float trust(const struct dl_call *call, struct correction c)
{
    const float *const p = call->tensor[1], *const mean = call->tensor[2], *const square = call->tensor[3];
    double of_parameters = 0, of_steps = 0;
    for (int64_t from = 0; from < call->dim[count]; from += chunk) {
        const int64_t to = from + chunk < call->dim[count] ? from + chunk : call->dim[count];
        float sum_p = 0, sum_s = 0;
        DL_SUM(sum_p, sum_s)
        for (int64_t i = from; i < to; i++) {
            const float step = step_of(c, mean[i], square[i], p[i]);
            sum_p += p[i] * p[i];
            sum_s += step * step;
        }
        of_parameters += (double)sum_p;
        of_steps += (double)sum_s;
    }
    return of_steps > 0 ? (float)sqrt(of_parameters / of_steps) : 1;
}

static void lamb(const struct dl_call *call)
{
    const float *const g = call->tensor[0];
    float *const p = call->tensor[1], *const mean = call->tensor[2], *const square = call->tensor[3];
    const struct correction c = correction();
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        mean[i] = new_mean(mean[i], g[i]);
        square[i] = new_square(square[i], g[i]);
    }
    const float rate = DL_ADAM_RATE * trust(call, c);
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) p[i] -= rate * step_of(c, mean[i], square[i], p[i]);
}

static void gradient_norm(const struct dl_call *call)
{
    const float *const g = call->tensor[0];
    double total = 0;
    for (int64_t from = 0; from < call->dim[count]; from += chunk) {
        const int64_t to = from + chunk < call->dim[count] ? from + chunk : call->dim[count];
        float sum = 0;
        DL_SUM(sum)
        for (int64_t i = from; i < to; i++) sum += g[i] * g[i];
        total += (double)sum;
    }
    *(float *)call->tensor[1] = (float)total;
}

static void reduce(const struct dl_call *call)
{
    const float *const piece = call->tensor[0];
    float *const sum = call->tensor[1];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) sum[i] += piece[i];
}

const struct dl_routine dl_cpu_optimizers[] = {
    {DL_CPU("sgd", "forward", sgd)},
    {DL_CPU("momentum", "forward", momentum)},
    {DL_CPU("adam", "forward", adam)},
    {DL_CPU("lamb", "forward", lamb)},
    {DL_CPU("gradient_norm", "forward", gradient_norm)},
    {DL_CPU("reduce", "forward", reduce)},
    {0},
};
