/* optimizers.cu - what is done once a step. Parameters and state are fp32, and packs are theirs: four numbers. */
#include "kernels/cuda/packs.h"

#include <math.h>

enum { count };
enum { fours = 4 };

/* f(gradient, p, q, r) for every number, which may change p, q and r: as many of them as `state` has. */
template <class T, int STATES, class F> static void update(const struct dl_call *call, F f)
{
    const int64_t n = call->dim[count];
    const T *const gradient = (const T *)call->tensor[0];
    float *state[3] = {};
    for (int s = 0; s < STATES; s++) state[s] = (float *)call->tensor[1 + s];
    float *const p = state[0], *const q = state[1], *const r = state[2];
    dl_each<fours>(n, [=] __device__(int64_t i) {
        const auto g = dl_read<fours>(gradient, i, n);
        dl_pack<float, fours> a = dl_read<fours>(p, i, n), b = {}, c = {};
        if (STATES > 1) b = dl_read<fours>(q, i, n);
        if (STATES > 2) c = dl_read<fours>(r, i, n);
        for (int j = 0; j < fours; j++) f(dl_float_of(g.v[j]), a.v[j], b.v[j], c.v[j]);
        dl_write(p, i, n, a);
        if (STATES > 1) dl_write(q, i, n, b);
        if (STATES > 2) dl_write(r, i, n, c);
    });
}

struct sgd_step {
    __device__ void operator()(float g, float &p, float &, float &) const
    {
        p -= DL_SGD_RATE * (g + DL_WEIGHT_DECAY * p);
    }
};
struct momentum_step {
    __device__ void operator()(float g, float &p, float &velocity, float &) const
    {
        velocity = DL_MOMENTUM * velocity + g + DL_WEIGHT_DECAY * p;
        p -= DL_SGD_RATE * velocity;
    }
};

/* Moves the moments on; they began at zero, for which `mean` and `square` make up. */
struct adam_moments {
    float mean, square;
    adam_moments()
        : mean((float)(1 / (1 - pow((double)DL_ADAM_BETA1, DL_ADAM_STEP)))),
          square((float)(1 / (1 - pow((double)DL_ADAM_BETA2, DL_ADAM_STEP))))
    {
    }
    __device__ void move(float g, float &m, float &s) const
    {
        m = DL_ADAM_BETA1 * m + (1 - DL_ADAM_BETA1) * g;
        s = DL_ADAM_BETA2 * s + (1 - DL_ADAM_BETA2) * g * g;
    }
    __device__ float step(float p, float m, float s) const
    {
        return __fdividef(m * mean, sqrtf(s * square) + DL_ADAM_EPSILON) + DL_WEIGHT_DECAY * p;
    }
};
struct adam_step : adam_moments {
    __device__ void operator()(float g, float &p, float &m, float &s) const
    {
        move(g, m, s);
        p -= DL_ADAM_RATE * step(p, m, s);
    }
};

template <class T> static void sgd_as(const struct dl_call *call) { update<T, 1>(call, sgd_step()); }
template <class T> static void momentum_as(const struct dl_call *call) { update<T, 2>(call, momentum_step()); }
template <class T> static void adam_as(const struct dl_call *call) { update<T, 3>(call, adam_step()); }
DL_BY_PRECISION(sgd)
DL_BY_PRECISION(momentum)
DL_BY_PRECISION(adam)

/* Sums over all numbers are left by the blocks of a grid of fixed size, and added up by whoever needs them. */
enum { sum_blocks = 1024 };

__device__ float total(const float *parts)
{
    float sum = 0;
    for (int i = threadIdx.x; i < sum_blocks; i += dl_block) sum += parts[i];
    return dl_block_sum(sum);
}

struct lamb_state {
    float *p, *mean, *square, *of_parameters, *of_steps; /* the last two: sums of squares, one to a block */
};

/* The moments, and the sums. */
template <class T>
__global__ void __launch_bounds__(dl_block) lamb_sums(const T *gradient, lamb_state s, int64_t n, adam_moments a)
{
    const int64_t packs = (n + fours - 1) / fours;
    float of_parameters = 0, of_steps = 0;
    for (int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x; i < packs; i += sum_blocks * dl_block) {
        const auto g = dl_read<fours>(gradient, i, n);
        const auto p = dl_read<fours>(s.p, i, n);
        auto mean = dl_read<fours>(s.mean, i, n), square = dl_read<fours>(s.square, i, n);
        for (int j = 0; j < fours; j++) {
            a.move(dl_float_of(g.v[j]), mean.v[j], square.v[j]);
            const float step = a.step(p.v[j], mean.v[j], square.v[j]);
            of_parameters += p.v[j] * p.v[j];
            of_steps += step * step;
        }
        dl_write(s.mean, i, n, mean);
        dl_write(s.square, i, n, square);
    }
    of_parameters = dl_block_sum(of_parameters);
    of_steps = dl_block_sum(of_steps);
    if (threadIdx.x == 0) s.of_parameters[blockIdx.x] = of_parameters, s.of_steps[blockIdx.x] = of_steps;
}

