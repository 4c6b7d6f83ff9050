/* gemm.cu - products of matrices by cuBLAS, as PyTorch calls it: a bias in the epilogue of cuBLASLt, batches with
 * strides, experts one after the other. Layouts are those of problems/gemm.c and problems/grouped_gemm.c. */
#include "kernels/cuda/gemm.h"

#include <cublasLt.h>

#include "kernels/cuda/packs.h"

enum { batch, m, n, k, bias };

cudaDataType_t dl_cuda_type(enum dl_float f)
{
    return f == DL_FLOAT_BF16   ? CUDA_R_16BF
           : f == DL_FLOAT_FP16 ? CUDA_R_16F
           : f == DL_FLOAT_FP8  ? CUDA_R_8F_E4M3
                                : CUDA_R_32F;
}

static cublasComputeType_t compute_type(enum dl_float f)
{
    return f == DL_FLOAT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* What is row-major here is the transpose in cuBLAS, whose matrices are column-major: C^T = op(B)^T op(A)^T. */
void dl_cuda_product(const struct dl_product *p)
{
    const cublasOperation_t left = p->b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = p->a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cudaDataType_t type = dl_cuda_type(p->precision), type_c = p->is_c_fp32 ? CUDA_R_32F : type;
    const cublasComputeType_t compute = compute_type(p->precision);
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

/* What cuBLASLt needs to know of Y = X W^T (+ bias), and the algorithm that it chose. */
struct plan {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, c, y;
    cublasLtMatmulHeuristicResult_t choice;
};

static cublasLtHandle_t lt(void) { return (cublasLtHandle_t)dl_cuda.blas; } /* cuBLAS allows this */

static cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t n_matrices)
{
    cublasLtMatrixLayout_t l;
    const int32_t count = (int32_t)n_matrices;
    const int64_t stride = rows * columns;
    DL_BLAS(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)columns, rows));
    DL_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    DL_BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    return l;
}

static void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    DL_BLAS(cublasLtMatmulDescSetAttribute(product, what, value, bytes));
}

/* fp8 adds up fast, as Transformer Engine's forward pass does. */
static cublasLtMatmulDesc_t describe(const struct dl_call *call)
{
    cublasLtMatmulDesc_t product;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const int8_t fast = call->precision == DL_FLOAT_FP8;
    DL_BLAS(cublasLtMatmulDescCreate(&product, compute_type(call->precision), CUDA_R_32F));
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    set(product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (!call->dim[bias]) return product;
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->tensor[2], sizeof call->tensor[2]);
    return product;
}

static void choose(struct plan *p)
{
    cublasLtMatmulPreference_t preference;
    const uint64_t most_bytes = dl_blas_workspace_bytes;
    int n_found = 0;
    DL_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    DL_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most_bytes,
                                                 sizeof most_bytes));
    DL_BLAS(
        cublasLtMatmulAlgoGetHeuristic(lt(), p->product, p->w, p->x, p->c, p->y, preference, 1, &p->choice, &n_found));
    DL_BLAS(cublasLtMatmulPreferenceDestroy(preference));
    if (!n_found) dl_cuda_stop("cuBLASLt knows no algorithm for this product", DL_HERE(choose));
}

static bool needs_lt(const int64_t *d, enum dl_float f) { return f == DL_FLOAT_FP8 || (d[bias] && d[batch] == 1); }

static void *forward_open(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const cudaDataType_t type = dl_cuda_type(call->precision);
    if (!needs_lt(d, call->precision)) return NULL;
    struct plan *const p = new plan();
    p->product = describe(call);
    p->w = layout(type, d[k], d[n], d[batch]);
    p->x = layout(type, d[k], d[m], d[batch]);
    p->c = layout(call->precision == DL_FLOAT_FP8 ? CUDA_R_16BF : type, d[n], d[m], d[batch]);
    p->y = layout(type, d[n], d[m], d[batch]);
    choose(p);
    return p;
}

