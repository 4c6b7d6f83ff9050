/* compression.c - codes of few bits and the largest values; what the codes mean is in problems/compression.c. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { count, bits, buckets, code_bytes };
enum { bucket = 512, together = 8 };

static float largest_magnitude(const float *x, int64_t n)
{
    float most = 0;
    DL_MAX(most)
    for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* Eight codes as one word of which `bits` bytes are kept, the lowest first. */
static void put_word(uint8_t *to, uint64_t word, int64_t n_bytes)
{
    for (int64_t byte = 0; byte < n_bytes; byte++) to[byte] = (uint8_t)(word >> (8 * byte));
}

static uint64_t get_word(const uint8_t *from, int64_t n_bytes)
{
    uint64_t word = 0;
    for (int64_t byte = 0; byte < n_bytes; byte++) word |= (uint64_t)from[byte] << (8 * byte);
    return word;
}

static int64_t in_bucket(const int64_t *d, int64_t b)
{
    return d[count] - b * bucket < bucket ? d[count] - b * bucket : bucket;
}

static void round_by_chance(const float *x, uint8_t *code, int64_t n, float factor, float levels, uint64_t first)
{
    DL_VECTOR
    for (int64_t i = 0; i < n; i++) {
        const float level = (x[i] * factor + 0.5f) * levels + dl_coarse_chance(first + (uint64_t)i);
        code[i] = (uint8_t)(level < levels ? level : levels);
    }
}

static void quantize(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], levels = (float)((1 << d[bits]) - 1);
    uint8_t *out = call->tensor[1];
    float *const scale = call->tensor[2];
    for (int64_t b = 0; b < d[buckets]; b++) {
        uint8_t code[bucket] = {0};
        const int64_t n = in_bucket(d, b);
        scale[b] = largest_magnitude(x + b * bucket, n);
        const float factor = scale[b] > 0 ? 0.5f / scale[b] : 0;
        round_by_chance(x + b * bucket, code, n, factor, levels, (uint64_t)(b * bucket));
        for (int i = 0; i < bucket; i += together, out += d[bits]) {
            uint64_t word = 0;
            for (int j = 0; j < together; j++) word |= (uint64_t)code[i + j] << (j * d[bits]);
            put_word(out, word, d[bits]);
        }
    }
}

static void dequantize(const struct dl_call *call)
{
    const int64_t *const d = call->dim, mask = (1 << d[bits]) - 1;
    const uint8_t *const code = call->tensor[0];
    const float *const scale = call->tensor[1];
    float *const x = call->tensor[2];
    for (int64_t i = 0; i < d[count]; i += together) {
        const uint64_t word = get_word(code + i / together * d[bits], d[bits]);
        const float step = 2 * scale[i / bucket] / (float)mask, least = -scale[i / bucket];
        for (int64_t j = 0; j < together && i + j < d[count]; j++)
            x[i + j] = least + step * (float)(int64_t)(word >> (j * d[bits]) & (uint64_t)mask);
    }
}

/* The sums of what is not negative and of what is; error becomes value + error on the way. */
static void sums_by_sign(const float *x, float *error, int64_t n, float *sum, float *number)
{
    float positive = 0, negative = 0, n_negative = 0;
    DL_SUM(positive, negative, n_negative)
    for (int64_t i = 0; i < n; i++) {
        error[i] += x[i];
        positive += error[i] < 0 ? 0 : error[i];
        negative += error[i] < 0 ? error[i] : 0;
        n_negative += error[i] < 0 ? 1.0f : 0;
    }
    sum[0] = positive, sum[1] = negative;
    number[0] = (float)n - n_negative, number[1] = n_negative;
}

static void one_bit(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0];
    float *const error = call->tensor[1], *const means = call->tensor[3];
    uint8_t *const code = call->tensor[2];
    memset(code, 0, (size_t)d[code_bytes]);
    for (int64_t b = 0; b < d[buckets]; b++) {
        float sum[2], number[2], *const e = error + b * bucket, *const mean = means + 2 * b;
        sums_by_sign(x + b * bucket, e, in_bucket(d, b), sum, number);
        for (int s = 0; s < 2; s++) mean[s] = number[s] > 0 ? sum[s] / number[s] : 0;
        for (int64_t i = 0; i < in_bucket(d, b); i++) {
            const bool is_negative = e[i] < 0;
            code[(b * bucket + i) / together] |= (uint8_t)(!is_negative << i % together);
            e[i] -= mean[is_negative];
        }
    }
}

static void one_bit_decode(const struct dl_call *call)
{
    const uint8_t *const code = call->tensor[0];
    const float *const means = call->tensor[1];
    float *const x = call->tensor[2];
    for (int64_t i = 0; i < call->dim[count]; i++)
        x[i] = means[i / bucket * 2 + !(code[i / together] >> i % together & 1)];
}

/* Selection: magnitudes compare as their bits do, so the k-th largest is found digit by digit, from the highest. */
enum { k = bits };
enum { digit_bits = 11, n_digits = 3, n_values = 1 << digit_bits };

static uint32_t magnitude_bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b & 0x7fffffffu;
}

/* The bits of the k-th largest magnitude; *n_equal: how many that are equal to it belong to the first k. */
static uint32_t threshold(const float *x, int64_t n, int64_t wanted, int64_t *n_equal)
{
    uint32_t prefix = 0;
    for (int digit = n_digits - 1; digit >= 0; digit--) {
        const int shift = digit * digit_bits;
        const uint32_t above = digit == n_digits - 1 ? 0 : ~0u << (shift + digit_bits);
        int64_t histogram[n_values] = {0};
        for (int64_t i = 0; i < n; i++) {
            const uint32_t b = magnitude_bits(x[i]);
            if ((b & above) == prefix) histogram[b >> shift & (n_values - 1)]++;
        }
        uint32_t value = n_values - 1;
        for (; histogram[value] < wanted; value--) wanted -= histogram[value];
        prefix |= value << shift;
    }
    *n_equal = wanted;
    return prefix;
}

static void topk(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0];
    float *const value = call->tensor[1];
    int32_t *const index = call->tensor[2];
    int64_t n_equal, n = 0;
    const uint32_t least = threshold(x, d[count], d[k], &n_equal);
    for (int64_t i = 0; i < d[count]; i++) {
        const uint32_t b = magnitude_bits(x[i]);
        if (b < least || (b == least && n_equal-- <= 0)) continue;
        value[n] = x[i];
        index[n++] = (int32_t)i;
    }
}

const struct dl_routine dl_cpu_compressions[] = {
    {DL_CPU("quantize", "forward", quantize)}, {DL_CPU("dequantize", "forward", dequantize)},
    {DL_CPU("one_bit", "forward", one_bit)},   {DL_CPU("one_bit_decode", "forward", one_bit_decode)},
    {DL_CPU("topk", "forward", topk)},         {0},
};
