/* gemm.h - one batched product by cuBLAS, in the words of row-major matrices. */
#ifndef DL_KERNELS_CUDA_GEMM_H
#define DL_KERNELS_CUDA_GEMM_H

#include "kernels/cuda/cuda.h"

/* Rows are `step` numbers apart, matrices of a batch `stride`. */
struct dl_matrix {
    void *data;
    int64_t step, stride;
    bool is_transposed;
};

/* C = scale op(A) op(B) + keep C, with op(A) m x k. C is in the precision of the call, or in fp32. */
struct dl_product {
    enum dl_float precision;
    int64_t batch, m, n, k;
    struct dl_matrix a, b, c;
    float scale, keep;
    bool is_c_fp32;
};
void dl_cuda_product(const struct dl_product *p);

cublasOperation_t dl_operation(const struct dl_matrix &m);
cudaDataType_t dl_cuda_type(enum dl_float f);
cublasComputeType_t dl_compute_type(enum dl_float f);

/* The memory of a tensor from number i on. */
static inline void *dl_at(void *tensor, int64_t i, enum dl_float f)
{
    return (char *)tensor + i * (int64_t)dl_float_bytes(f);
}

/* A routine by cuBLAS; more fields may follow in a table's entry. */
#define DL_CUBLAS(the_problem, the_pass, the_run)                                                                      \
    .problem = the_problem, .pass = the_pass, .way = "cublas", .doc = "cuBLAS", .precisions = DL_PRODUCT, .run = the_run

#endif
