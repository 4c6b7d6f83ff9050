/* compression.c - gradients in fewer bits, in buckets of 512 values with a scale each.
 *
 * quantize: a value x of a bucket with largest magnitude s becomes the code floor((x / s + 1) / 2 (2^bits - 1) + u), u
 * in [0, 1) random, so that its mean is right (Alistarh et al. 2017, QSGD). Eight codes take `bits` bytes, the first in
 * the lowest bits. one_bit: what was lost before is added first, then the sign is kept, and per bucket the means of
 * what is not negative and of what is (Seide et al. 2014). What lies behind the last value counts as zero in codes. */
#include "kernels/problems/problems.h"

#include <math.h>

enum { count, bits, buckets, code_bytes, signs };
enum { bucket = 512, together = 8 };

static void complete(int64_t *d)
{
    d[buckets] = (d[count] + bucket - 1) / bucket;
    d[code_bytes] = d[buckets] * (bucket / together) * d[bits];
}

static void complete_one_bit(int64_t *d)
{
    d[bits] = 1;
    d[signs] = 2;
    complete(d);
}

static int64_t bucket_end(const int64_t *d, int64_t b)
{
    return (b + 1) * bucket < d[count] ? (b + 1) * bucket : d[count];
}

static int64_t code_at(const int64_t *d, const double *codes, int64_t i)
{
    uint64_t word = 0;
    for (int64_t byte = 0; byte < d[bits]; byte++) word |= (uint64_t)codes[i / together * d[bits] + byte] << (8 * byte);
    return (int64_t)(word >> (i % together * d[bits]) & ((1u << d[bits]) - 1));
}

static const char *check_bucket(const int64_t *d, double *const *t, int64_t b)
{
    const double levels = (double)((1 << d[bits]) - 1), rounding = 1e-3;
    double largest = 0;
    for (int64_t i = b * bucket; i < bucket_end(d, b); i++) largest = fmax(largest, fabs(t[0][i]));
    if (fabs(t[2][b] - largest) > 0) return "scale: is not the largest magnitude of its bucket";
    for (int64_t i = b * bucket; i < bucket_end(d, b); i++) {
        const double exact = largest > 0 ? (t[0][i] / largest + 1) / 2 * levels : 0;
        const double wanted = exact + (double)dl_coarse_chance((uint64_t)i), code = (double)code_at(d, t[1], i);
        if (!(code <= wanted + rounding && code > wanted - 1 - rounding && code <= levels))
            return "code: is not the value rounded by chance";
    }
    for (int64_t i = bucket_end(d, b); i < (b + 1) * bucket; i++)
        if (code_at(d, t[1], i) != 0) return "code: is not zero behind the last value";
    return NULL;
}

/* x -> code, scale */
static const char *verify_quantized(const int64_t *d, double *const *before, double *const *after)
{
    (void)before; /* inputs have been found unchanged */
    const char *wrong = NULL;
    for (int64_t b = 0; b < d[buckets] && !wrong; b++) wrong = check_bucket(d, after, b);
    return wrong;
}

/* code, scale -> x */
static void dequantize(const int64_t *d, double *const *t)
{
    const double levels = (double)((1 << d[bits]) - 1);
    for (int64_t i = 0; i < d[count]; i++) t[2][i] = t[1][i / bucket] * (2 * (double)code_at(d, t[0], i) / levels - 1);
}

/* x, error -> code, means (of what is not negative, of what is) */
static void one_bit(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[code_bytes]; i++) t[2][i] = 0;
    for (int64_t b = 0; b < d[buckets]; b++) {
        double sum[2] = {0, 0}, n[2] = {0, 0};
        for (int64_t i = b * bucket; i < bucket_end(d, b); i++) {
            const double x = t[0][i] + t[1][i];
            sum[x < 0] += x, n[x < 0]++;
            t[2][i / together] += x < 0 ? 0 : 1 << i % together;
        }
        for (int s = 0; s < 2; s++) t[3][2 * b + s] = n[s] > 0 ? sum[s] / n[s] : 0;
        for (int64_t i = b * bucket; i < bucket_end(d, b); i++) {
            const double x = t[0][i] + t[1][i];
            t[1][i] = x - t[3][2 * b + (x < 0)];
        }
    }
}

