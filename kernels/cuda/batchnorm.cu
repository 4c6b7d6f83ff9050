/* batchnorm.cu - batch norm in two kernels: sums of every channel, then what they are needed for. Formulas are in
 * problems/batchnorm.c. A block takes one channel of a share of the samples; sums of the shares are in the workspace.
 */
#include "kernels/cuda/packs.h"

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

/* A pack of a plane: numbers [head, end) of it belong to the plane; `start` is where the plane's first pack begins. */
struct place {
    int64_t start;
    int pack, head, end;
    template <class T> __device__ dl_pack<T, dl_length<T>> read(const layout &l, const T *x) const
    {
        return dl_read<dl_length<T>>(x, start / dl_length<T> + pack, l.samples * l.channels * l.pixels);
    }
    __device__ bool has(int at) const { return at >= head && at < end; }
};

/* f(place) for every pack of the block's share of its channel. */
template <class T, class F> __device__ __forceinline__ void for_packs(const layout &l, F f)
{
    const int channel = blockIdx.x, from = blockIdx.y * l.each, n = min(l.each, (int)l.samples - from);
    const int slots = (l.pixels + dl_length<T> - 1) / dl_length<T> + (l.pixels % dl_length<T> != 0);
    for (int i = threadIdx.x; i < n * slots; i += dl_block) {
        const int64_t begin = ((from + i / slots) * l.channels + channel) * l.pixels;
        const int head = (int)(begin % dl_length<T>);
        const place at = {begin - head, i % slots, head, head + l.pixels};
        if (at.pack * dl_length<T> < at.end) f(at);
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

template <class T> __global__ void __launch_bounds__(dl_block) sum_forward(layout l, const T *x)
{
    const float centre = centre_of(l, x);
    float sum = 0, squares = 0;
    for_packs<T>(l, [&](const place &at) {
        const auto v = at.read(l, x);
        for (int j = 0; j < dl_length<T>; j++) {
            const float c = at.has(at.pack * dl_length<T> + j) ? dl_float_of(v.v[j]) - centre : 0;
            sum += c;
            squares += c * c;
        }
    });
    leave(l, sum, squares);
}

struct forward_tensors {
    const float *gain, *bias;
    float *mean, *scale;
};

template <class T> __global__ void __launch_bounds__(dl_block) normalise(layout l, const T *x, T *y, forward_tensors t)
{
    const int channel = blockIdx.x;
    const float centre = centre_of(l, x), n = (float)(l.samples * l.pixels);
    const float2 sum = collect(l);
    const float off = sum.x / n, mean = centre + off, scale = rsqrtf(sum.y / n - off * off + DL_NORM_EPSILON);
    const float factor = t.gain[channel] * scale, bias = t.bias[channel];
    for_packs<T>(l, [&](const place &at) {
        auto v = at.read(l, x);
        for (T &number : v.v) number = dl_as<T>(factor * (dl_float_of(number) - mean) + bias);
        dl_write(y + at.start, at.pack, at.head, at.end, v);
    });
    if (blockIdx.y == 0 && threadIdx.x == 0) t.mean[channel] = mean, t.scale[channel] = scale;
}

/* x, gain, bias -> y, mean, scale */
template <class T> static void forward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    const struct layout l = layout_of(call);
    const dim3 blocks((unsigned)l.channels, (unsigned)l.shares);
    sum_forward<<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0]);
    DL_LAUNCHED(sum_forward);
    normalise<<<blocks, dl_block, 0, dl_cuda.stream>>>(
        l, (const T *)t[0], (T *)t[3], {(const float *)t[1], (const float *)t[2], (float *)t[4], (float *)t[5]});
    DL_LAUNCHED(normalise);
}
DL_BY_PRECISION(forward)

struct backward_tensors {
    const float *gain, *mean, *scale;
    float *dgain, *dbias;
};

template <class T>
__global__ void __launch_bounds__(dl_block) sum_backward(layout l, const T *x, const T *dy, backward_tensors t)
{
    const float mean = t.mean[blockIdx.x], scale = t.scale[blockIdx.x];
    float of_gain = 0, of_bias = 0;
    for_packs<T>(l, [&](const place &at) {
        const auto v = at.read(l, x), slope = at.read(l, dy);
        for (int j = 0; j < dl_length<T>; j++) {
            if (!at.has(at.pack * dl_length<T> + j)) continue;
            of_gain += dl_float_of(slope.v[j]) * (dl_float_of(v.v[j]) - mean) * scale;
            of_bias += dl_float_of(slope.v[j]);
        }
    });
    leave(l, of_gain, of_bias);
}

template <class T>
__global__ void __launch_bounds__(dl_block) input_gradient(layout l, const T *x, const T *dy, T *dx, backward_tensors t)
{
    const int channel = blockIdx.x;
    const float mean = t.mean[channel], scale = t.scale[channel], n = (float)(l.samples * l.pixels);
    const float2 sum = collect(l);
    const float factor = t.gain[channel] * scale, of_z = sum.x / n * scale, of_mean = sum.y / n;
    for_packs<T>(l, [&](const place &at) {
        auto v = at.read(l, x);
        const auto slope = at.read(l, dy);
        for (int j = 0; j < dl_length<T>; j++)
            v.v[j] = dl_as<T>(factor * (dl_float_of(slope.v[j]) - of_mean - (dl_float_of(v.v[j]) - mean) * of_z));
        dl_write(dx + at.start, at.pack, at.head, at.end, v);
    });
    if (blockIdx.y == 0 && threadIdx.x == 0) t.dgain[channel] = sum.x, t.dbias[channel] = sum.y;
}

/* x, gain, mean, scale, dy -> dx, dgain, dbias */
template <class T> static void backward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    const struct layout l = layout_of(call);
    const dim3 blocks((unsigned)l.channels, (unsigned)l.shares);
    const backward_tensors b = {(const float *)t[1], (const float *)t[2], (const float *)t[3], (float *)t[6],
                                (float *)t[7]};
    sum_backward<<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0], (const T *)t[4], b);
    DL_LAUNCHED(sum_backward);
    input_gradient<<<blocks, dl_block, 0, dl_cuda.stream>>>(l, (const T *)t[0], (const T *)t[4], (T *)t[5], b);
    DL_LAUNCHED(input_gradient);
}
DL_BY_PRECISION(backward)

const struct dl_routine dl_cuda_batchnorms[] = {
    {DL_KERNEL("batchnorm", "forward", forward), .workspace_bytes = parts_bytes},
    {DL_KERNEL("batchnorm", "backward", backward), .workspace_bytes = parts_bytes},
    {},
};
