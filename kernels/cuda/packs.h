/* packs.h - 16 bytes of a tensor at a time.
 *
 * A tensor is a row of packs of N numbers, N x the precision = 16 bytes; pack i has the numbers from i N on. The last
 * one may be partial: what lies behind the end reads as zero and is never written. Tensors begin on 256 bytes, so whole
 * packs are aligned. Companions in another type (masks, fp32 state) use the same N. */
#ifndef DL_KERNELS_CUDA_PACKS_H
#define DL_KERNELS_CUDA_PACKS_H

#include <cuda_pipeline_primitives.h>

#include "kernels/cuda/cuda.h"

enum { dl_pack_bytes = 16 };
template <class T> constexpr int dl_length = dl_pack_bytes / (int)sizeof(T);

template <class U, int N> struct alignas(sizeof(U) * N < 16 ? sizeof(U) * N : 16) dl_pack {
    U v[N];
};

__device__ __forceinline__ float dl_float_of(float x) { return x; }
__device__ __forceinline__ float dl_float_of(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float dl_float_of(__half x) { return __half2float(x); }
template <class T> __device__ __forceinline__ T dl_as(float x);
template <> __device__ __forceinline__ float dl_as<float>(float x) { return x; }
template <> __device__ __forceinline__ __nv_bfloat16 dl_as<__nv_bfloat16>(float x) { return __float2bfloat16(x); }
template <> __device__ __forceinline__ __half dl_as<__half>(float x) { return __float2half(x); }
template <> __device__ __forceinline__ uint8_t dl_as<uint8_t>(float x) { return (uint8_t)x; }

/* Two numbers at a time: one instruction rounds both. */
__device__ __forceinline__ float2 dl_two_floats(__nv_bfloat162 x) { return __bfloat1622float2(x); }
__device__ __forceinline__ float2 dl_two_floats(__half2 x) { return __half22float2(x); }
__device__ __forceinline__ float2 dl_two_floats(float2 x) { return x; }
__device__ __forceinline__ void dl_round_two(float2 x, __nv_bfloat162 &to) { to = __float22bfloat162_rn(x); }
__device__ __forceinline__ void dl_round_two(float2 x, __half2 &to) { to = __float22half2_rn(x); }
__device__ __forceinline__ void dl_round_two(float2 x, float2 &to) { to = x; }
template <class T> struct dl_two_of;
template <> struct dl_two_of<float> {
    using type = float2;
};
template <> struct dl_two_of<__nv_bfloat16> {
    using type = __nv_bfloat162;
};
template <> struct dl_two_of<__half> {
    using type = __half2;
};

/* All numbers of a pack as floats, and back. */
template <class T, int N> __device__ __forceinline__ dl_pack<float, N> dl_floats(const dl_pack<T, N> &p)
{
    dl_pack<float, N> x;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        const float2 two = dl_two_floats(*(const typename dl_two_of<T>::type *)&p.v[j]);
        x.v[j] = two.x, x.v[j + 1] = two.y;
    }
    return x;
}

template <class T, int N> __device__ __forceinline__ dl_pack<T, N> dl_rounded(const dl_pack<float, N> &x)
{
    dl_pack<T, N> p;
#pragma unroll
    for (int j = 0; j < N; j += 2)
        dl_round_two(make_float2(x.v[j], x.v[j + 1]), *(typename dl_two_of<T>::type *)&p.v[j]);
    return p;
}

/* Pack i of what ends at `end`; I is int64_t, or int within a row. */
template <int N, class U, class I> __device__ __forceinline__ dl_pack<U, N> dl_read(const U *from, I i, I end)
{
    dl_pack<U, N> p;
    if ((i + 1) * N <= end) return *(const dl_pack<U, N> *)(from + i * N);
    for (int j = 0; j < N; j++) p.v[j] = i * N + j < end ? from[i * N + j] : U(0);
    return p;
}

