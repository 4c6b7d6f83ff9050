/* elementwise.c - activations, dropout, residuals, copies. */
#include "kernels/cpu/cpu.h"

enum { count };

static void gelu(const struct dl_call *call)
{
    const float *const x = call->tensor[0];
    float *const y = call->tensor[1];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) y[i] = dl_cpu_gelu(x[i]);
}

static void gelu_input(const struct dl_call *call)
{
    const float *const x = call->tensor[0], *const dy = call->tensor[1];
    float *const dx = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) dx[i] = dy[i] * dl_cpu_gelu_slope(x[i]);
}

static void relu(const struct dl_call *call)
{
    const float *const x = call->tensor[0];
    float *const y = call->tensor[1];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

static void relu_input(const struct dl_call *call)
{
    const float *const x = call->tensor[0], *const dy = call->tensor[1];
    float *const dx = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        const float passed = dy[i]; /* read in any case, so that there is no branch */
        dx[i] = x[i] > 0 ? passed : 0;
    }
}

static void swiglu(const struct dl_call *call)
{
    const float *const x = call->tensor[0], *const gate = call->tensor[1];
    float *const y = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) y[i] = x[i] * gate[i] * dl_sigmoid(gate[i]);
}

static void swiglu_input(const struct dl_call *call)
{
    const float *const x = call->tensor[0], *const gate = call->tensor[1], *const dy = call->tensor[2];
    float *const dx = call->tensor[3], *const dgate = call->tensor[4];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        const float s = dl_sigmoid(gate[i]);
        dx[i] = dy[i] * gate[i] * s;
        dgate[i] = dy[i] * x[i] * s * (1 + gate[i] * (1 - s));
    }
}

static void dropout(const struct dl_call *call)
{
    const float *const x = call->tensor[0];
    float *const y = call->tensor[1];
    uint8_t *const mask = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        const uint8_t kept = dl_kept((uint64_t)i);
        mask[i] = kept;
        y[i] = x[i] * ((float)kept * DL_DROPOUT_SCALE);
    }
}

static void dropout_input(const struct dl_call *call)
{
    const uint8_t *const mask = call->tensor[0];
    const float *const dy = call->tensor[1];
    float *const dx = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) dx[i] = dy[i] * ((float)mask[i] * DL_DROPOUT_SCALE);
}

static void residual(const struct dl_call *call)
{
    const float *const x = call->tensor[0], *const branch = call->tensor[1];
    float *const y = call->tensor[2];
    uint8_t *const mask = call->tensor[3];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) {
        const uint8_t kept = dl_kept((uint64_t)i);
        mask[i] = kept;
        y[i] = x[i] + branch[i] * ((float)kept * DL_DROPOUT_SCALE);
    }
}

static void residual_input(const struct dl_call *call)
{
    const float *const a = call->tensor[0], *const b = call->tensor[1];
    float *const sum = call->tensor[2];
    DL_VECTOR
    for (int64_t i = 0; i < call->dim[count]; i++) sum[i] = a[i] + b[i];
}

static void copy(const struct dl_call *call)
{
    memcpy(call->tensor[1], call->tensor[0], (size_t)call->dim[count] * sizeof(float));
}

const struct dl_routine dl_cpu_elements[] = {
    {DL_CPU("gelu", "forward", gelu)},
    {DL_CPU("gelu", "input_gradient", gelu_input)},
    {DL_CPU("relu", "forward", relu)},
    {DL_CPU("relu", "input_gradient", relu_input)},
    {DL_CPU("swiglu", "forward", swiglu)},
    {DL_CPU("swiglu", "input_gradient", swiglu_input)},
    {DL_CPU("dropout", "forward", dropout)},
    {DL_CPU("dropout", "input_gradient", dropout_input)},
    {DL_CPU("residual", "forward", residual)},
    {DL_CPU("residual", "input_gradient", residual_input)},
    {DL_CPU("copy", "forward", copy)},
    {DL_CPU("copy_to_device", "forward", copy), .is_own = true}, /* the host is the device */
    {DL_CPU("copy_to_host", "forward", copy), .is_own = true},
    {0},
};
