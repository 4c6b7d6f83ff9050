/* compression.cu - codes of few bits: a warp to a bucket, a thread to two times eight values of it. What the codes mean
 * is in problems/compression.c. */
#include "kernels/cuda/packs.h"

enum { count, bits, buckets, code_bytes };
enum { bucket = 512, together = 8, groups = bucket / together, mine = groups / dl_warp };
enum { warps = dl_block / dl_warp };

/* The thread's values of a bucket, as floats; zeros behind the last. Group u of the thread is group lane + 32 u. */
struct values {
    float v[mine][together];
    int64_t first[mine]; /* of each group, in the tensor */
    template <class T> __device__ void read(const T *x, int64_t b, int64_t n)
    {
        for (int u = 0; u < mine; u++) {
            const int64_t group = b * groups + u * dl_warp + threadIdx.x % dl_warp;
            const auto p = dl_read<together>(x, group, n);
            first[u] = group * together;
            for (int j = 0; j < together; j++) v[u][j] = dl_float_of(p.v[j]);
        }
    }
};

__device__ __forceinline__ int64_t bucket_of_warp(void) { return (int64_t)blockIdx.x * warps + threadIdx.x / dl_warp; }

/* `n` of the lowest bytes of a word, which begin where the group's codes do; as wide as alignment allows. */
__device__ __forceinline__ void put_word(uint8_t *code, int64_t group, uint64_t word, int n)
{
    uint8_t *const to = code + group * n;
    if (n == 8)
        *(uint64_t *)to = word;
    else if (n == 4)
        *(uint32_t *)to = (uint32_t)word;
    else if (n == 2)
        *(uint16_t *)to = (uint16_t)word;
    else
        for (int i = 0; i < n; i++) to[i] = (uint8_t)(word >> (8 * i));
}

__device__ __forceinline__ uint64_t get_word(const uint8_t *code, int64_t group, int n)
{
    const uint8_t *const from = code + group * n;
    if (n == 8) return *(const uint64_t *)from;
    if (n == 4) return *(const uint32_t *)from;
    if (n == 2) return *(const uint16_t *)from;
    uint64_t word = 0;
    for (int i = 0; i < n; i++) word |= (uint64_t)from[i] << (8 * i);
    return word;
}

/* Eight codes, each `radix` times the one before it: the halves first, which fit 32 bits. */
__device__ __forceinline__ uint64_t pack_codes(const uint32_t *code, int n_bits)
{
    const uint32_t radix = 1u << n_bits;
    uint32_t low = 0, high = 0;
    for (int j = together / 2 - 1; j >= 0; j--) {
        low = low * radix + code[j];
        high = high * radix + code[j + together / 2];
    }
    return low | (uint64_t)high << (together / 2 * n_bits);
}

template <class T>
__global__ void __launch_bounds__(dl_block)
    quantize_buckets(const T *x, uint8_t *code, float *scale, int64_t n, int64_t n_buckets, int n_bits)
{
    const int64_t b = bucket_of_warp();
    if (b >= n_buckets) return;
    values v;
    v.read(x, b, n);
    float most = 0;
    for (int u = 0; u < mine; u++)
        for (int j = 0; j < together; j++) most = fmaxf(most, fabsf(v.v[u][j]));
    most = dl_warp_max(most);
    const float levels = (float)((1 << n_bits) - 1), factor = most > 0 ? 0.5f / most * levels : 0;
    for (int u = 0; u < mine; u++) {
        uint32_t codes[together];
        for (int j = 0; j < together; j++) {
            const int64_t at = v.first[u] + j;
            const float level = fminf(v.v[u][j] * factor + 0.5f * levels + dl_chance((uint64_t)at), levels);
            codes[j] = at < n ? (uint32_t)level : 0;
        }
        put_word(code, v.first[u] / together, pack_codes(codes, n_bits), n_bits);
    }
    if (threadIdx.x % dl_warp == 0) scale[b] = most;
}

template <class T> static void quantize_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    quantize_buckets<<<(unsigned)dl_ceil_div(d[buckets], warps), dl_block, 0, dl_cuda.stream>>>(
        (const T *)call->tensor[0], (uint8_t *)call->tensor[1], (float *)call->tensor[2], d[count], d[buckets],
        (int)d[bits]);
    DL_LAUNCHED(quantize_buckets);
}
DL_BY_PRECISION(quantize)

