#include "kernels/cuda/lt.h"

#include "kernels/cuda/gemm.h"

static cublasLtHandle_t lt(void) { return (cublasLtHandle_t)dl_cuda.blas; } /* cuBLAS allows this */

cublasLtMatmulDesc_t dl_lt_describe(enum dl_float f, bool is_a_transposed)
{
    cublasLtMatmulDesc_t product;
    const cublasOperation_t a = is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    DL_BLAS(cublasLtMatmulDescCreate(&product, dl_compute_type(f), CUDA_R_32F));
    dl_lt_set(product, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    return product;
}

void dl_lt_set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    DL_BLAS(cublasLtMatmulDescSetAttribute(product, what, value, bytes));
}

cublasLtMatrixLayout_t dl_lt_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t n_matrices)
{
    cublasLtMatrixLayout_t l;
    const int32_t count = (int32_t)n_matrices;
    const int64_t stride = rows * columns;
    DL_BLAS(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)columns, rows));
    DL_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    DL_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    return l;
}

bool dl_lt_choose(struct dl_lt *p)
{
    cublasLtMatmulPreference_t preference;
    const uint64_t most_bytes = dl_blas_workspace_bytes;
    int n_found = 0;
    DL_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    DL_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_bytes,
                                                 sizeof most_bytes));
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt(), p->product, p->a, p->b, p->c, p->d, preference, 1, &p->choice, &n_found);
    DL_BLAS(cublasLtMatmulPreferenceDestroy(preference));
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) DL_BLAS(status);
    return status == CUBLAS_STATUS_SUCCESS && n_found > 0;
}

void dl_lt_run(const struct dl_lt *p, const void *a, const void *b, void *d)
{
    const float one = 1, zero = 0;
    DL_BLAS(cublasLtMatmul(lt(), p->product, &one, a, p->a, b, p->b, &zero, NULL, p->c, d, p->d, &p->choice.algo,
                           dl_cuda.blas_workspace, dl_blas_workspace_bytes, dl_cuda.stream));
}

void dl_lt_free(struct dl_lt *p)
{
    if (!p) return;
    const cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c, p->d};
    for (cublasLtMatrixLayout_t l : layouts) DL_BLAS(cublasLtMatrixLayoutDestroy(l));
    DL_BLAS(cublasLtMatmulDescDestroy(p->product));
    delete p;
}
