/* packing.h - values with few bits: for every 512 of them a scale in fp32, then a number of `bits` bits each; 1 bit is
 * the sign, of the mean size of its 512 (as dlsim's payloads count bytes). */
#ifndef DL_MPI_PACKING_H
#define DL_MPI_PACKING_H

#include "sim/core/random.h"
#include "validation/mpi/real.h"

size_t dl_packed_bytes(size_t n, unsigned bits);
void dl_pack(const dl_real *values, size_t n, unsigned bits, gsl_rng *random, char *out);
/* Adds what was packed. */
void dl_unpack_add(const char *packed, size_t n, unsigned bits, dl_real *sum);

#endif
