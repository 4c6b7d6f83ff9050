/* gemm.cu - products of matrices by cuBLAS, as PyTorch calls it: a bias in the epilogue of cuBLASLt, batches with
 * strides. Layouts are those of problems/gemm.c. */
#include "kernels/cuda/gemm.h"

#include "kernels/cuda/lt.h"
#include "kernels/cuda/packs.h"

enum { batch, m, n, k, bias };

cublasOperation_t dl_operation(const struct dl_matrix &m) { return m.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

cudaDataType_t dl_cuda_type(enum dl_float f)
{
    return f == DL_FLOAT_BF16   ? CUDA_R_16BF
           : f == DL_FLOAT_FP16 ? CUDA_R_16F
           : f == DL_FLOAT_FP8  ? CUDA_R_8F_E4M3
                                : CUDA_R_32F;
}

cublasComputeType_t dl_compute_type(enum dl_float f)
{
    return f == DL_FLOAT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* What is row-major here is the transpose in cuBLAS, whose matrices are column-major: C^T = op(B)^T op(A)^T. */
void dl_cuda_product(const struct dl_product *p)
{
    const cublasOperation_t left = dl_operation(p->b), right = dl_operation(p->a);
    const cudaDataType_t type = dl_cuda_type(p->precision), type_c = p->is_c_fp32 ? CUDA_R_32F : type;
    const cublasComputeType_t compute = dl_compute_type(p->precision);
    if (p->batch == 1)
        DL_BLAS(cublasGemmEx(dl_cuda.blas, left, right, (int)p->n, (int)p->m, (int)p->k, &p->scale, p->b.data, type,
                             (int)p->b.step, p->a.data, type, (int)p->a.step, &p->keep, p->c.data, type_c,
                             (int)p->c.step, compute, CUBLAS_GEMM_DEFAULT));
    else
        DL_BLAS(cublasGemmStridedBatchedEx(dl_cuda.blas, left, right, (int)p->n, (int)p->m, (int)p->k, &p->scale,
                                           p->b.data, type, (int)p->b.step, p->b.stride, p->a.data, type,
                                           (int)p->a.step, p->a.stride, &p->keep, p->c.data, type_c, (int)p->c.step,
                                           p->c.stride, (int)p->batch, compute, CUBLAS_GEMM_DEFAULT));
}

/* fp8 adds up fast, as Transformer Engine's forward pass does. */
static cublasLtMatmulDesc_t describe(const struct dl_call *call)
{
    const cublasLtMatmulDesc_t product = dl_lt_describe(call->precision, true);
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const int8_t fast = call->precision == DL_FLOAT_FP8;
    dl_lt_set(product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (!call->dim[bias]) return product;
    dl_lt_set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    dl_lt_set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->tensor[2], sizeof call->tensor[2]);
    return product;
}

static bool needs_lt(const int64_t *d, enum dl_float f) { return f == DL_FLOAT_FP8 || (d[bias] && d[batch] == 1); }

static void *forward_open(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const cudaDataType_t type = dl_cuda_type(call->precision);
    if (!needs_lt(d, call->precision)) return NULL;
    struct dl_lt *const p = new dl_lt();
    p->product = describe(call);
    p->a = dl_lt_layout(type, d[k], d[n], d[batch]);
    p->b = dl_lt_layout(type, d[k], d[m], d[batch]);
    p->c = dl_lt_layout(call->precision == DL_FLOAT_FP8 ? CUDA_R_16BF : type, d[n], d[m], d[batch]);
    p->d = dl_lt_layout(type, d[n], d[m], d[batch]);
    if (!dl_lt_choose(p)) dl_cuda_stop("cuBLASLt knows no algorithm for this product", DL_HERE(dl_lt_choose));
    return p;
}

static void forward_close(void *plan) { dl_lt_free((struct dl_lt *)plan); }

/* Row r of the output begins as the bias of its matrix. */
template <class T> static void fill_biases_as(const struct dl_call *call)
{
    const int64_t outputs = call->dim[n], rows = call->dim[m], total = call->dim[batch] * rows * outputs;
    const T *const added = (const T *)call->tensor[2];
    T *const y = (T *)call->tensor[3];
    dl_each<dl_length<T>>(total, [=] __device__(int64_t i) {
        dl_pack<T, dl_length<T>> p;
        for (int j = 0; j < dl_length<T>; j++) {
            const int64_t at = i * dl_length<T> + j;
            p.v[j] = at < total ? added[at / (rows * outputs) * outputs + at % outputs] : T(0);
        }
        dl_write(y, i, total, p);
    });
}
DL_BY_PRECISION(fill_biases)

static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    if (call->plan) {
        dl_lt_run((const struct dl_lt *)call->plan, call->tensor[1], call->tensor[0], call->tensor[3]);
        return;
    }
    if (d[bias]) fill_biases(call);
    const struct dl_product p = {.precision = call->precision,
                                 .batch = d[batch],
                                 .m = d[m],
                                 .n = d[n],
                                 .k = d[k],
                                 .a = {call->tensor[0], d[k], d[m] * d[k], false},
                                 .b = {call->tensor[1], d[k], d[n] * d[k], true},
                                 .c = {call->tensor[3], d[n], d[m] * d[n], false},
                                 .scale = 1,
                                 .keep = d[bias] ? 1.0f : 0.0f};
    dl_cuda_product(&p);
}

/* Hopper multiplies fp8 where rows are multiples of 16 bytes; the bias would have to be in another precision. */
static bool can_forward(const int64_t *d, enum dl_float f)
{
    const int64_t step = 16;
    return f != DL_FLOAT_FP8 || (!d[bias] && d[m] % step == 0 && d[n] % step == 0 && d[k] % step == 0);
}

static void input_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const struct dl_product p = {.precision = call->precision,
                                 .batch = d[batch],
                                 .m = d[m],
                                 .n = d[n],
                                 .k = d[k],
                                 .a = {call->tensor[0], d[k], d[m] * d[k], false},
                                 .b = {call->tensor[1], d[n], d[k] * d[n], false},
                                 .c = {call->tensor[2], d[n], d[m] * d[n], false},
                                 .scale = 1};
    dl_cuda_product(&p);
}

