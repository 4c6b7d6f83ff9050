/* gemm.h - BLAS for the numbers that are trained with. Not together with GSL's own header of BLAS. */
#ifndef DL_MPI_GEMM_H
#define DL_MPI_GEMM_H

#include <cblas.h>

#ifdef DL_TRAIN_DOUBLE
#define dl_gemm cblas_dgemm
#else
#define dl_gemm cblas_sgemm
#endif

#endif