/* Of pack i, what lies in [begin, end). */
template <int N, class U, class I>
__device__ __forceinline__ void dl_write(U *to, I i, I begin, I end, const dl_pack<U, N> &p)
{
    if (i * N >= begin && (i + 1) * N <= end) {
        *(dl_pack<U, N> *)(to + i * N) = p;
        return;
    }
    for (int j = 0; j < N; j++)
        if (i * N + j >= begin && i * N + j < end) to[i * N + j] = p.v[j];
}

template <int N, class U, class I> __device__ __forceinline__ void dl_write(U *to, I i, I end, const dl_pack<U, N> &p)
{
    dl_write(to, i, (I)0, end, p);
}

/* The first `end` numbers of what begins with a pack, into shared memory by all threads of a block of dl_block, which
 * then have to wait for each other; all loads are on their way at a time. */
template <class T> __device__ __forceinline__ void dl_fetch(dl_pack<T, dl_length<T>> *to, const T *from, int end)
{
    const int whole = end / dl_length<T>;
    for (int p = threadIdx.x; p < whole; p += dl_block)
        __pipeline_memcpy_async(&to[p], (const dl_pack<T, dl_length<T>> *)from + p, dl_pack_bytes);
    __pipeline_commit();
    if (threadIdx.x == 0 && whole * dl_length<T> < end) to[whole] = dl_read<dl_length<T>>(from, whole, end);
    __pipeline_wait_prior(0);
}

template <int N, class F> __global__ void __launch_bounds__(dl_block) dl_each_kernel(int64_t count, F f)
{
    const int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x;
    if (i * N < count) f(i);
}

/* f(i) for every pack of N of `count` numbers. */
template <int N, class F> static void dl_each(int64_t count, F f)
{
    const int64_t packs = dl_ceil_div(count, N);
    dl_each_kernel<N><<<(unsigned)dl_ceil_div(packs, dl_block), dl_block, 0, dl_cuda.stream>>>(count, f);
    DL_LAUNCHED(dl_each_kernel);
}

__device__ __forceinline__ float dl_warp_sum(float x)
{
    for (int step = dl_warp / 2; step; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ __forceinline__ float dl_warp_max(float x)
{
    for (int step = dl_warp / 2; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

/* Over all threads of the block, which must all come here, by what does so for a warp; all get the result. */
template <class V, class F> __device__ __forceinline__ V dl_over_block(V x, V neutral, F over_warp)
{
    __shared__ V parts[dl_warp];
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    x = over_warp(x);
    __syncthreads(); /* the parts of the time before have been read */
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    return over_warp(lane < (int)blockDim.x / dl_warp ? parts[lane] : neutral);
}

__device__ __forceinline__ float dl_block_sum(float x)
{
    return dl_over_block(x, 0.0f, [](float y) { return dl_warp_sum(y); });
}

/* Number i of rows of so many slots, and then every `step`-th: no division on the way. */
struct dl_walk {
    int row, slot, slots, rows_on, slots_on;
    __device__ dl_walk(int i, int step, int n_slots)
        : row(i / n_slots), slot(i % n_slots), slots(n_slots), rows_on(step / n_slots), slots_on(step % n_slots)
    {
    }
    __device__ __forceinline__ void go_on(void)
    {
        row += rows_on, slot += slots_on;
        if (slot >= slots) slot -= slots, row++;
    }
};

/* x / by for x < 2^31 by a multiplication with ceil(2^(32 + shift) / by): the error, below by / 2^(32 + shift) of x, is
 * too small to reach the next whole number where 2^(shift + 1) >= by. */
struct dl_divisor {
    uint32_t by, factor;
    int shift;
    explicit dl_divisor(uint32_t divisor) : by(divisor), shift(0)
    {
        while ((uint64_t)2 << shift < by) shift++;
        factor = (uint32_t)((((uint64_t)1 << (32 + shift)) + by - 1) / by);
    }
    __device__ __forceinline__ uint32_t quotient(uint32_t x) const
    {
        return by == 1 ? x : __umulhi(x, factor) >> shift;
    }
};

/* Good to a few units in the last place where activations are used, and short. */
__device__ __forceinline__ float dl_tanh(float x) { return 1 - __fdividef(2, __expf(2 * x) + 1); }
__device__ __forceinline__ float dl_sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

#endif