static void forward_close(void *of)
{
    struct plan *const p = (struct plan *)of;
    if (!p) return;
    const cublasLtMatrixLayout_t layouts[] = {p->w, p->x, p->c, p->y};
    for (cublasLtMatrixLayout_t l : layouts) DL_BLAS(cublasLtMatrixLayoutDestroy(l));
    DL_BLAS(cublasLtMatmulDescDestroy(p->product));
    delete p;
}

static void run_plan(const struct plan *p, void *const *t)
{
    const float one = 1, zero = 0;
    DL_BLAS(cublasLtMatmul(lt(), p->product, &one, t[1], p->w, t[0], p->x, &zero, NULL, p->c, t[3], p->y,
                           &p->choice.algo, dl_cuda.blas_workspace, dl_blas_workspace_bytes, dl_cuda.stream));
}

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
        run_plan((const struct plan *)call->plan, call->tensor);
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

/* Grouped: experts with uneven numbers of tokens. */
enum { groups, tokens, outputs, inputs };

struct expert {
    int64_t from, tokens, weights; /* its first token, how many, where its weights begin */
};
static struct expert expert_at(const int64_t *d, int64_t g)
{
    const int64_t from = dl_group_begin(g, d[groups], d[tokens]), to = dl_group_begin(g + 1, d[groups], d[tokens]);
    return {from, to - from, g * d[outputs] * d[inputs]};
}

static void grouped_forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = e.tokens,
                                     .n = d[outputs],
                                     .k = d[inputs],
                                     .a = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                     .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, true},
                                     .c = {dl_at(call->tensor[2], e.from * d[outputs], f), d[outputs], 0, false},
                                     .scale = 1};
        if (e.tokens) dl_cuda_product(&p);
    }
}

static void grouped_input(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = e.tokens,
                                     .n = d[inputs],
                                     .k = d[outputs],
                                     .a = {dl_at(call->tensor[0], e.from * d[outputs], f), d[outputs], 0, false},
                                     .b = {dl_at(call->tensor[1], e.weights, f), d[inputs], 0, false},
                                     .c = {dl_at(call->tensor[2], e.from * d[inputs], f), d[inputs], 0, false},
                                     .scale = 1};
        if (e.tokens) dl_cuda_product(&p);
    }
}

/* An expert without tokens has a gradient all the same: zero. */
static void grouped_weight(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const enum dl_float f = call->precision;
    for (int64_t g = 0; g < d[groups]; g++) {
        const struct expert e = expert_at(d, g);
        void *const out = dl_at(call->tensor[2], e.weights, f);
        const struct dl_product p = {.precision = f,
                                     .batch = 1,
                                     .m = d[outputs],
                                     .n = d[inputs],
                                     .k = e.tokens,
                                     .a = {dl_at(call->tensor[1], e.from * d[outputs], f), d[outputs], 0, true},
                                     .b = {dl_at(call->tensor[0], e.from * d[inputs], f), d[inputs], 0, false},
                                     .c = {out, d[inputs], 0, false},
                                     .scale = 1};
        if (e.tokens)
            dl_cuda_product(&p);
        else
            DL_CUDA(cudaMemsetAsync(out, 0, (size_t)(d[outputs] * d[inputs]) * dl_float_bytes(f), dl_cuda.stream));
    }
}

#define PRODUCT(the_problem, the_pass, the_run)                                                                        \
    .problem = the_problem, .pass = the_pass, .way = "cublas", .doc = "cuBLAS", .precisions = DL_PRODUCT, .run = the_run
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
    {PRODUCT("gemm", "input_gradient", input_gradient)},
    {PRODUCT("gemm", "weight_gradient", weight_gradient)},
    {PRODUCT("gemm_transposed", "forward", transposed)},
    {PRODUCT("grouped_gemm", "forward", grouped_forward)},
    {PRODUCT("grouped_gemm", "input_gradient", grouped_input)},
    {PRODUCT("grouped_gemm", "weight_gradient", grouped_weight)},
    {},
};