/* code, scale -> x */
template <class T> static void dequantize_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const int n_bits = (int)call->dim[bits];
    const uint32_t mask = (1u << n_bits) - 1;
    const uint8_t *const code = (const uint8_t *)call->tensor[0];
    const float *const scale = (const float *)call->tensor[1];
    T *const x = (T *)call->tensor[2];
    dl_each<together>(n, [=] __device__(int64_t i) {
        const uint64_t word = get_word(code, i, n_bits);
        const float least = -scale[i / groups], step = -2 * least / (float)mask;
        uint32_t low = (uint32_t)word, high = (uint32_t)(word >> (together / 2 * n_bits));
        dl_pack<T, together> p;
        for (int j = 0; j < together / 2; j++, low >>= n_bits, high >>= n_bits) {
            p.v[j] = dl_as<T>(least + step * (float)(low & mask));
            p.v[j + together / 2] = dl_as<T>(least + step * (float)(high & mask));
        }
        dl_write(x, i, n, p);
    });
}
DL_BY_PRECISION(dequantize)

/* Means of what is not negative and of what is, over the bucket. */
__device__ float2 means_of(const values &v, int64_t n)
{
    float sum[2] = {0, 0}, number[2] = {0, 0};
    for (int u = 0; u < mine; u++)
        for (int j = 0; j < together; j++) {
            const bool counts = v.first[u] + j < n, is_negative = v.v[u][j] < 0;
            sum[0] += counts && !is_negative ? v.v[u][j] : 0, number[0] += counts && !is_negative;
            sum[1] += counts && is_negative ? v.v[u][j] : 0, number[1] += counts && is_negative;
        }
    for (int s = 0; s < 2; s++) sum[s] = dl_warp_sum(sum[s]), number[s] = dl_warp_sum(number[s]);
    return make_float2(number[0] > 0 ? sum[0] / number[0] : 0, number[1] > 0 ? sum[1] / number[1] : 0);
}

/* x, error -> code, means */
template <class T>
__global__ void __launch_bounds__(dl_block)
    one_bit_buckets(const T *x, float *error, uint8_t *code, float2 *means, int64_t n, int64_t n_buckets)
{
    const int64_t b = bucket_of_warp();
    if (b >= n_buckets) return;
    values v, lost;
    v.read(x, b, n);
    lost.read(error, b, n);
    for (int u = 0; u < mine; u++)
        for (int j = 0; j < together; j++) v.v[u][j] += lost.v[u][j];
    const float2 mean = means_of(v, n);
    for (int u = 0; u < mine; u++) {
        dl_pack<float, together> left;
        uint32_t signs = 0;
        for (int j = 0; j < together; j++) {
            const bool is_negative = v.v[u][j] < 0;
            signs |= (uint32_t)(!is_negative && v.first[u] + j < n) << j;
            left.v[j] = v.v[u][j] - (is_negative ? mean.y : mean.x);
        }
        code[v.first[u] / together] = (uint8_t)signs;
        dl_write(error, v.first[u] / together, n, left);
    }
    if (threadIdx.x % dl_warp == 0) means[b] = mean;
}

template <class T> static void one_bit_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    one_bit_buckets<<<(unsigned)dl_ceil_div(d[buckets], warps), dl_block, 0, dl_cuda.stream>>>(
        (const T *)call->tensor[0], (float *)call->tensor[1], (uint8_t *)call->tensor[2], (float2 *)call->tensor[3],
        d[count], d[buckets]);
    DL_LAUNCHED(one_bit_buckets);
}
DL_BY_PRECISION(one_bit)

/* code, means -> x */
template <class T> static void one_bit_decode_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const uint8_t *const code = (const uint8_t *)call->tensor[0];
    const float2 *const means = (const float2 *)call->tensor[1];
    T *const x = (T *)call->tensor[2];
    dl_each<together>(n, [=] __device__(int64_t i) {
        const float2 mean = means[i / groups];
        const T positive = dl_as<T>(mean.x), negative = dl_as<T>(mean.y);
        const uint32_t signs = code[i];
        dl_pack<T, together> p;
        for (int j = 0; j < together; j++) p.v[j] = signs >> j & 1 ? positive : negative;
        dl_write(x, i, n, p);
    });
}
DL_BY_PRECISION(one_bit_decode)

const struct dl_routine dl_cuda_compressions[] = {
    {DL_KERNEL("quantize", "forward", quantize)},
    {DL_KERNEL("dequantize", "forward", dequantize)},
    {DL_KERNEL("one_bit", "forward", one_bit)},
    {DL_KERNEL("one_bit_decode", "forward", one_bit_decode)},
    {},
};
