/* compression.cu - codes of few bits: a warp to a bucket, a thread to two times eight values of it. What the codes mean
 * is in problems/compression.c. */
#include "kernels/cuda/packs.h"

enum { count, bits, buckets, code_bytes };
enum { bucket = 512, together = 8, pairs = together / 2, groups = bucket / together, mine = groups / dl_warp };
enum { warps = dl_block / dl_warp };

/* The thread's values of a bucket, as floats; zeros behind the last. Group u of the thread is group lane + 32 u. */
struct values {
    dl_pack<float, together> v[mine];
    int64_t group; /* the first of the thread */
    bool is_whole; /* all values of the bucket are there */
    template <class T> __device__ __forceinline__ values(const T *x, int64_t b, int64_t n)
    {
        group = b * groups + threadIdx.x % dl_warp, is_whole = (b + 1) * bucket <= n;
        dl_pack<T, together> read[mine];
        for (int u = 0; u < mine; u++)
            read[u] = is_whole ? ((const dl_pack<T, together> *)x)[group + u * dl_warp]
                               : dl_read<together>(x, group + u * dl_warp, n);
        for (int u = 0; u < mine; u++) v[u] = dl_floats(read[u]);
    }
    /* How many of group u there are. */
    __device__ __forceinline__ int count(int u, int64_t n) const
    {
        if (is_whole) return together;
        return (int)max((int64_t)0, min((int64_t)together, n - (group + u * dl_warp) * together));
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

/* Eight numbers of which byte 2 is the code. Codes of fewer bits: each `radix` times the one before it, the halves
 * first, which fit 32 bits. */
__device__ __forceinline__ uint64_t pack_codes(const uint32_t *fixed, int n_bits)
{
    const uint32_t radix = 1u << n_bits;
    uint32_t half[2] = {0, 0};
    for (int h = 0; h < 2; h++) {
        const uint32_t *const first = fixed + h * together / 2;
        if (n_bits == 8) {
            half[h] = __byte_perm(__byte_perm(first[0], first[1], 0x62), __byte_perm(first[2], first[3], 0x62), 0x5410);
            continue;
        }
        for (int j = together / 2 - 1; j >= 0; j--) half[h] = half[h] * radix + (first[j] >> 16 & 0xff);
    }
    return half[0] | (uint64_t)half[1] << (together / 2 * n_bits);
}

/* floor(x + chance) for x in [0, 255], as byte 2 of what is returned. In 256 + x the last 15 bits of a float's mantissa
 * are the fraction and the 8 before them the whole number: with twice these bits, 16 of chance are added to the
 * fraction. The bits of the exponent are above. */
__device__ __forceinline__ uint32_t rounded_by_chance(float x_above_256, uint32_t half_bits)
{
    return __float_as_uint(x_above_256) * 2 + half_bits;
}

template <class T>
__global__ void __launch_bounds__(dl_block, 8)
    quantize_buckets(const T *x, uint8_t *code, float *scale, int64_t n, int64_t n_buckets, int n_bits)
{
    const int64_t b = bucket_of_warp();
    if (b >= n_buckets) return;
    const values v(x, b, n);
    float most = 0;
    for (int u = 0; u < mine; u++)
        for (int j = 0; j < together; j++) most = fmaxf(most, fabsf(v.v[u].v[j]));
    /* What is not negative is ordered as its bits. */
    most = __uint_as_float(__reduce_max_sync(0xffffffff, __float_as_uint(most)));
    const float levels = (float)((1 << n_bits) - 1);
    const float factor = most > 0 ? __fdividef(0.5f, most) : 0, middle = most > 0 ? 0.5f : 0;
    /* __saturatef: 0 at the least, 1 at the most. */
    const auto above_256 = [=](float x) { return __fmaf_rd(__saturatef(x * factor + middle), levels, 256); };
    for (int u = 0; u < mine; u++) {
        const int64_t group = v.group + u * dl_warp;
        const uint32_t begin = dl_bits_begin((uint64_t)(group * pairs)); /* the upper half of the four is the same */
        uint32_t fixed[together];
        for (int j = 0; j < together; j += 2) {
            const uint32_t bits_of_two = dl_bits_from(begin + j / 2 * DL_BITS_STEP);
            fixed[j] = rounded_by_chance(above_256(v.v[u].v[j]), bits_of_two & 0xffff);
            fixed[j + 1] = rounded_by_chance(above_256(v.v[u].v[j + 1]), bits_of_two >> 16);
        }
        if (!v.is_whole)
            for (int j = 0; j < together; j++) fixed[j] = j < v.count(u, n) ? fixed[j] : 0;
        put_word(code, group, pack_codes(fixed, n_bits), n_bits);
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

/* A pack of values, which is a group or half of one. */
template <class T> struct part {
    int64_t group;
    int first; /* of its values in the group */
    __device__ __forceinline__ explicit part(int64_t pack)
    {
        const int parts = together / dl_length<T>;
        group = pack / parts, first = (int)(pack % parts) * dl_length<T>;
    }
};

/* code, scale -> x */
template <class T> static void dequantize_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const int n_bits = (int)call->dim[bits];
    const uint32_t mask = (1u << n_bits) - 1;
    const uint8_t *const code = (const uint8_t *)call->tensor[0];
    const float *const scale = (const float *)call->tensor[1];
    T *const x = (T *)call->tensor[2];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        const part<T> at(i);
        uint64_t word = get_word(code, at.group, n_bits) >> (at.first * n_bits);
        const float least = -scale[at.group / groups], step = -2 * least / (float)mask;
        dl_pack<float, dl_length<T>> p;
#pragma unroll
        for (int half = 0; half < dl_length<T>; half += together / 2) {
            uint32_t codes = (uint32_t)word;
            for (int j = half; j < half + together / 2; j++, codes >>= n_bits)
                p.v[j] = least + step * (float)(codes & mask);
            word >>= together / 2 * n_bits;
        }
        dl_write(x, i, n, dl_rounded<T>(p));
    });
}
DL_BY_PRECISION(dequantize)

/* Means of what is not negative and of what is, over the bucket. */
__device__ __forceinline__ float2 means_of(const values &v, int64_t n)
{
    float sum[2] = {0, 0};
    int number[2] = {0, 0};
    for (int u = 0; u < mine; u++) {
        const int n_values = v.count(u, n);
        for (int j = 0; j < together; j++) {
            const float x = v.v[u].v[j]; /* zero behind the last */
            const bool is_negative = x < 0;
            sum[0] += is_negative ? 0 : x, sum[1] += is_negative ? x : 0;
            number[1] += is_negative;
        }
        number[0] += n_values;
    }
    number[0] -= number[1];
    for (int s = 0; s < 2; s++) sum[s] = dl_warp_sum(sum[s]), number[s] = __reduce_add_sync(0xffffffff, number[s]);
    return make_float2(number[0] > 0 ? sum[0] / (float)number[0] : 0, number[1] > 0 ? sum[1] / (float)number[1] : 0);
}

/* x, error -> code, means */
template <class T>
__global__ void __launch_bounds__(dl_block, 4)
    one_bit_buckets(const T *x, float *error, uint8_t *code, float2 *means, int64_t n, int64_t n_buckets)
{
    const int64_t b = bucket_of_warp();
    if (b >= n_buckets) return;
    values v(error, b, n);
    const values added(x, b, n);
    for (int u = 0; u < mine; u++)
        for (int j = 0; j < together; j++) v.v[u].v[j] += added.v[u].v[j];
    const float2 mean = means_of(v, n);
    for (int u = 0; u < mine; u++) {
        const int64_t group = v.group + u * dl_warp;
        dl_pack<float, together> left;
        uint32_t signs = 0;
        for (int j = 0; j < together; j++) {
            const bool is_negative = v.v[u].v[j] < 0;
            signs |= is_negative ? 0 : 1u << j;
            left.v[j] = v.v[u].v[j] - (is_negative ? mean.y : mean.x);
        }
        code[group] = (uint8_t)(signs & ((1u << v.count(u, n)) - 1));
        dl_write(error, group, n, left);
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
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        const part<T> at(i);
        const float2 mean = means[at.group / groups];
        const uint32_t signs = code[at.group] >> at.first;
        dl_pack<float, dl_length<T>> p;
        for (int j = 0; j < dl_length<T>; j++) p.v[j] = signs >> j & 1 ? mean.x : mean.y;
        dl_write(x, i, n, dl_rounded<T>(p));
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
