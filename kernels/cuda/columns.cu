/* columns.cu - sums over the rows of a matrix: gradients of biases, gains and the biases of norms.
 *
 * A block takes a strip of columns and a share of the rows; a thread of it one pack of columns and every eighth row.
 * The blocks leave their sums in the workspace, and a second kernel adds those of all shares, of gains and of biases in
 * one. Where the width is no multiple of a pack, packs are single numbers. */
#include "kernels/cuda/packs.h"

enum { rows, width };
enum { strip = dl_warp, side_by_side = dl_block / strip };

/* How rows are shared: enough blocks to fill a large GPU, and shares that are long against their sums. */
static int64_t n_shares(const int64_t *d, int64_t packs)
{
    const int64_t wanted_blocks = 2048, least_rows = 4 * side_by_side;
    const int64_t wanted = dl_ceil_div(wanted_blocks, dl_ceil_div(packs, strip)),
                  most = dl_ceil_div(d[rows], least_rows);
    return wanted < most ? wanted : most;
}

struct shares {
    int64_t rows, width, each, n; /* rows of a share, shares */
};

static struct shares shares_of(const int64_t *d, int length)
{
    const int64_t n = n_shares(d, dl_ceil_div(d[width], length)), each = dl_ceil_div(d[rows], n);
    return {d[rows], d[width], each, dl_ceil_div(d[rows], each)};
}

static int length_of(const int64_t *d, enum dl_float f)
{
    const int length = dl_pack_bytes / (int)dl_float_bytes(f);
    return d[width] % length ? 1 : length;
}

/* What the threads that share columns have, added up: a thread gets number threadIdx.y of its pack, if there is one. */
template <int N> __device__ float add_up(const float *sum)
{
    __shared__ float all[side_by_side][N][strip];
    float total = 0;
    __syncthreads();
    for (int j = 0; j < N; j++) all[threadIdx.y][j][threadIdx.x] = sum[j];
    __syncthreads();
    if (threadIdx.y < N)
        for (int y = 0; y < side_by_side; y++) total += all[y][threadIdx.y][threadIdx.x];
    return total;
}

template <int N> __device__ void leave(const shares &s, float *parts, int64_t pack, const float *sum)
{
    const float total = add_up<N>(sum);
    if (threadIdx.y < N && pack * N < s.width) parts[blockIdx.y * s.width + pack * N + threadIdx.y] = total;
}

/* Sums of dy. */
template <class T, int N> __global__ void __launch_bounds__(dl_block) sum_rows(shares s, const T *dy, float *parts)
{
    const int64_t pack = (int64_t)blockIdx.x * strip + threadIdx.x;
    const int64_t from = blockIdx.y * s.each, to = min(from + s.each, s.rows);
    float sum[N] = {};
    if (pack * N < s.width)
#pragma unroll 4
        for (int64_t r = from + threadIdx.y; r < to; r += side_by_side) {
            const auto v = *(const dl_pack<T, N> *)(dy + r * s.width + pack * N);
            for (int j = 0; j < N; j++) sum[j] += dl_float_of(v.v[j]);
        }
    leave<N>(s, parts, pack, sum);
}

struct normed {
    const void *x, *dy;
    const float *mean, *scale; /* mean: NULL in RMS norm */
};

/* Sums of dy z, and for layer norm of dy, which come behind all of the first. */
template <class T, int N> __global__ void __launch_bounds__(dl_block) sum_norm(shares s, normed in, float *parts)
{
    const int64_t pack = (int64_t)blockIdx.x * strip + threadIdx.x;
    const int64_t from = blockIdx.y * s.each, to = min(from + s.each, s.rows);
    float of_gain[N] = {}, of_bias[N] = {};
    if (pack * N < s.width)
#pragma unroll 4
        for (int64_t r = from + threadIdx.y; r < to; r += side_by_side) {
            const int64_t at = r * s.width + pack * N;
            const auto x = *(const dl_pack<T, N> *)((const T *)in.x + at);
            const auto dy = *(const dl_pack<T, N> *)((const T *)in.dy + at);
            const float mean = in.mean ? in.mean[r] : 0, scale = in.scale[r];
            for (int j = 0; j < N; j++) {
                of_gain[j] += dl_float_of(dy.v[j]) * (dl_float_of(x.v[j]) - mean) * scale;
                of_bias[j] += dl_float_of(dy.v[j]);
            }
        }
    leave<N>(s, parts, pack, of_gain);
    if (in.mean) leave<N>(s, parts + s.n * s.width, pack, of_bias);
}

