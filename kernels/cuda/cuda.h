/* cuda.h - what the routines of the GPU share: one stream, checked calls, the precisions, and the tables.
 *
 * Every call of the CUDA libraries goes through DL_CUDA, DL_BLAS or DL_DNN: what fails stops the program with a line
 * that says what it was. Kernels are written for float, __nv_bfloat16 and __half; sums are made in float. */
#ifndef DL_KERNELS_CUDA_CUDA_H
#define DL_KERNELS_CUDA_CUDA_H

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/kernel.h"

/* Where a call is in the source, for the line that says that it failed. */
struct dl_place {
    const char *call, *file;
    int line;
};
#define DL_HERE(call) (dl_place{#call, __FILE__, __LINE__})
#define DL_CUDA(call) dl_cuda_check((call), DL_HERE(call))
#define DL_BLAS(call) dl_blas_check((call), DL_HERE(call))
void dl_cuda_check(cudaError_t status, dl_place place);
void dl_blas_check(cublasStatus_t status, dl_place place);
[[noreturn]] void dl_cuda_stop(const char *what, dl_place place);

/* Made by open() of the backend. */
enum { dl_blas_workspace_bytes = 32 << 20 /* what PyTorch gives cuBLAS on Hopper */, dl_blas_alignment_bytes = 16 };
struct dl_cuda {
    cudaStream_t stream;
    cublasHandle_t blas;
    void *blas_workspace;
    int units;      /* streaming multiprocessors */
    int parts_log2; /* of the blocks of a cluster; 0: there are no clusters before Hopper */
};
extern struct dl_cuda dl_cuda;

enum { dl_warp = 32, dl_block = 256 };

/* KERNEL<<<...>>>(...) and DL_LAUNCHED(KERNEL). */
#define DL_LAUNCHED(kernel) dl_cuda_check(cudaGetLastError(), DL_HERE(kernel))

static inline int64_t dl_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#define DL_PLAIN (1u << DL_FLOAT_FP32 | 1u << DL_FLOAT_BF16 | 1u << DL_FLOAT_FP16)
#define DL_PRODUCT (DL_PLAIN | 1u << DL_FLOAT_TF32)

/* Defines `name`, which calls name_as<T> for the precision of the call. */
#define DL_BY_PRECISION(name)                                                                                          \
    static void name(const struct dl_call *call)                                                                       \
    {                                                                                                                  \
        if (call->precision == DL_FLOAT_BF16)                                                                          \
            name##_as<__nv_bfloat16>(call);                                                                            \
        else if (call->precision == DL_FLOAT_FP16)                                                                     \
            name##_as<__half>(call);                                                                                   \
        else                                                                                                           \
            name##_as<float>(call);                                                                                    \
    }

/* A kernel of our own that goes into device files; more fields may follow in a table's entry. */
#define DL_KERNEL(the_problem, the_pass, the_run)                                                                      \
    .problem = the_problem, .pass = the_pass, .way = "cuda", .doc = "a CUDA kernel of dlsim", .precisions = DL_PLAIN,  \
    .run = the_run

/* Tables of the files beside this one; each ends with a routine without a name. */
extern "C" {
extern const struct dl_routine dl_cuda_gemms[], dl_cuda_gemm_gelus[], dl_cuda_grouped_gemms[], dl_cuda_attentions[],
    dl_cuda_tiled_attentions[], dl_cuda_convolutions[], dl_cuda_norms[], dl_cuda_columns[], dl_cuda_batchnorms[],
    dl_cuda_rows[], dl_cuda_embeddings[], dl_cuda_elements[], dl_cuda_pools[], dl_cuda_global_pools[],
    dl_cuda_optimizers[], dl_cuda_compressions[], dl_cuda_topks[];
}
const char *dl_cuda_convolution_version(void); /* NULL: built without cuDNN */

#endif
