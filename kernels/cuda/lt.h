/* lt.h - one product by cuBLASLt, D = op(A) op(B) with something done to it on the way out: a bias, GELU, its slope. */
#ifndef DL_KERNELS_CUDA_LT_H
#define DL_KERNELS_CUDA_LT_H

#include <cublasLt.h>

#include "kernels/cuda/cuda.h"

/* What cuBLASLt needs to know, and the algorithm that it chose. Matrices are column-major. */
struct dl_lt {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulHeuristicResult_t choice;
};

/* Made by the caller: the product's description, set by dl_lt_set, and four layouts. */
cublasLtMatmulDesc_t dl_lt_describe(enum dl_float f, bool is_a_transposed);
void dl_lt_set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes);
cublasLtMatrixLayout_t dl_lt_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t n_matrices);

bool dl_lt_choose(struct dl_lt *p); /* false: the library has no algorithm for it */
void dl_lt_run(const struct dl_lt *p, const void *a, const void *b, void *d);
void dl_lt_free(struct dl_lt *p); /* may be NULL */

#endif
