/* batchnorm.cu - batch norm in two kernels: sums of every channel, then what they are needed for. Formulas are in
 * problems/batchnorm.c. A block takes one channel of a share of the samples; sums of the shares are in the workspace.
 */
#include "kernels/cuda/packs.h"

#include <type_traits>

enum { samples, channels, pixels };

struct layout {
    int64_t samples, channels;
    int pixels, shares, each; /* shares, and samples of one */
    float *parts;             /* two sums of every share of every channel */
};

static int n_shares(const int64_t *d)
{
    const int64_t wanted_blocks = 4096, most = dl_block; /* so that a block can add them with a number to a thread */
    int64_t n = dl_ceil_div(wanted_blocks, d[channels]);
    n = n < d[samples] ? n : d[samples];
    return (int)(n < most ? n : most);
}

static struct layout layout_of(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const int each = (int)dl_ceil_div(d[samples], n_shares(d));
    return {
        d[samples], d[channels], (int)d[pixels], (int)dl_ceil_div(d[samples], each), each, (float *)call->workspace};
}

static size_t parts_bytes(const int64_t *d, enum dl_float)
{
    return 2 * (size_t)(n_shares(d) * d[channels]) * sizeof(float);
}

/* A pack of a plane: numbers [head, end) of it belong to the plane; `start` is where the plane's first pack begins.
 * WHOLE: planes are so many packs, and all numbers do. */
template <class T, bool WHOLE> struct place {
    int64_t start;
    int pack, head, end;
    __device__ __forceinline__ dl_pack<float, dl_length<T>> read(const layout &l, const T *x) const
    {
        if (WHOLE) return dl_floats(((const dl_pack<T, dl_length<T>> *)(x + start))[pack]);
        return dl_floats(
            dl_read<dl_length<T>>(x, start / dl_length<T> + pack, l.samples * l.channels * (int64_t)l.pixels));
    }
    __device__ __forceinline__ bool has(int j) const
    {
        return WHOLE || (pack * dl_length<T> + j >= head && pack * dl_length<T> + j < end);
    }
    __device__ __forceinline__ void write(T *y, const dl_pack<float, dl_length<T>> &v) const
    {
        if (WHOLE)
            ((dl_pack<T, dl_length<T>> *)(y + start))[pack] = dl_rounded<T>(v);
        else
            dl_write(y + start, pack, head, end, dl_rounded<T>(v));
    }
};

/* f(place) for every pack of a share of the block's channel; several loads are on their way at a time. */
template <class T, bool WHOLE, class F> __device__ __forceinline__ void for_packs(const layout &l, int share, F f)
{
    const int channel = blockIdx.x, from = share * l.each, n = min(l.each, (int)l.samples - from);
    const int slots = l.pixels / dl_length<T> + (WHOLE ? 0 : 2);
    dl_walk at(threadIdx.x, dl_block, slots);
#pragma unroll 4
    for (int i = threadIdx.x; i < n * slots; i += dl_block) {
        const int64_t begin = ((int64_t)(from + at.row) * l.channels + channel) * l.pixels;
        const int head = WHOLE ? 0 : (int)(begin % dl_length<T>);
        const place<T, WHOLE> here = {begin - head, at.slot, head, head + l.pixels};
        if (WHOLE || here.pack * dl_length<T> < here.end) f(here);
        at.go_on();
    }
}

__device__ void leave(const layout &l, float first, float second)
{
    first = dl_block_sum(first), second = dl_block_sum(second);
    float *const part = l.parts + 2 * ((int64_t)blockIdx.x * l.shares + blockIdx.y);
    if (threadIdx.x == 0) part[0] = first, part[1] = second;
}

/* The sums over all shares of the channel. */
__device__ float2 collect(const layout &l)
{
    const float2 *const part = (const float2 *)l.parts + (int64_t)blockIdx.x * l.shares;
    const float2 mine = (int)threadIdx.x < l.shares ? part[threadIdx.x] : make_float2(0, 0);
    const float first = dl_block_sum(mine.x);
    return make_float2(first, dl_block_sum(mine.y));
}

/* Squares are taken around the channel's first number, so that a large mean takes no digits away. */
template <class T> __device__ float centre_of(const layout &l, const T *x)
{
    return dl_float_of(x[(int64_t)blockIdx.x * l.pixels]);
}

template <class T, bool WHOLE>
__global__ void __launch_bounds__(dl_block) sum_forward(layout l, const T *__restrict__ x)
{
    const float centre = centre_of(l, x);
    float sum = 0, squares = 0;
    for_packs<T, WHOLE>(l, blockIdx.y, [&](const auto &at) {
        const auto v = at.read(l, x);
        for (int j = 0; j < dl_length<T>; j++) {
            const float c = at.has(j) ? v.v[j] - centre : 0;
            sum += c;
            squares += c * c;
        }
    });
    leave(l, sum, squares);
}