/* dW = dY^T X: what is stored is the transpose of the m x n of the problem. */
static void weight_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const struct dl_product p = {.precision = call->precision,
                                 .batch = d[batch],
                                 .m = d[n],
                                 .n = d[m],
                                 .k = d[k],
                                 .a = {call->tensor[1], d[n], d[k] * d[n], true},
                                 .b = {call->tensor[0], d[m], d[k] * d[m], false},
                                 .c = {call->tensor[2], d[m], d[n] * d[m], false},
                                 .scale = 1};
    dl_cuda_product(&p);
}

static void transposed(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const struct dl_product p = {.precision = call->precision,
                                 .batch = d[batch],
                                 .m = d[m],
                                 .n = d[n],
                                 .k = d[k],
                                 .a = {call->tensor[0], d[m], d[k] * d[m], true},
                                 .b = {call->tensor[1], d[k], d[n] * d[k], true},
                                 .c = {call->tensor[2], d[n], d[m] * d[n], false},
                                 .scale = 1};
    dl_cuda_product(&p);
}

const struct dl_routine dl_cuda_gemms[] = {
    {.problem = "gemm",
     .pass = "forward",
     .way = "cublas",
     .doc = "cuBLAS; with a bias, and in fp8, cuBLASLt",
     .precisions = DL_PRODUCT | 1u << DL_FLOAT_FP8,
     .run = forward,
     .open = forward_open,
     .close = forward_close,
     .can = can_forward},
    {DL_CUBLAS("gemm", "input_gradient", input_gradient)},
    {DL_CUBLAS("gemm", "weight_gradient", weight_gradient)},
    {DL_CUBLAS("gemm_transposed", "forward", transposed)},
    {},
};
