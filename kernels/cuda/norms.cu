/* norms.cu - layer and RMS norm, and the gradients of their inputs: a team to a row, which is read once. Formulas are
 * in problems/norms.c. */
#include "kernels/cuda/rows.h"

enum { rows, width };

/* What forward leaves for backward; RMS norm has neither means nor biases. */
struct statistics {
    float *mean, *scale;
};

/* The mean of a row, and the root of what its squares come to; see scale there. */
template <class T, int P> __device__ float mean_of(dl_team_row<T, P> &row, const dl_held<T, P> &x)
{
    float sum = 0;
    row.each([&](int p, int u) {
        const auto v = x.get(p, u);
        for (int j = 0; j < dl_length<T>; j++) sum += row.has(p, j) ? v.v[j] : 0;
    });
    return row.sum(sum) / (float)row.width;
}

template <class T, int P> __device__ float scale_of(dl_team_row<T, P> &row, const dl_held<T, P> &x, float mean)
{
    float squares = 0;
    row.each([&](int p, int u) {
        const auto v = x.get(p, u);
        for (int j = 0; j < dl_length<T>; j++) squares += row.has(p, j) ? (v.v[j] - mean) * (v.v[j] - mean) : 0;
    });
    return rsqrtf(row.sum(squares) / (float)row.width + DL_NORM_EPSILON);
}

template <class T, int P, bool HAS_MEAN>
__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    norm_rows(dl_rows r, const T *data, const T *gains, const T *biases, T *y, statistics s)
{
    dl_team_row<T, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<T, P> x(r, row, data);
    const float mean = HAS_MEAN ? mean_of(row, x) : 0, scale = scale_of(row, x, mean);
    row.each([&](int p, int u) {
        auto v = x.get(p, u);
        const auto gain = row.of_columns(gains, p);
        dl_pack<float, dl_length<T>> bias = {};
        if (HAS_MEAN) bias = row.of_columns(biases, p);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = gain.v[j] * (v.v[j] - mean) * scale + bias.v[j];
        row.write(y, p, v);
    });
    if (!row.is_first()) return;
    if (HAS_MEAN) s.mean[row.index] = mean;
    s.scale[row.index] = scale;
}

template <class T, bool HAS_MEAN>
static void forward(const struct dl_call *call, const T *gains, const T *biases, T *y, statistics s)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], dl_few_packs);
    auto *const kernel = r.held ? norm_rows<T, dl_few_packs, HAS_MEAN> : norm_rows<T, 0, HAS_MEAN>;
    dl_rows_launch(kernel, r, (const T *)call->tensor[0], gains, biases, y, s);
}

/* x, gain, bias -> y, mean, scale */
template <class T> static void layernorm_as(const struct dl_call *call)
{
    T *const *const t = (T *const *)call->tensor;
    forward<T, true>(call, t[1], t[2], t[3], {(float *)t[4], (float *)t[5]});
}
DL_BY_PRECISION(layernorm)

/* x, gain -> y, scale */
template <class T> static void rmsnorm_as(const struct dl_call *call)
{
    T *const *const t = (T *const *)call->tensor;
    forward<T, false>(call, t[1], NULL, t[2], {NULL, (float *)t[3]});
}
DL_BY_PRECISION(rmsnorm)

/* The sums of g = gain dy and of g z in a row. */
struct sums {
    float g, z;
};

template <class T, int P, bool HAS_MEAN>
__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    norm_input_rows(dl_rows r, const T *data, const T *gains, const T *slopes, T *dx, statistics s)
{
    dl_team_row<T, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<T, P> x(r, row, data), dy(r, row, slopes);
    const float mean = HAS_MEAN ? s.mean[row.index] : 0, scale = s.scale[row.index];
    sums sum = {0, 0};
    row.each([&](int p, int u) {
        const auto v = x.get(p, u), slope = dy.get(p, u), gain = row.of_columns(gains, p);
        for (int j = 0; j < dl_length<T>; j++) {
            const float g = row.has(p, j) ? gain.v[j] * slope.v[j] : 0;
            sum.g += g;
            sum.z += row.has(p, j) ? g * (v.v[j] - mean) : 0;
        }
    });
    const float of_mean = HAS_MEAN ? row.sum(sum.g) / (float)row.width : 0,
                of_z = row.sum(sum.z) * scale * scale / (float)row.width;
    row.each([&](int p, int u) {
        auto v = x.get(p, u);
        const auto slope = dy.get(p, u), gain = row.of_columns(gains, p);
        for (int j = 0; j < dl_length<T>; j++)
            v.v[j] = scale * (gain.v[j] * slope.v[j] - of_mean - (v.v[j] - mean) * of_z);
        row.write(dx, p, v);
    });
}

template <class T, bool HAS_MEAN>
static void input_gradient(const struct dl_call *call, const T *gains, const T *slopes, T *dx, statistics s)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], dl_few_packs);
    auto *const kernel = r.held ? norm_input_rows<T, dl_few_packs, HAS_MEAN> : norm_input_rows<T, 0, HAS_MEAN>;
    dl_rows_launch(kernel, r, (const T *)call->tensor[0], gains, slopes, dx, s);
}

/* x, gain, mean, scale, dy -> dx */
template <class T> static void layernorm_input_as(const struct dl_call *call)
{
    T *const *const t = (T *const *)call->tensor;
    input_gradient<T, true>(call, t[1], t[4], t[5], {(float *)t[2], (float *)t[3]});
}
DL_BY_PRECISION(layernorm_input)

/* x, gain, scale, dy -> dx */
template <class T> static void rmsnorm_input_as(const struct dl_call *call)
{
    T *const *const t = (T *const *)call->tensor;
    input_gradient<T, false>(call, t[1], t[3], t[4], {NULL, (float *)t[2]});
}
DL_BY_PRECISION(rmsnorm_input)

const struct dl_routine dl_cuda_norms[] = {
    {DL_KERNEL("layernorm", "forward", layernorm)},
    {DL_KERNEL("layernorm", "input_gradient", layernorm_input)},
    {DL_KERNEL("rmsnorm", "forward", rmsnorm)},
    {DL_KERNEL("rmsnorm", "input_gradient", rmsnorm_input)},
    {},
};
