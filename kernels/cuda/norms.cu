/* norms.cu - layer and RMS norm, and the gradients of their inputs: a team to a row, which is read once. Formulas are
 * in problems/norms.c. */
#include "kernels/cuda/rows.h"

enum { rows, width };

extern __shared__ uint4 shared[];

/* The root of what a row's squares come to; see scale there. */
template <class T>
__device__ float scale_of(const dl_rows &r, const dl_team_row<T> &row, const dl_held<T> &x, float mean)
{
    float squares = 0;
    for (int p = row.rank; p < row.packs; p += row.team) {
        const auto v = x.get(p);
        for (int j = 0; j < dl_length<T>; j++) {
            const float centred = row.has(p, j) ? dl_float_of(v.v[j]) - mean : 0;
            squares += centred * centred;
        }
    }
    return rsqrtf(row.sum(squares) / (float)r.width + DL_NORM_EPSILON);
}

/* What forward leaves for backward; RMS norm has neither means nor biases. */
struct statistics {
    float *mean, *scale;
};

template <class T, bool HAS_MEAN>
__global__ void __launch_bounds__(1024)
    norm_rows(dl_rows r, const T *data, const T *gains, const T *biases, T *y, statistics s)
{
    const dl_team_row<T> row(r, shared);
    if (row.index >= r.n) return;
    const dl_held<T> x(r, row, data, 0);
    float sum = 0;
    dl_fill(row, x, [&](int p, const auto &v) {
        for (int j = 0; j < dl_length<T>; j++) sum += row.has(p, j) ? dl_float_of(v.v[j]) : 0;
    });
    const float mean = HAS_MEAN ? row.sum(sum) / (float)r.width : 0, scale = scale_of(r, row, x, mean);
    for (int p = row.rank; p < row.packs; p += row.team) {
        auto v = x.get(p);
        const auto gain = dl_columns(row, gains, p);
        dl_pack<T, dl_length<T>> bias = {};
        if (HAS_MEAN) bias = dl_columns(row, biases, p);
        for (int j = 0; j < dl_length<T>; j++)
            v.v[j] = dl_as<T>(dl_float_of(gain.v[j]) * (dl_float_of(v.v[j]) - mean) * scale + dl_float_of(bias.v[j]));
        row.write(y, p, v);
    }
    if (row.rank) return;
    if (HAS_MEAN) s.mean[row.index] = mean;
    s.scale[row.index] = scale;
}

/* x, gain, bias -> y, mean, scale */
template <class T> static void layernorm_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 1);
    T *const *const t = (T *const *)call->tensor;
    dl_rows_launch(norm_rows<T, true>, r, (const T *)t[0], (const T *)t[1], (const T *)t[2], t[3],
                   statistics{(float *)t[4], (float *)t[5]});
}
DL_BY_PRECISION(layernorm)

/* x, gain -> y, scale */
template <class T> static void rmsnorm_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 1);
    T *const *const t = (T *const *)call->tensor;
    dl_rows_launch(norm_rows<T, false>, r, (const T *)t[0], (const T *)t[1], (const T *)NULL, t[2],
                   statistics{NULL, (float *)t[3]});
}
DL_BY_PRECISION(rmsnorm)

/* The sums of g = gain dy and of g z in a row. */
struct sums {
    float g, z;
};

template <class T, bool HAS_MEAN>
__global__ void __launch_bounds__(1024)
    norm_input_rows(dl_rows r, const T *data, const T *gains, const T *slopes, T *dx, statistics s)
{
    const dl_team_row<T> row(r, shared);
    if (row.index >= r.n) return;
    const dl_held<T> x(r, row, data, 0), dy(r, row, slopes, 1);
    const float mean = HAS_MEAN ? s.mean[row.index] : 0, scale = s.scale[row.index];
    sums sum = {0, 0};
    dl_fill_two(row, x, dy, [&](int p, const auto &v, const auto &slope) {
        const auto gain = dl_columns(row, gains, p);
        for (int j = 0; j < dl_length<T>; j++) {
            const float g = row.has(p, j) ? dl_float_of(gain.v[j]) * dl_float_of(slope.v[j]) : 0;
            sum.g += g;
            sum.z += row.has(p, j) ? g * (dl_float_of(v.v[j]) - mean) * scale : 0;
        }
    });
    const float of_mean = HAS_MEAN ? row.sum(sum.g) / (float)r.width : 0, of_z = row.sum(sum.z) / (float)r.width;
    for (int p = row.rank; p < row.packs; p += row.team) {
        auto v = x.get(p);
        const auto slope = dy.get(p), gain = dl_columns(row, gains, p);
        for (int j = 0; j < dl_length<T>; j++) {
            const float g = dl_float_of(gain.v[j]) * dl_float_of(slope.v[j]), z = (dl_float_of(v.v[j]) - mean) * scale;
            v.v[j] = dl_as<T>(scale * (g - of_mean - z * of_z));
        }
        row.write(dx, p, v);
    }
}

/* x, gain, mean, scale, dy -> dx */
template <class T> static void layernorm_input_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 2);
    T *const *const t = (T *const *)call->tensor;
    dl_rows_launch(norm_input_rows<T, true>, r, (const T *)t[0], (const T *)t[1], (const T *)t[4], t[5],
                   statistics{(float *)t[2], (float *)t[3]});
}
DL_BY_PRECISION(layernorm_input)

/* x, gain, scale, dy -> dx */
template <class T> static void rmsnorm_input_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 2);
    T *const *const t = (T *const *)call->tensor;
    dl_rows_launch(norm_input_rows<T, false>, r, (const T *)t[0], (const T *)t[1], (const T *)t[3], t[4],
                   statistics{NULL, (float *)t[2]});
}
DL_BY_PRECISION(rmsnorm_input)

const struct dl_routine dl_cuda_norms[] = {
    {DL_KERNEL("layernorm", "forward", layernorm)},
    {DL_KERNEL("layernorm", "input_gradient", layernorm_input)},
    {DL_KERNEL("rmsnorm", "forward", rmsnorm)},
    {DL_KERNEL("rmsnorm", "input_gradient", rmsnorm_input)},
    {},
};
