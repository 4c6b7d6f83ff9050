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

/* Far below all numbers, and no infinity: the difference of two of those is none. */
#define LEAST (-1e30f)

/* The largest number so far, and the sum of exponentials over it. */
struct running {
    float most, sum;
    __device__ __forceinline__ running with(const running &other) const
    {
        const float of_both = fmaxf(most, other.most);
        return {of_both, sum * power_of_two((most - of_both) * LOG2_E) +
                             other.sum * power_of_two((other.most - of_both) * LOG2_E)};
    }
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
    dl_team_row<T, P> row(r);
    if (row.index >= r.n) return;
    const dl_held<T, P> x(r, row, data);
    const bool has_loss = target && row.is_first();
    const float wanted = has_loss ? dl_float_of(data[row.index * r.width + target[row.index]]) : 0;
    running run = {LEAST, 0};
    if (P) /* the largest first: then no sum has to wait for the one before it */
        row.each([&](int p, int u) {
            const auto v = x.get(p, u);
            for (int j = 0; j < dl_length<T>; j++) run.most = fmaxf(run.most, v.v[j]);
        });
    row.each([&](int p, int u) { run.take(row, p, x.get(p, u)); });
    run = row.agree(run, {LEAST, 0}, [](running mine) { return mine.of_warp(); });
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

/* Rows of several blocks, in clusters that take one after the other: while a row is worked on, the next is on its way
 * into shared memory, where each thread finds what it has sent for itself. Every warp tells all blocks what it has, so
 * that they wait for each other once a row; the next row uses another place for that. */
using logits = dl_pack<float, dl_length<float>>;
enum { long_packs = dl_many_packs, long_bytes = long_packs * dl_team_threads * sizeof(logits) };
enum { long_warps = dl_team_threads / dl_warp, most_blocks = 8 };

/* What a block tells another one must find it there. */
__device__ __forceinline__ void all_begin(void)
{
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().sync();
#endif
}

__device__ __forceinline__ running over_cluster(const running &mine, int n_blocks, running *told)
{
#if __CUDA_ARCH__ >= 900
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    const running of_warp = mine.of_warp();
    if (lane < n_blocks) *cluster.map_shared_rank(&told[cluster.block_rank() * long_warps + warp], lane) = of_warp;
    cluster.sync();
    running all = {LEAST, 0};
    for (int i = lane; i < n_blocks * long_warps; i += dl_warp) all = all.with(told[i]);
    return all.of_warp();
#else
    return mine; /* there are no clusters, and no such rows */
#endif
}

__global__ void __launch_bounds__(dl_team_threads, dl_teams)
    entropy_long_rows(dl_rows r, const float *data, float *y, const int32_t *target, float *loss)
{
    extern __shared__ logits coming[];
    __shared__ running told[2][most_blocks * long_warps];
    dl_team_row<float, long_packs> row(r);
    const int64_t step = gridDim.x >> r.parts_log2;
    const auto send_for = [&](int64_t index) {
        if (index < r.n)
            row.each([&](int p, int u) {
                __pipeline_memcpy_async(&coming[u * dl_team_threads + threadIdx.x],
                                        (const logits *)(data + index * r.width) + p, sizeof(logits));
            });
        __pipeline_commit();
    };
    send_for(row.index);
    all_begin();
    for (int turn = 0; row.index < r.n; row.go_on(step), turn ^= 1) {
        logits x[long_packs];
        const float wanted = row.is_first() ? data[row.index * r.width + target[row.index]] : 0;
        __pipeline_wait_prior(0);
        row.each([&](int, int u) { x[u] = coming[u * dl_team_threads + threadIdx.x]; });
        send_for(row.index + step);
        running mine = {LEAST, 0};
        row.each([&](int, int u) {
            for (float v : x[u].v) mine.most = fmaxf(mine.most, v);
        });
        row.each([&](int, int u) {
            for (float &v : x[u].v) mine.sum += v = power_of_two(v * LOG2_E - mine.most * LOG2_E);
        });
        const running all = over_cluster(mine, row.parts, told[turn]);
        const float factor = power_of_two((mine.most - all.most) * LOG2_E) / all.sum;
        row.each([&](int p, int u) {
            for (float &v : x[u].v) v *= factor;
            row.write(y, p, x[u]);
        });
        if (row.is_first()) loss[row.index] = all.most + logf(all.sum) - wanted;
    }
}

static void entropy_of_long(const dl_rows &r, const struct dl_call *call)
{
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t config = dl_rows_config(r, &cluster);
    int at_once = 0;
    config.dynamicSmemBytes = long_bytes;
    DL_CUDA(cudaFuncSetAttribute(entropy_long_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, long_bytes));
    DL_CUDA(cudaOccupancyMaxActiveClusters(&at_once, entropy_long_rows, &config));
    config.gridDim.x = min(config.gridDim.x, (unsigned)at_once << r.parts_log2);
    DL_CUDA(cudaLaunchKernelEx(&config, entropy_long_rows, r, (const float *)call->tensor[0], (float *)call->tensor[3],
                               (const int32_t *)call->tensor[1], (float *)call->tensor[2]));
}

/* Logits and probabilities are fp32 in every precision. */
static void entropy(const struct dl_call *call)
{
    const dl_rows r = dl_rows_of<float>(call->dim[rows], call->dim[width], long_packs);
    if (r.parts_log2 > 0)
        entropy_of_long(r, call);
    else
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