/* A warp adds shares of the columns it has: 32 of them, share after share, several on their way at a time. Sums of a
 * second kind come behind all of the first. */
template <class T>
__global__ void __launch_bounds__(dl_block) add_shares(shares s, const float *parts, T *first, T *second)
{
    const int64_t column = (int64_t)blockIdx.x * strip + threadIdx.x;
    const float *const mine = parts + blockIdx.y * s.n * s.width + column;
    T *const to = blockIdx.y ? second : first;
    enum { together = 8 };
    float sum[1] = {};
    if (column < s.width)
        for (int64_t i = threadIdx.y; i < s.n; i += together * side_by_side) {
            float part[together];
#pragma unroll
            for (int u = 0; u < together; u++) {
                const int64_t share = i + u * side_by_side;
                part[u] = share < s.n ? mine[share * s.width] : 0;
            }
            for (int u = 0; u < together; u++) sum[0] += part[u];
        }
    const float total = add_up<1>(sum);
    if (threadIdx.y == 0 && column < s.width) to[column] = dl_as<T>(total);
}

template <class T> static void add_shares_of(const struct shares &s, const float *parts, void *first, void *second)
{
    const dim3 blocks((unsigned)dl_ceil_div(s.width, strip), second ? 2 : 1), threads(strip, side_by_side);
    add_shares<<<blocks, threads, 0, dl_cuda.stream>>>(s, parts, (T *)first, (T *)second);
    DL_LAUNCHED(add_shares);
}

template <class T, int N> static void bias_by(const struct dl_call *call)
{
    const struct shares s = shares_of(call->dim, N);
    const dim3 blocks((unsigned)dl_ceil_div(s.width, strip * N), (unsigned)s.n), threads(strip, side_by_side);
    float *const parts = (float *)call->workspace;
    sum_rows<T, N><<<blocks, threads, 0, dl_cuda.stream>>>(s, (const T *)call->tensor[0], parts);
    DL_LAUNCHED(sum_rows);
    add_shares_of<T>(s, parts, call->tensor[1], NULL);
}

template <class T> static void bias_as(const struct dl_call *call)
{
    if (length_of(call->dim, call->precision) == 1)
        bias_by<T, 1>(call);
    else
        bias_by<T, dl_length<T>>(call);
}
DL_BY_PRECISION(bias)

template <class T, int N> static void norm_by(const struct dl_call *call, const normed &in, void *dgain, void *dbias)
{
    const struct shares s = shares_of(call->dim, N);
    const dim3 blocks((unsigned)dl_ceil_div(s.width, strip * N), (unsigned)s.n), threads(strip, side_by_side);
    float *const parts = (float *)call->workspace;
    sum_norm<T, N><<<blocks, threads, 0, dl_cuda.stream>>>(s, in, parts);
    DL_LAUNCHED(sum_norm);
    add_shares_of<T>(s, parts, dgain, dbias);
}

template <class T> static void norm_as(const struct dl_call *call, const normed &in, void *dgain, void *dbias)
{
    if (length_of(call->dim, call->precision) == 1)
        norm_by<T, 1>(call, in, dgain, dbias);
    else
        norm_by<T, dl_length<T>>(call, in, dgain, dbias);
}

/* x, gain, mean, scale, dy -> dgain, dbias */
template <class T> static void layernorm_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    norm_as<T>(call, {t[0], t[4], (const float *)t[2], (const float *)t[3]}, t[5], t[6]);
}
DL_BY_PRECISION(layernorm)

/* x, gain, scale, dy -> dgain */
template <class T> static void rmsnorm_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    norm_as<T>(call, {t[0], t[3], NULL, (const float *)t[2]}, t[4], NULL);
}
DL_BY_PRECISION(rmsnorm)

static size_t one_sum(const int64_t *d, enum dl_float f)
{
    return (size_t)(shares_of(d, length_of(d, f)).n * d[width]) * sizeof(float);
}

static size_t two_sums(const int64_t *d, enum dl_float f) { return 2 * one_sum(d, f); }

const struct dl_routine dl_cuda_columns[] = {
    {DL_KERNEL("bias", "weight_gradient", bias), .workspace_bytes = one_sum},
    {DL_KERNEL("layernorm", "weight_gradient", layernorm), .workspace_bytes = two_sums},
    {DL_KERNEL("rmsnorm", "weight_gradient", rmsnorm), .workspace_bytes = one_sum},
    {},
};
