/* global_pool.cu - the mean of each plane. Planes are small and begin anywhere: a block reads as many as it can hold in
 * shared memory as packs, then a group of threads adds up a plane. Planes that are too large for that go to a warp. */
#include "kernels/cuda/words.h"

enum { n_planes, pixels };

extern __shared__ uint4 shared[];

/* The share of thread `member` of a group in the numbers [begin, end): word after word, and for the first of them what
 * is left at the ends, whose words are shared with neighbours. */
template <class T> __device__ __forceinline__ float sum_of_words(int begin, int end, int member, int group)
{
    enum { numbers = (int)(sizeof(uint32_t) / sizeof(T)) };
    const uint32_t *const words = (const uint32_t *)shared;
    const int first = (begin + numbers - 1) / numbers, last = end / numbers;
    float sum = 0;
#pragma unroll 4
    for (int w = first + member; w < last; w += group)
        for (int j = 0; j < numbers; j++) sum += dl_number<T>(words[w], j);
    if (numbers == 1 || member) return sum;
    if (begin < first * numbers) sum += dl_number<T>(words[begin / numbers], numbers - 1);
    if (last * numbers < end) sum += dl_number<T>(words[last], 0);
    return sum;
}

/* So many planes of a block are a power of two, and whole packs. */
template <class T>
__global__ void __launch_bounds__(dl_block) staged_means(const T *x, T *y, int64_t n, int size, int each)
{
    const int64_t first = (int64_t)blockIdx.x * each;
    const int here = (int)min((int64_t)each, n - first);
    dl_fetch((dl_pack<T, dl_length<T>> *)shared, x + first * size, here * size);
    __syncthreads();
    const int group = dl_block / each, plane = threadIdx.x / group;
    float sum = 0;
    if (plane < here) sum = sum_of_words<T>(plane * size, (plane + 1) * size, threadIdx.x % group, group);
    for (int step = group / 2; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (plane < here && threadIdx.x % group == 0) y[first + plane] = dl_as<T>(sum / (float)size);
}

/* Planes of a block; 0: they are too large. */
static int planes_of(int64_t size, size_t number)
{
    const size_t most_bytes = 50 << 10; /* so that four blocks share a multiprocessor of Hopper */
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
    const size_t bytes = (size_t)(each * size) * sizeof(T) + dl_pack_bytes;
    if (each) {
        DL_CUDA(cudaFuncSetAttribute(staged_means<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
        staged_means<<<(unsigned)dl_ceil_div(n, each), dl_block, bytes, dl_cuda.stream>>>(x, y, n, (int)size, each);
    } else
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

/* What is read hides behind what is written: several packs of a thread are on their way at a time. */
enum { packs_each = 4 };
template <class T>
__global__ void __launch_bounds__(dl_block) spread(const T *dy, T *dx, dl_divisor size, uint32_t n, int64_t total)
{
    const uint32_t first = blockIdx.x * (packs_each * dl_block) + threadIdx.x;
    dl_pack<T, dl_length<T>> v[packs_each];
#pragma unroll
    for (uint32_t u = 0; u < packs_each; u++) {
        const uint32_t at = (first + u * dl_block) * dl_length<T>;
        if (at < total) v[u] = dl_rounded<T>(slopes(dy, size, at, n));
    }
#pragma unroll
    for (uint32_t u = 0; u < packs_each; u++)
        if ((first + u * dl_block) * dl_length<T> < total) dl_write(dx, (int64_t)(first + u * dl_block), total, v[u]);
}

template <class T> static void backward_as(const struct dl_call *call)
{
    const int64_t n = call->dim[n_planes], total = n * call->dim[pixels];
    const unsigned blocks = (unsigned)dl_ceil_div(total, dl_length<T> * packs_each * dl_block);
    spread<<<blocks, dl_block, 0, dl_cuda.stream>>>((const T *)call->tensor[0], (T *)call->tensor[1],
                                                    dl_divisor((uint32_t)call->dim[pixels]), (uint32_t)n, total);
    DL_LAUNCHED(spread);
}
DL_BY_PRECISION(backward)

/* Divisions are those of 31 bits. */
static bool can_backward(const int64_t *d, enum dl_float) { return d[n_planes] * d[pixels] <= INT32_MAX; }

const struct dl_routine dl_cuda_global_pools[] = {
    {DL_KERNEL("global_pool", "forward", forward)},
    {DL_KERNEL("global_pool", "input_gradient", backward), .can = can_backward},
    {},
};
