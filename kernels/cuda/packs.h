/* packs.h - 16 bytes of a tensor at a time.
 *
 * A tensor is a row of packs of N numbers, N x the precision = 16 bytes; pack i has the numbers from i N on. The last
 * one may be partial: what lies behind the end reads as zero and is never written. Tensors begin on 256 bytes, so whole
 * packs are aligned. Companions in another type (masks, fp32 state) use the same N. */
#ifndef DL_KERNELS_CUDA_PACKS_H
#define DL_KERNELS_CUDA_PACKS_H

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

/* Over all threads of the block, which must all come here; all get the result. */
__device__ __forceinline__ float dl_block_sum(float x)
{
    __shared__ float parts[dl_warp];
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    x = dl_warp_sum(x);
    __syncthreads(); /* the parts of the sum before have been read */
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    return dl_warp_sum(lane < (int)blockDim.x / dl_warp ? parts[lane] : 0);
}

__device__ __forceinline__ float dl_block_max(float x)
{
    __shared__ float parts[dl_warp];
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    x = dl_warp_max(x);
    __syncthreads();
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    return dl_warp_max(lane < (int)blockDim.x / dl_warp ? parts[lane] : -INFINITY);
}

/* Good to a few units in the last place where activations are used, and short. */
__device__ __forceinline__ float dl_tanh(float x) { return 1 - __fdividef(2, __expf(2 * x) + 1); }
__device__ __forceinline__ float dl_sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

#endif
