/* cpu.h - what the routines of the CPU share: fp32 on one core, tensors in plain memory. */
#ifndef DL_KERNELS_CPU_CPU_H
#define DL_KERNELS_CPU_CPU_H

#include <cblas.h>
#include <string.h>

#include "kernels/kernel.h"

/* A routine in fp32; more fields may follow in a table's entry. */
#define DL_CPU(the_problem, the_pass, the_run)                                                                         \
    .problem = the_problem, .pass = the_pass, .way = "plain", .doc = "loops in C", .precisions = 1u << DL_FLOAT_FP32,  \
    .run = the_run
#define DL_CPU_BLAS(the_problem, the_pass, the_run)                                                                    \
    .problem = the_problem, .pass = the_pass, .way = "openblas", .doc = "OpenBLAS", .precisions = 1u << DL_FLOAT_FP32, \
    .run = the_run

/* Sums over many numbers may be made in any order. */
#define DL_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define DL_SUM(...) DL_PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#define DL_MAX(variable) DL_PRAGMA(omp simd reduction(max : variable))
#define DL_VECTOR DL_PRAGMA(omp simd)

/* A row-major product, C = scale op(A) op(B) + keep C; rows of a matrix are `step` apart. */
struct dl_operand {
    const float *data;
    int64_t step;
    bool is_transposed;
};
struct dl_gemm {
    int64_t m, n, k;
    struct dl_operand a, b;
    float *c;
    int64_t c_step;
    float scale, keep;
};
static inline void dl_cpu_gemm(const struct dl_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->a.is_transposed ? CblasTrans : CblasNoTrans,
                g->b.is_transposed ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, g->scale, g->a.data,
                (int)g->a.step, g->b.data, (int)g->b.step, g->keep, g->c, (int)g->c_step);
}

static inline float dl_as_float(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* e^x in fp32 that compilers turn into vector code: 2^n times a polynomial of what is left, |r| <= ln 2 / 2, whose
 * coefficients are those of the series; the last one left out is below 2^-24. Small x give 0, large ones are cut. */
static inline float dl_exp(float x)
{
    const float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float magic = 12582912.0f; /* 1.5 x 2^23: adding it rounds to a whole number */
    const float least = -87.0f, most = 88.0f;
    const float cut = x < least ? least : x > most ? most : x;
    const float n = (cut * log2_e + magic) - magic;
    const float r = (cut - n * ln2_high) - n * ln2_low;
    const float p = 1 + r * (1 + r * (1 / 2.0f + r * (1 / 6.0f + r * (1 / 24.0f + r * (1 / 120.0f + r / 720.0f)))));
    return x < least ? 0 : p * dl_as_float(((int32_t)n + 127) << 23);
}

static inline float dl_tanh(float x)
{
    const float e = dl_exp(2 * x);
    return 1 - 2 / (e + 1);
}

static inline float dl_sigmoid(float x) { return 1 / (1 + dl_exp(-x)); }

/* GELU and its slope; the formulas are in problems/elementwise.c. */
static inline float dl_cpu_gelu(float x) { return 0.5f * x * (1 + dl_tanh(DL_GELU_B * x * (1 + DL_GELU_A * x * x))); }

static inline float dl_cpu_gelu_slope(float x)
{
    const float square = x * x, h = dl_tanh(DL_GELU_B * x * (1 + DL_GELU_A * square));
    return 0.5f * (1 + h + x * (1 - h * h) * DL_GELU_B * (1 + 3 * DL_GELU_A * square));
}

/* y = e^(x - shift); returns the sum. */
float dl_cpu_exponentials(const float *x, float *y, int64_t n, float shift);
float dl_cpu_largest(const float *x, int64_t n);

/* Tables of the files beside this one; each ends with a routine without a name. */
extern const struct dl_routine dl_cpu_gemms[], dl_cpu_gemm_gelus[], dl_cpu_grouped_gemms[], dl_cpu_attentions[],
    dl_cpu_convolutions[], dl_cpu_norms[], dl_cpu_batchnorms[], dl_cpu_rows[], dl_cpu_elements[], dl_cpu_pools[],
    dl_cpu_optimizers[], dl_cpu_compressions[];

#endif
