/* numbers.c - floating-point formats in software: what memory holds, as doubles, and back. */
#include "kernels/numbers.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* Tolerances are of the result's last place and of sums in fp32; see dl_trial_check for what they multiply. */
static const struct {
    const char *name;
    size_t bytes;
    int mantissa_bits, exponent_bits; /* 0: kept as a C float */
    double tolerance;
} floats[DL_N_FLOATS] = {
    [DL_FLOAT_FP32] = {"fp32", 4, 0, 0, 1e-5}, [DL_FLOAT_TF32] = {"tf32", 4, 0, 0, 2e-3},
    [DL_FLOAT_BF16] = {"bf16", 2, 7, 8, 1e-2}, [DL_FLOAT_FP16] = {"fp16", 2, 10, 5, 2e-3},
    [DL_FLOAT_FP8] = {"fp8", 1, 3, 4, 1e-1}, /* E4M3 (Micikevicius et al. 2022, FP8 formats for deep learning) */
};

const char *dl_float_name(enum dl_float f) { return floats[f].name; }
size_t dl_float_bytes(enum dl_float f) { return floats[f].bytes; }
double dl_float_tolerance(enum dl_float f) { return floats[f].tolerance; }

static int bias_of(enum dl_float f) { return (1 << (floats[f].exponent_bits - 1)) - 1; }

double dl_float_least(enum dl_float f)
{
    return floats[f].exponent_bits ? ldexp(1, 1 - bias_of(f) - floats[f].mantissa_bits) : (double)FLT_TRUE_MIN;
}

/* Round to nearest, ties to even. Larger than the largest becomes the largest; that of E4M3 has one code less. */
static uint16_t encode(double x, enum dl_float f)
{
    const int mantissa = floats[f].mantissa_bits, bias = bias_of(f), least = 1 - bias;
    const int codes = 1 << (mantissa + floats[f].exponent_bits);
    const int largest = f == DL_FLOAT_FP8 ? codes - 2 : codes - (1 << mantissa) - 1;
    const int sign = signbit(x) ? codes : 0;
    const double size = fabs(x);
    const int exponent = size > 0 && ilogb(size) > least ? ilogb(size) : least;
    const double steps = nearbyint(ldexp(size, mantissa - exponent)); /* one more than fits carries into the exponent */
    const double code = steps + (double)((exponent - least) << mantissa);
    return (uint16_t)(sign | (code < largest ? (int)code : largest));
}

static double decode(uint16_t bits, enum dl_float f)
{
    const int mantissa = floats[f].mantissa_bits, least = 1 - bias_of(f);
    const int codes = 1 << (mantissa + floats[f].exponent_bits), code = bits & (codes - 1);
    const int exponent = code >> mantissa, part = code & ((1 << mantissa) - 1);
    const bool is_nan = f == DL_FLOAT_FP8 ? code == codes - 1 : exponent == (codes - 1) >> mantissa;
    const double size =
        exponent ? ldexp(part + (1 << mantissa), exponent - 1 + least - mantissa) : ldexp(part, least - mantissa);
    return is_nan ? (double)NAN : bits & codes ? -size : size;
}

size_t dl_store_bytes(enum dl_store store, enum dl_float f)
{
    switch (store) {
    case DL_STORE_DATA: return floats[f].bytes;
    case DL_STORE_FLOAT: return sizeof(float);
    case DL_STORE_INT: return sizeof(int32_t);
    case DL_STORE_BYTE: return sizeof(uint8_t);
    }
    assert(!"no such store");
    return 0;
}

static bool is_c_float(enum dl_store store, enum dl_float f)
{
    return store == DL_STORE_FLOAT || (store == DL_STORE_DATA && !floats[f].exponent_bits);
}

void dl_store_put(void *memory, size_t i, double x, enum dl_store store, enum dl_float f)
{
    if (is_c_float(store, f))
        ((float *)memory)[i] = (float)x;
    else if (store == DL_STORE_INT)
        ((int32_t *)memory)[i] = (int32_t)x;
    else if (store == DL_STORE_BYTE)
        ((uint8_t *)memory)[i] = (uint8_t)x;
    else if (floats[f].bytes == sizeof(uint16_t))
        ((uint16_t *)memory)[i] = encode(x, f);
    else
        ((uint8_t *)memory)[i] = (uint8_t)encode(x, f);
}

double dl_store_get(const void *memory, size_t i, enum dl_store store, enum dl_float f)
{
    if (is_c_float(store, f)) return (double)((const float *)memory)[i];
    if (store == DL_STORE_INT) return ((const int32_t *)memory)[i];
    if (store == DL_STORE_BYTE) return ((const uint8_t *)memory)[i];
    if (floats[f].bytes == sizeof(uint16_t)) return decode(((const uint16_t *)memory)[i], f);
    return decode(((const uint8_t *)memory)[i], f);
}
