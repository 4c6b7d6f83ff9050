/* rows.cu - softmax and cross entropy: a team to a row, which is read once. */
#include "kernels/cuda/rows.h"

enum { rows, width };

/* Exponentials are powers of two of x log2(e). */
#define LOG2_E 1.4426950409f
__device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The largest number so far, and the sum of exponentials over it. */
struct running {
    float most, sum;
    __device__ __forceinline__ running of_warp(void) const
    {
        const float of_all = dl_warp_max(most);
        return {of_all, dl_warp_sum(sum * power_of_two((most - of_all) * LOG2_E))};
    }
    template <class T, int P>
    __device__ __forceinline__ void take(const dl_team_row<T, P> &row, int p, const dl_pack<float, dl_length<T>> &x)
    {
        float now = most, added = 0;
        for (int j = 0; j < dl_length<T>; j++)
            if (row.has(p, j)) now = fmaxf(now, x.v[j]);
        for (int j = 0; j < dl_length<T>; j++)
            added += row.has(p, j) ? power_of_two(x.v[j] * LOG2_E - now * LOG2_E) : 0;
        sum = sum * power_of_two((most - now) * LOG2_E) + added;
        most = now;
    }
};

/* With targets: the loss of each row besides. */
template <class T, int P>
__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    softmax_rows(dl_rows r, const T *data, T *y, const int32_t *target, float *loss)
{
    const float least = -1e30f; /* far below all, and no infinity: the difference of two of those is none */
    dl_team_row<T, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<T, P> x(r, row, data);
    const bool has_loss = target && row.is_first();
    const float wanted = has_loss ? dl_float_of(data[row.index * r.width + target[row.index]]) : 0;
    running run = {least, 0};
    if (P) /* the largest first: then no sum has to wait for the one before it */
        row.each([&](int p, int u) {
            const auto v = x.get(p, u);
            for (int j = 0; j < dl_length<T>; j++) run.most = fmaxf(run.most, v.v[j]);
        });
    row.each([&](int p, int u) { run.take(row, p, x.get(p, u)); });
    run = row.agree(run, {least, 0}, [](running mine) { return mine.of_warp(); });
    const float most = run.most, part = 1 / run.sum;
    row.each([&](int p, int u) {
        auto v = x.get(p, u);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] = power_of_two(v.v[j] * LOG2_E - most * LOG2_E) * part;
        row.write(y, p, v);
    });
    if (has_loss) loss[row.index] = most + logf(run.sum) - wanted;
}

template <class T>
static void softmax_of(const struct dl_call *call, void *y, const int32_t *target = NULL, float *loss = NULL)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], dl_many_packs);
    auto *const kernel = r.held == dl_many_packs  ? softmax_rows<T, dl_many_packs>
                         : r.held == dl_few_packs ? softmax_rows<T, dl_few_packs>
                                                  : softmax_rows<T, 0>;
    dl_rows_launch(kernel, r, (const T *)call->tensor[0], (T *)y, target, loss);
}

template <class T> static void softmax_as(const struct dl_call *call) { softmax_of<T>(call, call->tensor[1]); }
DL_BY_PRECISION(softmax)

/* Logits and probabilities are fp32 in every precision. */
static void entropy(const struct dl_call *call)
{
    softmax_of<float>(call, call->tensor[3], (const int32_t *)call->tensor[1], (float *)call->tensor[2]);
}

/* y, dy -> dx */
template <class T, int P>
__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    softmax_input_rows(dl_rows r, const T *results, const T *slopes, T *dx)
{
    dl_team_row<T, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<T, P> y(r, row, results), dy(r, row, slopes);
    float sum = 0;
    row.each([&](int p, int u) {
        const auto v = y.get(p, u), slope = dy.get(p, u);
        for (int j = 0; j < dl_length<T>; j++) sum += row.has(p, j) ? v.v[j] * slope.v[j] : 0;
    });
    sum = row.sum(sum);
    row.each([&](int p, int u) {
        auto v = y.get(p, u);
        const auto slope = dy.get(p, u);
        for (int j = 0; j < dl_length<T>; j++) v.v[j] *= slope.v[j] - sum;
        row.write(dx, p, v);
    });
}

template <class T> static void softmax_input_as(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<T>(call->dim[rows], call->dim[width], dl_few_packs);
    auto *const kernel = r.held ? softmax_input_rows<T, dl_few_packs> : softmax_input_rows<T, 0>;
    dl_rows_launch(kernel, r, (const T *)call->tensor[0], (const T *)call->tensor[1], (T *)call->tensor[2]);
}
DL_BY_PRECISION(softmax_input)

/* p, target, dy -> dx */
template <int P>
__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    entropy_input_rows(dl_rows r, const float *results, const int32_t *target, const float *slopes, float *dx)
{
    const dl_team_row<float, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<float, P> x(r, row, results);
    const float factor = slopes[row.index];
    const int at = target[row.index];
    row.each([&](int p, int u) {
        auto v = x.get(p, u);
        for (int j = 0; j < dl_length<float>; j++) v.v[j] = factor * (v.v[j] - (row.column(p, j) == at ? 1.0f : 0.0f));
        row.write(dx, p, v);
    });
}

static void entropy_input(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<float>(call->dim[rows], call->dim[width], dl_few_packs);
    auto *const kernel = r.held ? entropy_input_rows<dl_few_packs> : entropy_input_rows<0>;
    dl_rows_launch(kernel, r, (const float *)call->tensor[0], (const int32_t *)call->tensor[1],
                   (const float *)call->tensor[2], (float *)call->tensor[3]);
}

const struct dl_routine dl_cuda_rows[] = {
    {DL_KERNEL("softmax", "forward", softmax)},
    {DL_KERNEL("softmax", "input_gradient", softmax_input)},
    {DL_KERNEL("cross_entropy", "forward", entropy)},
    {DL_KERNEL("cross_entropy", "input_gradient", entropy_input)},
    {},
};