/* code, means -> x */
static void one_bit_decode(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[count]; i++) t[2][i] = t[1][i / bucket * 2 + !code_at(d, t[0], i)];
}

#define CODE(r)                                                                                                        \
    {                                                                                                                  \
        .name = "code", .role = r, .shape = "code_bytes", .store = DL_STORE_BYTE, .fill = DL_FILL_CODE                 \
    }
#define SCALE(n, r, s)                                                                                                 \
    {                                                                                                                  \
        .name = n, .role = r, .shape = s, .store = DL_STORE_FLOAT                                                      \
    }
#define VALUE(r)                                                                                                       \
    {                                                                                                                  \
        .name = "x", .role = r, .shape = "count"                                                                       \
    }
static const struct dl_tensor_spec quantize_tensors[] = {VALUE(DL_INPUT), CODE(DL_OUTPUT),
                                                         SCALE("scale", DL_OUTPUT, "buckets")};
static const struct dl_tensor_spec dequantize_tensors[] = {CODE(DL_INPUT), SCALE("scale", DL_INPUT, "buckets"),
                                                           VALUE(DL_OUTPUT)};
static const struct dl_tensor_spec one_bit_tensors[] = {VALUE(DL_INPUT), SCALE("error", DL_UPDATED, "count"),
                                                        CODE(DL_OUTPUT), SCALE("means", DL_OUTPUT, "signs buckets")};
static const struct dl_tensor_spec decode_tensors[] = {CODE(DL_INPUT), SCALE("means", DL_INPUT, "signs buckets"),
                                                       VALUE(DL_OUTPUT)};

static const int64_t odd[][DL_MAX_DIMS] = {{1, 8}, {7, 3}, {511, 4}, {512, 2}, {513, 5}, {5000, 8}, {2049, 7}, {0}};
static const int64_t timed[][DL_MAX_DIMS] = {{4096, 8},     {65536, 8},    {1000000, 8},   {1000001, 4}, {4194304, 2},
                                             {16777216, 4}, {33554432, 8}, {268435456, 8}, {0}};
static const int64_t odd_one_bit[][DL_MAX_DIMS] = {{1}, {7}, {511}, {512}, {1029}, {5000}, {0}};
static const int64_t timed_one_bit[][DL_MAX_DIMS] = {{4096},     {65536},    {1000000},   {1000001}, {4194304},
                                                     {16777216}, {33554432}, {268435456}, {0}};

#define CODED .pass = "forward", .dims = {"count", "bits", "buckets", "code_bytes", "signs"}, .row = DL_ROW_MEMORY
const struct dl_problem dl_problem_quantize = {.name = "quantize",
                                               CODED,
                                               .doc = "to n bits with stochastic rounding",
                                               DL_TENSORS(quantize_tensors),
                                               .n_given = 2,
                                               .complete = complete,
                                               .verify = verify_quantized,
                                               .odd = odd,
                                               .timed = timed};
const struct dl_problem dl_problem_dequantize = {.name = "dequantize",
                                                 CODED,
                                                 .doc = "and back",
                                                 DL_TENSORS(dequantize_tensors),
                                                 .n_given = 2,
                                                 .complete = complete,
                                                 .reference = dequantize,
                                                 .odd = odd,
                                                 .timed = timed};
const struct dl_problem dl_problem_one_bit = {.name = "one_bit",
                                              CODED,
                                              .doc = "to one bit with error feedback",
                                              DL_TENSORS(one_bit_tensors),
                                              .n_given = 1,
                                              .complete = complete_one_bit,
                                              .reference = one_bit,
                                              .odd = odd_one_bit,
                                              .timed = timed_one_bit};
const struct dl_problem dl_problem_one_bit_decode = {.name = "one_bit_decode",
                                                     CODED,
                                                     .doc = "and back",
                                                     DL_TENSORS(decode_tensors),
                                                     .n_given = 1,
                                                     .complete = complete_one_bit,
                                                     .reference = one_bit_decode,
                                                     .odd = odd_one_bit,
                                                     .timed = timed_one_bit};
