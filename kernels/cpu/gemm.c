/* gemm.c - products of matrices, one after the other; their layouts are those of problems/gemm.c. */
#include "kernels/cpu/cpu.h"

enum { batch, m, n, k, bias };

static void fill_rows(float *y, const float *row, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++) memcpy(y + i * width, row, (size_t)width * sizeof *y);
}

static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const w = call->tensor[1], *const added = call->tensor[2];
    float *const y = call->tensor[3];
    for (int64_t i = 0; i < d[batch]; i++) {
        float *const out = y + i * d[m] * d[n];
        if (d[bias]) fill_rows(out, added + i * d[n], d[m], d[n]);
        dl_cpu_gemm(&(struct dl_gemm){d[m],
                                      d[n],
                                      d[k],
                                      {x + i * d[m] * d[k], d[k], false},
                                      {w + i * d[n] * d[k], d[k], true},
                                      out,
                                      d[n],
                                      1,
                                      d[bias] ? 1 : 0});
    }
}

static void input_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const dy = call->tensor[0], *const w = call->tensor[1];
    float *const dx = call->tensor[2];
    for (int64_t i = 0; i < d[batch]; i++)
        dl_cpu_gemm(&(struct dl_gemm){d[m],
                                      d[n],
                                      d[k],
                                      {dy + i * d[m] * d[k], d[k], false},
                                      {w + i * d[k] * d[n], d[n], false},
                                      dx + i * d[m] * d[n],
                                      d[n],
                                      1,
                                      0});
}

/* dW = dY^T X: what is stored is the transpose of the m x n of the problem. */
static void weight_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const x = call->tensor[0], *const dy = call->tensor[1];
    float *const dw = call->tensor[2];
    for (int64_t i = 0; i < d[batch]; i++)
        dl_cpu_gemm(&(struct dl_gemm){d[n],
                                      d[m],
                                      d[k],
                                      {dy + i * d[k] * d[n], d[n], true},
                                      {x + i * d[k] * d[m], d[m], false},
                                      dw + i * d[n] * d[m],
                                      d[m],
                                      1,
                                      0});
}

static void transposed(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const a = call->tensor[0], *const b = call->tensor[1];
    float *const c = call->tensor[2];
    for (int64_t i = 0; i < d[batch]; i++)
        dl_cpu_gemm(&(struct dl_gemm){d[m],
                                      d[n],
                                      d[k],
                                      {a + i * d[k] * d[m], d[m], true},
                                      {b + i * d[n] * d[k], d[k], true},
                                      c + i * d[m] * d[n],
                                      d[n],
                                      1,
                                      0});
}

const struct dl_routine dl_cpu_gemms[] = {
    {DL_CPU_BLAS("gemm", "forward", forward)},
    {DL_CPU_BLAS("gemm", "input_gradient", input_gradient)},
    {DL_CPU_BLAS("gemm", "weight_gradient", weight_gradient)},
    {DL_CPU_BLAS("gemm_transposed", "forward", transposed)},
    {0},
};
