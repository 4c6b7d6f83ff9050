#include "sim/core/random.h"

/* Finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t dl_mix(uint64_t value)
{
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

gsl_rng *dl_random_new(uint64_t seed, const char *purpose, uint64_t index)
{
    uint64_t hash = dl_mix(seed);
    for (; *purpose; purpose++) hash = dl_mix(hash ^ (unsigned char)*purpose);
    hash = dl_mix(hash ^ index);
    gsl_rng *const rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, (unsigned long)(hash & 0xffffffffu));
    return rng;
}
