#include "validation/mpi/packing.h"

#include <math.h>
#include <string.h>

enum { bucket_values = 512, bits_of_byte = 8 };

static size_t bucket_bytes(size_t n, unsigned bits)
{
    return sizeof(float) + (n * bits + bits_of_byte - 1) / bits_of_byte;
}

static size_t at_most_a_bucket(size_t n) { return n < bucket_values ? n : bucket_values; }

size_t dl_packed_bytes(size_t n, unsigned bits)
{
    const size_t rest = n % bucket_values;
    return n / bucket_values * bucket_bytes(bucket_values, bits) + (rest ? bucket_bytes(rest, bits) : 0);
}

/* Numbers of few bits one after the other, the lowest bit first. */
static void put(unsigned char *bytes, size_t i, unsigned bits, unsigned number)
{
    for (unsigned b = 0; b < bits; b++) {
        const size_t at = i * bits + b;
        if (number >> b & 1) bytes[at / bits_of_byte] |= (unsigned char)(1u << at % bits_of_byte);
    }
}

static unsigned get(const unsigned char *bytes, size_t i, unsigned bits)
{
    unsigned number = 0;
    for (unsigned b = 0; b < bits; b++) {
        const size_t at = i * bits + b;
        number |= (unsigned)(bytes[at / bits_of_byte] >> at % bits_of_byte & 1) << b;
    }
    return number;
}

/* Steps on each side of zero. */
static double levels_of(unsigned bits) { return (double)((1u << (bits - 1)) - 1); }

static double scale_of(const dl_real *values, size_t n, unsigned bits)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        sum += fabs((double)values[i]);
        most = fmax(most, fabs((double)values[i]));
    }
    return bits == 1 ? sum / (double)n : most;
}

/* Up or down at random, so that the mean is the value. */
static unsigned round_at_random(double value, double scale, unsigned bits, gsl_rng *random)
{
    const double levels = levels_of(bits), exact = scale > 0 ? value / scale * levels : 0;
    return (unsigned)(floor(fmin(exact, levels) + gsl_rng_uniform(random)) + levels);
}

void dl_pack(const dl_real *values, size_t n, unsigned bits, gsl_rng *random, char *out)
{
    for (size_t from = 0; from < n; from += bucket_values) {
        const size_t here = at_most_a_bucket(n - from);
        const float scale = (float)scale_of(values + from, here, bits);
        unsigned char *const numbers = (unsigned char *)out + sizeof scale;
        memset(out, 0, bucket_bytes(here, bits));
        memcpy(out, &scale, sizeof scale);
        for (size_t i = 0; i < here; i++) {
            const double value = (double)values[from + i];
            put(numbers, i, bits, bits == 1 ? value >= 0 : round_at_random(value, (double)scale, bits, random));
        }
        out += bucket_bytes(here, bits);
    }
}

void dl_unpack_add(const char *packed, size_t n, unsigned bits, dl_real *sum)
{
    for (size_t from = 0; from < n; from += bucket_values) {
        const size_t here = at_most_a_bucket(n - from);
        float scale;
        memcpy(&scale, packed, sizeof scale);
        for (size_t i = 0; i < here; i++) {
            const double number = get((const unsigned char *)packed + sizeof scale, i, bits), levels = levels_of(bits);
            const double share = bits == 1 ? 2 * number - 1 : (number - levels) / levels;
            sum[from + i] += (dl_real)(share * (double)scale);
        }
        packed += bucket_bytes(here, bits);
    }
}
