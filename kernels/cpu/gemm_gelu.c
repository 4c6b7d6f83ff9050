/* gemm_gelu.c - linear layers around GELU: a product, then what is done to it. See problems/gemm_gelu.c. */
#include "kernels/cpu/cpu.h"

enum { m, n, k };

/* x, w, bias -> y, z */
static void forward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const bias = call->tensor[2];
    float *const y = call->tensor[3], *const z = call->tensor[4];
    for (int64_t i = 0; i < d[m]; i++) memcpy(z + i * d[n], bias, (size_t)d[n] * sizeof *z);
    dl_cpu_gemm(&(struct dl_gemm){
        d[m], d[n], d[k], {call->tensor[0], d[k], false}, {call->tensor[1], d[k], true}, z, d[n], 1, 1});
    DL_VECTOR
    for (int64_t i = 0; i < d[m] * d[n]; i++) y[i] = dl_cpu_gelu(z[i]);
}

/* dnext, w, z -> dz, dbias */
static void input_gradient(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const float *const z = call->tensor[2];
    float *const dz = call->tensor[3], *const dbias = call->tensor[4];
    dl_cpu_gemm(&(struct dl_gemm){
        d[m], d[n], d[k], {call->tensor[0], d[k], false}, {call->tensor[1], d[n], false}, dz, d[n], 1, 0});
    memset(dbias, 0, (size_t)d[n] * sizeof *dbias);
    for (int64_t row = 0; row < d[m]; row++) {
        DL_VECTOR
        for (int64_t j = 0; j < d[n]; j++) {
            const int64_t i = row * d[n] + j;
            dz[i] *= dl_cpu_gelu_slope(z[i]);
            dbias[j] += dz[i];
        }
    }
}

const struct dl_routine dl_cpu_gemm_gelus[] = {
    {DL_CPU_BLAS("gemm_gelu", "forward", forward)},
    {DL_CPU_BLAS("gemm_gelu", "input_gradient", input_gradient)},
    {0},
};
