/* random.h - seeded random streams: the same (seed, purpose, index) gives the same numbers, whatever else is drawn. */
#ifndef DL_CORE_RANDOM_H
#define DL_CORE_RANDOM_H

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* A Mersenne twister of its own; release with gsl_rng_free. `purpose` is a short word such as "placement". */
gsl_rng *dl_random_new(uint64_t seed, const char *purpose, uint64_t index);

/* A well-mixed 64-bit hash of a value, for choices that must not depend on order (ECMP). */
uint64_t dl_mix(uint64_t value);

#endif