__global__ void __launch_bounds__(dl_block) lamb_update(lamb_state s, int64_t n, adam_moments a)
{
    const float of_parameters = total(s.of_parameters), of_steps = total(s.of_steps);
    const float rate = DL_ADAM_RATE * (of_steps > 0 ? sqrtf(of_parameters / of_steps) : 1);
    const int64_t packs = (n + fours - 1) / fours;
    for (int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x; i < packs; i += (int64_t)gridDim.x * dl_block) {
        auto p = dl_read<fours>(s.p, i, n);
        const auto mean = dl_read<fours>(s.mean, i, n), square = dl_read<fours>(s.square, i, n);
        for (int j = 0; j < fours; j++) p.v[j] -= rate * a.step(p.v[j], mean.v[j], square.v[j]);
        dl_write(s.p, i, n, p);
    }
}

template <class T> static void lamb_as(const struct dl_call *call)
{
    const adam_moments a;
    float *const parts = (float *)call->workspace;
    const lamb_state s = {(float *)call->tensor[1], (float *)call->tensor[2], (float *)call->tensor[3], parts,
                          parts + sum_blocks};
    lamb_sums<<<sum_blocks, dl_block, 0, dl_cuda.stream>>>((const T *)call->tensor[0], s, call->dim[count], a);
    DL_LAUNCHED(lamb_sums);
    lamb_update<<<2 * sum_blocks, dl_block, 0, dl_cuda.stream>>>(s, call->dim[count], a);
    DL_LAUNCHED(lamb_update);
}
DL_BY_PRECISION(lamb)

template <class T> __global__ void __launch_bounds__(dl_block) sum_squares(const T *gradient, int64_t n, float *parts)
{
    const int64_t packs = (n + dl_length<T> - 1) / dl_length<T>;
    float sum = 0;
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x; i < packs; i += sum_blocks * dl_block) {
        const auto g = dl_read<dl_length<T>>(gradient, i, n);
        for (int j = 0; j < dl_length<T>; j++) sum += dl_float_of(g.v[j]) * dl_float_of(g.v[j]);
    }
    sum = dl_block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(dl_block) add_parts(const float *parts, float *sum)
{
    const float all = total(parts);
    if (threadIdx.x == 0) *sum = all;
}

template <class T> static void gradient_norm_as(const struct dl_call *call)
{
    float *const parts = (float *)call->workspace;
    sum_squares<<<sum_blocks, dl_block, 0, dl_cuda.stream>>>((const T *)call->tensor[0], call->dim[count], parts);
    DL_LAUNCHED(sum_squares);
    add_parts<<<1, dl_block, 0, dl_cuda.stream>>>(parts, (float *)call->tensor[1]);
    DL_LAUNCHED(add_parts);
}
DL_BY_PRECISION(gradient_norm)

static size_t lamb_bytes(const int64_t *, enum dl_float) { return 2 * sum_blocks * sizeof(float); }
static size_t norm_bytes(const int64_t *, enum dl_float) { return sum_blocks * sizeof(float); }

/* piece, sum */
template <class T> static void reduce_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const T *const piece = (const T *)call->tensor[0];
    T *const sum = (T *)call->tensor[1];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        const auto p = dl_read<dl_length<T>>(piece, i, n);
        auto s = dl_read<dl_length<T>>(sum, i, n);
        for (int j = 0; j < dl_length<T>; j++) s.v[j] = dl_as<T>(dl_float_of(s.v[j]) + dl_float_of(p.v[j]));
        dl_write(sum, i, n, s);
    });
}
DL_BY_PRECISION(reduce)

const struct dl_routine dl_cuda_optimizers[] = {
    {DL_KERNEL("sgd", "forward", sgd)},
    {DL_KERNEL("momentum", "forward", momentum)},
    {DL_KERNEL("adam", "forward", adam)},
    {DL_KERNEL("lamb", "forward", lamb), .workspace_bytes = lamb_bytes},
    {DL_KERNEL("gradient_norm", "forward", gradient_norm), .workspace_bytes = norm_bytes},
    {DL_KERNEL("reduce", "forward", reduce)},
    {},
};
