/* rows.cu - softmax and cross entropy: a team to a row, which is read once. */
#include "kernels/cuda/rows.h"

enum { rows, width };

/* The largest number so far, and the sum of exponentials over it. */
struct running {
    float most, sum;
    template <class T> __device__ void take(const dl_team_row<T> &row, int p, const dl_pack<T, dl_length<T>> &x)
    {
        float now = most, added = 0;
        for (int j = 0; j < dl_length<T>; j++)
            if (row.has(p, j)) now = fmaxf(now, dl_float_of(x.v[j]));
        for (int j = 0; j < dl_length<T>; j++) added += row.has(p, j) ? __expf(dl_float_of(x.v[j]) - now) : 0;
        sum = sum * __expf(most - now) + added;
        most = now;
    }
};

extern __shared__ uint4 shared[];

/* With targets: the loss of each row besides. */
template <class T>
__global__ void __launch_bounds__(1024) softmax_rows(dl_rows r, const T *data, T *y, const int32_t *target, float *loss)
{
    const float least = -1e30f; /* far below all, and no infinity: the difference of two of those is none */
    const dl_team_row<T> row(r, shared);
    if (row.index >= r.n) return;
    const dl_held<T> x(r, row, data, 0);
    running run = {least, 0};
    dl_fill(row, x, [&](int p, const auto &v) { run.take(row, p, v); });
    const float most = row.max(run.most), sum = row.sum(run.sum * __expf(run.most - most)), part = 1 / sum;
    for (int p = row.rank; p < row.packs; p += row.team) {
        auto v = x.get(p);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = dl_as<T>(__expf(dl_float_of(v.v[j]) - most) * part);
        row.write(y, p, v);
    }
    if (target && row.rank == 0)
        loss[row.index] = most + logf(sum) - dl_float_of(data[row.index * r.width + target[row.index]]);
}

template <class T> static void softmax_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 1);
    dl_rows_launch(softmax_rows<T>, r, (const T *)call->tensor[0], (T *)call->tensor[1], (const int32_t *)NULL,
                   (float *)NULL);
}
DL_BY_PRECISION(softmax)

/* Logits and probabilities are fp32 in every precision. */
static void entropy(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<float>(call->dim[rows], call->dim[width], 1);
    dl_rows_launch(softmax_rows<float>, r, (const float *)call->tensor[0], (float *)call->tensor[3],
                   (const int32_t *)call->tensor[1], (float *)call->tensor[2]);
}

/* y, dy -> dx */
template <class T>
__global__ void __launch_bounds__(1024) softmax_input_rows(dl_rows r, const T *results, const T *slopes, T *dx)
{
    const dl_team_row<T> row(r, shared);
    if (row.index >= r.n) return;
    const dl_held<T> y(r, row, results, 0), dy(r, row, slopes, 1);
    float sum = 0;
    dl_fill_two(row, y, dy, [&](int p, const auto &v, const auto &slope) {
        for (int j = 0; j < dl_length<T>; j++) sum += row.has(p, j) ? dl_float_of(v.v[j]) * dl_float_of(slope.v[j]) : 0;
    });
    sum = row.sum(sum);
    for (int p = row.rank; p < row.packs; p += row.team) {
        auto v = y.get(p);
        const auto slope = dy.get(p);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = dl_as<T>(dl_float_of(v.v[j]) * (dl_float_of(slope.v[j]) - sum));
        row.write(dx, p, v);
    }
}

template <class T> static void softmax_input_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], 2);
    dl_rows_launch(softmax_input_rows<T>, r, (const T *)call->tensor[0], (const T *)call->tensor[1],
                   (T *)call->tensor[2]);
}
DL_BY_PRECISION(softmax_input)

/* p, target, dy -> dx */
__global__ void __launch_bounds__(1024)
    entropy_input_rows(dl_rows r, const float *results, const int32_t *target, const float *slopes, float *dx)
{
    const dl_team_row<float> row(r, shared);
    if (row.index >= r.n) return;
    const dl_held<float> x(r, row, results, 0);
    const float factor = slopes[row.index];
    const int at = target[row.index];
    dl_fill(row, x, [&](int p, auto v) {
        for (int j = 0; j < dl_length<float>; j++) v.v[j] = factor * (v.v[j] - (row.column(p, j) == at ? 1.0f : 0.0f));
        row.write(dx, p, v);
    });
}

static void entropy_input(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<float>(call->dim[rows], call->dim[width], 0);
    dl_rows_launch(entropy_input_rows, r, (const float *)call->tensor[0], (const int32_t *)call->tensor[1],
                   (const float *)call->tensor[2], (float *)call->tensor[3]);
}

const struct dl_routine dl_cuda_rows[] = {
    {DL_KERNEL("softmax", "forward", softmax)},
    {DL_KERNEL("softmax", "input_gradient", softmax_input)},
    {DL_KERNEL("cross_entropy", "forward", entropy)},
    {DL_KERNEL("cross_entropy", "input_gradient", entropy_input)},
    {},
};
