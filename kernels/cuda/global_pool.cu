/* global_pool.cu - the mean of each plane. Planes are small and begin anywhere: a block reads as many as it can hold in
 * shared memory as packs, then a group of threads adds up a plane. Planes that are too large for that go to a warp. */
#include "kernels/cuda/packs.h"

enum { n_planes, pixels };

extern __shared__ uint4 shared[];

/* So many planes of a block are a power of two, and whole packs. */
template <class T>
__global__ void __launch_bounds__(dl_block) staged_means(const T *x, T *y, int64_t n, int size, int each)
{
    const int64_t first = (int64_t)blockIdx.x * each;
    const int here = (int)min((int64_t)each, n - first);
    dl_fetch((dl_pack<T, dl_length<T>> *)shared, x + first * size, here * size);
    __syncthreads();
    const int group = dl_block / each, plane = threadIdx.x / group;
    const T *const mine = (const T *)shared + plane * size;
    float sum = 0;
    if (plane < here)
        for (int i = threadIdx.x % group; i < size; i += group) sum += dl_float_of(mine[i]);
    for (int step = group / 2; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (plane < here && threadIdx.x % group == 0) y[first + plane] = dl_as<T>(sum / (float)size);
}

/* Planes of a block; 0: they are too large. */
static int planes_of(int64_t size, size_t number)
{
    const size_t most_bytes = 24 << 10; /* so that eight blocks share a multiprocessor */
    int each = dl_block;
    while (each && (size_t)(each * size) * number > most_bytes) each /= 2;
    return each >= dl_block / dl_warp ? each : 0; /* a group is at most a warp */
}

template <class T> __global__ void __launch_bounds__(dl_block) means(const T *x, T *y, int64_t n, int size)
{
    const int64_t plane = ((int64_t)blockIdx.x * dl_block + threadIdx.x) / dl_warp, begin = plane * size;
    const int head = (int)(begin % dl_length<T>);
    float sum = 0;
    if (plane < n)
        for (int p = threadIdx.x % dl_warp; p * dl_length<T> < head + size; p += dl_warp) {
            const auto v = dl_read<dl_length<T>>(x, begin / dl_length<T> + p, n * size);
            for (int j = 0; j < dl_length<T>; j++)
                sum += (unsigned)(p * dl_length<T> + j - head) < (unsigned)size ? dl_float_of(v.v[j]) : 0;
        }
    sum = dl_warp_sum(sum);
    if (plane < n && threadIdx.x % dl_warp == 0) y[plane] = dl_as<T>(sum / (float)size);
}

template <class T> static void forward_as(const struct dl_call *call)
{
    const int64_t n = call->dim[n_planes], size = call->dim[pixels];
    const int each = planes_of(size, sizeof(T));
    const T *const x = (const T *)call->tensor[0];
    T *const y = (T *)call->tensor[1];
    if (each)
        staged_means<<<(unsigned)dl_ceil_div(n, each), dl_block, (size_t)(each * size) * sizeof(T) + dl_pack_bytes,
                       dl_cuda.stream>>>(x, y, n, (int)size, each);
    else
        means<<<(unsigned)dl_ceil_div(n * dl_warp, dl_block), dl_block, 0, dl_cuda.stream>>>(x, y, n, (int)size);
    DL_LAUNCHED(means);
}
DL_BY_PRECISION(forward)

/* The slopes of the planes to which the numbers from `first` on belong: two at most, unless planes are very small. */
template <class T>
__device__ __forceinline__ dl_pack<float, dl_length<T>> slopes(const T *dy, const dl_divisor &size, uint32_t first,
                                                               uint32_t n)
{
    const uint32_t plane = size.quotient(first), in_plane = (plane + 1) * size.by - first;
    const float part = 1 / (float)size.by, one = dl_float_of(dy[plane]) * part,
                other = dl_float_of(dy[min(plane + 1, n - 1)]) * part;
    dl_pack<float, dl_length<T>> v;
#pragma unroll
    for (uint32_t j = 0; j < dl_length<T>; j++) v.v[j] = j < in_plane ? one : other;
    if (size.by < dl_length<T>)
        for (uint32_t j = 0; j < dl_length<T>; j++)
            v.v[j] = dl_float_of(dy[min(size.quotient(first + j), n - 1)]) * part;
    return v;
}

template <class T> static void backward_as(const struct dl_call *call)
{
    const int64_t n = call->dim[n_planes], total = n * call->dim[pixels];
    const dl_divisor size((uint32_t)call->dim[pixels]);
    const T *const dy = (const T *)call->tensor[0];
    T *const dx = (T *)call->tensor[1];
    dl_each<dl_length<T>>(total, [=] __device__(int64_t i) {
        const auto v = slopes(dy, size, (uint32_t)i * dl_length<T>, (uint32_t)n);
        dl_write(dx, i, total, dl_rounded<T>(v));
    });
}
DL_BY_PRECISION(backward)

/* Divisions are those of 31 bits. */
static bool can_backward(const int64_t *d, enum dl_float) { return d[n_planes] * d[pixels] <= INT32_MAX; }

const struct dl_routine dl_cuda_global_pools[] = {
    {DL_KERNEL("global_pool", "forward", forward)},
    {DL_KERNEL("global_pool", "input_gradient", backward), .can = can_backward},
    {},
};
