/* elements.cu - activations, dropout, residuals and copies: a pack to a thread. */
#include "kernels/cuda/packs.h"

enum { count };

/* y = f(x), and y = f(x, z). */
template <class T, class F> static void map_one(const struct dl_call *call, F f)
{
    const int64_t n = call->dim[count];
    const T *const x = (const T *)call->tensor[0];
    T *const y = (T *)call->tensor[1];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        auto p = dl_read<dl_length<T>>(x, i, n);
        for (T &v : p.v) v = dl_as<T>(f(dl_float_of(v)));
        dl_write(y, i, n, p);
    });
}

template <class T, class F> static void map_two(const struct dl_call *call, F f)
{
    const int64_t n = call->dim[count];
    const T *const x = (const T *)call->tensor[0], *const z = (const T *)call->tensor[1];
    T *const y = (T *)call->tensor[2];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        auto p = dl_read<dl_length<T>>(x, i, n);
        const auto q = dl_read<dl_length<T>>(z, i, n);
        for (int j = 0; j < dl_length<T>; j++) p.v[j] = dl_as<T>(f(dl_float_of(p.v[j]), dl_float_of(q.v[j])));
        dl_write(y, i, n, p);
    });
}

/* tanh's argument in GELU; see problems/elementwise.c for the formulas. */
__device__ __forceinline__ float gelu_argument(float x) { return DL_GELU_B * x * (1 + DL_GELU_A * x * x); }

struct gelu_of {
    __device__ float operator()(float x) const { return 0.5f * x * (1 + dl_tanh(gelu_argument(x))); }
};
struct gelu_slope {
    __device__ float operator()(float x, float dy) const
    {
        const float h = dl_tanh(gelu_argument(x));
        return dy * 0.5f * ((1 + h) + x * (1 - h * h) * DL_GELU_B * (1 + 3 * DL_GELU_A * x * x));
    }
};
struct relu_of {
    __device__ float operator()(float x) const { return fmaxf(x, 0); }
};
struct relu_slope {
    __device__ float operator()(float x, float dy) const { return x > 0 ? dy : 0; }
};
struct sum_of {
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct gated {
    __device__ float operator()(float x, float gate) const { return x * gate * dl_sigmoid(gate); }
};
struct same {
    __device__ float operator()(float x) const { return x; }
};

#define ONE(name, f)                                                                                                   \
    template <class T> static void name##_as(const struct dl_call *call) { map_one<T>(call, f()); }                    \
    DL_BY_PRECISION(name)
#define TWO(name, f)                                                                                                   \
    template <class T> static void name##_as(const struct dl_call *call) { map_two<T>(call, f()); }                    \
    DL_BY_PRECISION(name)
ONE(gelu, gelu_of)
TWO(gelu_input, gelu_slope)
ONE(relu, relu_of)
TWO(relu_input, relu_slope)
TWO(swiglu, gated)
TWO(residual_input, sum_of)
ONE(copy_packs, same)

/* x, gate, dy -> dx, dgate */
template <class T> static void swiglu_input_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const T *const x = (const T *)call->tensor[0], *const gate = (const T *)call->tensor[1];
    const T *const dy = (const T *)call->tensor[2];
    T *const dx = (T *)call->tensor[3], *const dgate = (T *)call->tensor[4];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        auto a = dl_read<dl_length<T>>(x, i, n), b = dl_read<dl_length<T>>(gate, i, n);
        const auto slope = dl_read<dl_length<T>>(dy, i, n);
        for (int j = 0; j < dl_length<T>; j++) {
            const float g = dl_float_of(b.v[j]), s = dl_sigmoid(g), d = dl_float_of(slope.v[j]);
            b.v[j] = dl_as<T>(d * dl_float_of(a.v[j]) * s * (1 + g * (1 - s)));
            a.v[j] = dl_as<T>(d * g * s);
        }
        dl_write(dx, i, n, a);
        dl_write(dgate, i, n, b);
    });
}
DL_BY_PRECISION(swiglu_input)

