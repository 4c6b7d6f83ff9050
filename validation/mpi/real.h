/* real.h - the numbers that are trained with: fp32, or double where losses are compared closely. */
#ifndef DL_MPI_REAL_H
#define DL_MPI_REAL_H

#include <mpi.h>
#include <stddef.h>

#ifdef DL_TRAIN_DOUBLE
typedef double dl_real;
#define DL_MPI_REAL MPI_DOUBLE
#define DL_REAL_NAME "fp64"
#else
typedef float dl_real;
#define DL_MPI_REAL MPI_FLOAT
#define DL_REAL_NAME "fp32"
#endif

/* A matrix, row by row. at NULL: none. */
struct dl_rows {
    dl_real *at;
    size_t n, width;
};

struct dl_range {
    size_t from, n;
};

/* Part i of n things that are cut into equal parts, or as equal as can be. */
static inline struct dl_range dl_part_of(size_t n, size_t i, size_t parts)
{
    const size_t from = n * i / parts;
    return (struct dl_range){from, n * (i + 1) / parts - from};
}

#endif