/* The share of the second kernel's block: what the first read last may still be in the cache. */
__device__ __forceinline__ int later_share(void) { return gridDim.y - 1 - blockIdx.y; }

struct forward_tensors {
    const float *gain, *bias;
    float *mean, *scale;
};

template <class T, bool WHOLE>
__global__ void __launch_bounds__(dl_block)
    normalise(layout l, const T *__restrict__ x, T *__restrict__ y, forward_tensors t)
{
    const int channel = blockIdx.x;
    const float centre = centre_of(l, x), n = (float)(l.samples * l.pixels);
    const float2 sum = collect(l);
    const float off = sum.x / n, mean = centre + off, scale = rsqrtf(sum.y / n - off * off + DL_NORM_EPSILON);
    const float factor = t.gain[channel] * scale, bias = t.bias[channel];
    for_packs<T, WHOLE>(l, later_share(), [&](const auto &at) {
        auto v = at.read(l, x);
        for (float &number : v.v) number = factor * (number - mean) + bias;
        at.write(y, v);
    });
    if (blockIdx.y == 0 && threadIdx.x == 0) t.mean[channel] = mean, t.scale[channel] = scale;
}

/* f(l, true_type) where planes are whole packs, else f(l, false_type). */
template <class T, class F> static void by_alignment(const struct dl_call *call, F f)
{
    const struct layout l = layout_of(call);
    if (l.pixels % dl_length<T>)
        f(l, std::false_type());
    else
        f(l, std::true_type());
}

/* x, gain, bias -> y, mean, scale */
template <class T> static void forward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    by_alignment<T>(call, [=](const layout &l, auto whole) {
        const dim3 blocks((unsigned)l.channels, (unsigned)l.shares);
        sum_forward<T, whole><<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0]);
        DL_LAUNCHED(sum_forward);
        normalise<T, whole><<<blocks, dl_block, 0, dl_cuda.stream>>>(
            l, (const T *)t[0], (T *)t[3], {(const float *)t[1], (const float *)t[2], (float *)t[4], (float *)t[5]});
        DL_LAUNCHED(normalise);
    });
}
DL_BY_PRECISION(forward)

struct backward_tensors {
    const float *gain, *mean, *scale;
    float *dgain, *dbias;
};

template <class T, bool WHOLE>
__global__ void __launch_bounds__(dl_block)
    sum_backward(layout l, const T *__restrict__ x, const T *__restrict__ dy, backward_tensors t)
{
    const float mean = t.mean[blockIdx.x], scale = t.scale[blockIdx.x];
    float of_gain = 0, of_bias = 0;
    for_packs<T, WHOLE>(l, blockIdx.y, [&](const auto &at) {
        const auto v = at.read(l, x), slope = at.read(l, dy);
        for (int j = 0; j < dl_length<T>; j++) {
            of_gain += at.has(j) ? slope.v[j] * (v.v[j] - mean) : 0;
            of_bias += at.has(j) ? slope.v[j] : 0;
        }
    });
    leave(l, of_gain * scale, of_bias);
}

template <class T, bool WHOLE>
__global__ void __launch_bounds__(dl_block)
    input_gradient(layout l, const T *__restrict__ x, const T *__restrict__ dy, T *__restrict__ dx, backward_tensors t)
{
    const int channel = blockIdx.x;
    const float mean = t.mean[channel], scale = t.scale[channel], n = (float)(l.samples * l.pixels);
    const float2 sum = collect(l);
    const float factor = t.gain[channel] * scale, of_z = sum.x / n * scale, of_mean = sum.y / n;
    for_packs<T, WHOLE>(l, later_share(), [&](const auto &at) {
        auto v = at.read(l, x);
        const auto slope = at.read(l, dy);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = factor * (slope.v[j] - of_mean - (v.v[j] - mean) * of_z);
        at.write(dx, v);
    });
    if (blockIdx.y == 0 && threadIdx.x == 0) t.dgain[channel] = sum.x, t.dbias[channel] = sum.y;
}

/* x, gain, mean, scale, dy -> dx, dgain, dbias */
template <class T> static void backward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    const backward_tensors b = {(const float *)t[1], (const float *)t[2], (const float *)t[3], (float *)t[6],
                                (float *)t[7]};
    by_alignment<T>(call, [=](const layout &l, auto whole) {
        const dim3 blocks((unsigned)l.channels, (unsigned)l.shares);
        sum_backward<T, whole><<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0], (const T *)t[4], b);
        DL_LAUNCHED(sum_backward);
        input_gradient<T, whole>
            <<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0], (const T *)t[4], (T *)t[5], b);
        DL_LAUNCHED(input_gradient);
    });
}
DL_BY_PRECISION(backward)

const struct dl_routine dl_cuda_batchnorms[] = {
    {DL_KERNEL("batchnorm", "forward", forward), .workspace_bytes = parts_bytes},
    {DL_KERNEL("batchnorm", "backward", backward), .workspace_bytes = parts_bytes},
    {},
};