/* y = x + dropout(branch), and the mask; without x: y = dropout(branch). */
template <class T> static void drop(const T *x, const T *branch, T *y, uint8_t *mask, int64_t n)
{
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        auto p = dl_read<dl_length<T>>(branch, i, n);
        dl_pack<T, dl_length<T>> added = {};
        dl_pack<uint8_t, dl_length<T>> kept;
        if (x) added = dl_read<dl_length<T>>(x, i, n);
        for (int j = 0; j < dl_length<T>; j++) {
            kept.v[j] = dl_kept((uint64_t)(i * dl_length<T> + j));
            const float rest = kept.v[j] ? dl_float_of(p.v[j]) * DL_DROPOUT_SCALE : 0;
            p.v[j] = dl_as<T>(x ? dl_float_of(added.v[j]) + rest : rest);
        }
        dl_write(y, i, n, p);
        dl_write(mask, i, n, kept);
    });
}

template <class T> static void dropout_as(const struct dl_call *call)
{
    drop<T>(NULL, (const T *)call->tensor[0], (T *)call->tensor[1], (uint8_t *)call->tensor[2], call->dim[count]);
}
DL_BY_PRECISION(dropout)

template <class T> static void residual_as(const struct dl_call *call)
{
    drop<T>((const T *)call->tensor[0], (const T *)call->tensor[1], (T *)call->tensor[2], (uint8_t *)call->tensor[3],
            call->dim[count]);
}
DL_BY_PRECISION(residual)

/* mask, dy -> dx */
template <class T> static void dropout_input_as(const struct dl_call *call)
{
    const int64_t n = call->dim[count];
    const uint8_t *const mask = (const uint8_t *)call->tensor[0];
    const T *const dy = (const T *)call->tensor[1];
    T *const dx = (T *)call->tensor[2];
    dl_each<dl_length<T>>(n, [=] __device__(int64_t i) {
        const auto kept = dl_read<dl_length<T>>(mask, i, n);
        auto p = dl_read<dl_length<T>>(dy, i, n);
        for (int j = 0; j < dl_length<T>; j++)
            p.v[j] = dl_as<T>(kept.v[j] ? dl_float_of(p.v[j]) * DL_DROPOUT_SCALE : 0);
        dl_write(dx, i, n, p);
    });
}
DL_BY_PRECISION(dropout_input)

static void copy(const struct dl_call *call)
{
    const size_t bytes = (size_t)call->dim[count] * dl_float_bytes(call->precision);
    DL_CUDA(cudaMemcpyAsync(call->tensor[1], call->tensor[0], bytes, cudaMemcpyDefault, dl_cuda.stream));
}

#define MEMCPY(the_problem)                                                                                            \
    .problem = the_problem, .pass = "forward", .way = "memcpy", .doc = "cudaMemcpyAsync", .precisions = DL_PLAIN,      \
    .run = copy
const struct dl_routine dl_cuda_elements[] = {
    {DL_KERNEL("gelu", "forward", gelu)},
    {DL_KERNEL("gelu", "input_gradient", gelu_input)},
    {DL_KERNEL("relu", "forward", relu)},
    {DL_KERNEL("relu", "input_gradient", relu_input)},
    {DL_KERNEL("swiglu", "forward", swiglu)},
    {DL_KERNEL("swiglu", "input_gradient", swiglu_input)},
    {DL_KERNEL("dropout", "forward", dropout)},
    {DL_KERNEL("dropout", "input_gradient", dropout_input)},
    {DL_KERNEL("residual", "forward", residual)},
    {DL_KERNEL("residual", "input_gradient", residual_input)},
    {MEMCPY("copy")},
    {MEMCPY("copy_to_device")},
    {MEMCPY("copy_to_host")},
    {.problem = "copy",
     .pass = "forward",
     .way = "packs",
     .doc = "16 bytes to a thread",
     .precisions = DL_PLAIN,
     .is_own = true,
     .run = copy_packs},
    {},
};
