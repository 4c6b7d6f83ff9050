/* gemm_gelu.cu - products with GELU, or its slope, in the epilogue of cuBLASLt: what fused layers of Transformer Engine
 * and Apex call. Layouts are those of problems/gemm_gelu.c. */
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/lt.h"

enum { m, n, k };

/* What the epilogue reads or writes besides: a bias or its gradient, n numbers, and z, m x n. */
struct beside {
    cublasLtEpilogue_t epilogue;
    void *bias, *z;
};

static struct dl_lt *plan_of(const int64_t *d, enum dl_float f, bool is_backward, const beside &e)
{
    const cudaDataType_t type = dl_cuda_type(f);
    struct dl_lt *const p = new dl_lt();
    p->product = dl_lt_describe(f, !is_backward);
    dl_lt_set(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &e.epilogue, sizeof e.epilogue);
    dl_lt_set(p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &e.bias, sizeof e.bias);
    dl_lt_set(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &e.z, sizeof e.z);
    dl_lt_set(p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &d[n], sizeof d[n]);
    p->a = is_backward ? dl_lt_layout(type, d[n], d[k], 1) : dl_lt_layout(type, d[k], d[n], 1);
    p->b = dl_lt_layout(type, d[k], d[m], 1);
    p->c = dl_lt_layout(type, d[n], d[m], 1);
    p->d = dl_lt_layout(type, d[n], d[m], 1);
    if (dl_lt_choose(p)) return p;
    dl_lt_free(p);
    return NULL;
}

static beside of_forward(void *bias, void *z) { return {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, bias, z}; }
static beside of_backward(void *dbias, void *z) { return {CUBLASLT_EPILOGUE_DGELU_BGRAD, dbias, z}; }

/* Rows of z must be multiples of 16 bytes; whether the library then has it, it must be asked. */
static bool has_plan(const int64_t *d, enum dl_float f, bool is_backward)
{
    const int64_t step = dl_blas_alignment_bytes / (int64_t)dl_float_bytes(f);
    if (d[m] % step || d[n] % step || d[k] % step) return false;
    void *const anywhere = dl_cuda.blas_workspace; /* it is not looked at */
    struct dl_lt *const p =
        plan_of(d, f, is_backward, is_backward ? of_backward(anywhere, anywhere) : of_forward(anywhere, anywhere));
    const bool is_there = p != NULL;
    dl_lt_free(p);
    return is_there;
}
static bool can_forward(const int64_t *d, enum dl_float f) { return has_plan(d, f, false); }
static bool can_backward(const int64_t *d, enum dl_float f) { return has_plan(d, f, true); }

/* x, w, bias -> y, z */
static void *forward_open(const struct dl_call *call)
{
    return plan_of(call->dim, call->precision, false, of_forward(call->tensor[2], call->tensor[4]));
}

/* dnext, w, z -> dz, dbias */
static void *backward_open(const struct dl_call *call)
{
    return plan_of(call->dim, call->precision, true, of_backward(call->tensor[4], call->tensor[2]));
}

static void run(const struct dl_call *call)
{
    dl_lt_run((const struct dl_lt *)call->plan, call->tensor[1], call->tensor[0], call->tensor[3]);
}

static void close(void *plan) { dl_lt_free((struct dl_lt *)plan); }

#define FUSED(the_pass, the_open, the_can)                                                                             \
    .problem = "gemm_gelu", .pass = the_pass, .way = "cublaslt", .doc = "cuBLASLt, with GELU in the epilogue",         \
    .precisions = 1u << DL_FLOAT_BF16 | 1u << DL_FLOAT_FP16, .run = run, .open = the_open, .close = close,             \
    .can = the_can
const struct dl_routine dl_cuda_gemm_gelus[] = {
    {FUSED("forward", forward_open, can_forward)},
    {FUSED("input_gradient", backward_open, can_backward)},
    {},
};
