/* tiled_attention.cu - attention tile by tile, as FlashAttention-2 does it (Dao 2023, Algorithms 1 and 2), so that
 * scores never leave the chip. Written to be read: no tensor cores, one number at a time.
 *
 * A block has a tile of 32 rows, eight threads to a row, and goes through tiles of 32 of the other side: in forward and
 * for dQ its rows are queries and the other side keys, for dK and dV it is the other way round. A thread has four of a
 * row's 32 scores, and every eighth number of the row's result. */
#include "kernels/cuda/packs.h"

#include <math.h>

enum { batch, m, n, k, shared, causal, dropout, key_batch };
enum { tile = 32, lanes = 8, mine = tile / lanes, most_k = 128, parts = most_k / lanes };

template <class T> struct tensors {
    int m, n, k, shared;
    bool is_causal, drops;
    float scale;
    const T *q, *keys, *values, *dy;
    const float *log_sum, *mean; /* mean: dy y of every query */
    __device__ int seen(int query) const { return is_causal ? query + n - m + 1 : n; }
    __device__ float kept(int64_t head, int query, int key) const
    {
        if (!drops) return 1;
        return dl_kept((uint64_t)((head * m + query) * n + key)) ? DL_DROPOUT_SCALE : 0;
    }
};

template <class T> static tensors<T> tensors_of(const struct dl_call *call, const void *dy)
{
    const int64_t *const d = call->dim;
    const T *const *const t = (const T *const *)call->tensor;
    return {(int)d[m],
            (int)d[n],
            (int)d[k],
            (int)d[shared],
            d[causal] != 0,
            d[dropout] != 0,
            1 / sqrtf((float)d[k]),
            t[0],
            t[1],
            t[2],
            (const T *)dy,
            (const float *)call->tensor[4],
            (const float *)call->workspace};
}

extern __shared__ float memory[];

/* A tile of rows in shared memory, one number of room after each so that columns lie in different banks. */
struct rows {
    float *data;
    int step;
    __device__ rows(int which, int size) : data(memory + which * tile * (most_k + 1)), step(size + 1) {}
    __device__ float *row(int r) const { return data + r * step; }
    template <class T> __device__ void load(const T *from, int first, int end, int size) const
    {
        for (int i = threadIdx.x; i < tile * size; i += dl_block) {
            const int r = i / size, c = i % size;
            row(r)[c] = first + r < end ? dl_float_of(from[(int64_t)(first + r) * size + c]) : 0;
        }
    }
};

/* The scores of a tile, or what is made of them; each row is written and read by the threads of one warp. */
__device__ float *weights_row(int which, int r)
{
    return memory + 4 * tile * (most_k + 1) + (which * tile + r) * (tile + 1);
}
enum { shared_bytes = (4 * tile * (most_k + 1) + 2 * tile * (tile + 1)) * sizeof(float) };

__device__ float dot(const float *a, const float *b, int size)
{
    float sum = 0;
    for (int c = 0; c < size; c++) sum += a[c] * b[c];
    return sum;
}

/* result[c] += the weights of the row times column c of the tile */
__device__ void add_weighted(float *result, const float *weights, const rows &r, int lane, int size)
{
#pragma unroll 1
    for (int j = 0; j < tile; j++)
#pragma unroll
        for (int v = 0; v < parts; v++)
            if (lane + v * lanes < size) result[v] += weights[j] * r.row(j)[lane + v * lanes];
}

template <class T> __device__ void put_row(T *to, const float *result, int lane, int size, float factor)
{
#pragma unroll
    for (int v = 0; v < parts; v++)
        if (lane + v * lanes < size) to[lane + v * lanes] = dl_as<T>(result[v] * factor);
}

__device__ float row_sum(float x)
{
    for (int step = lanes / 2; step; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ float row_max(float x)
{
    for (int step = lanes / 2; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

template <class T> __global__ void __launch_bounds__(dl_block) forward_tiles(tensors<T> t, T *y, float *log_sum)
{
    const int64_t head = blockIdx.y, of_keys = head / t.shared * t.n * t.k;
    const int first = blockIdx.x * tile, r = threadIdx.x / lanes, lane = threadIdx.x % lanes, query = first + r;
    const rows q(0, t.k), keys(1, t.k), values(2, t.k);
    float result[parts] = {}, most = -1e30f, sum = 0;
    float *const p = weights_row(0, r);
    q.load(t.q + head * t.m * t.k, first, t.m, t.k);
    for (int from = 0; from < t.seen(min(first + tile, t.m) - 1); from += tile) {
        float score[mine], largest = most, added = 0;
        __syncthreads();
        keys.load(t.keys + of_keys, from, t.n, t.k);
        values.load(t.values + of_keys, from, t.n, t.k);
        __syncthreads();
        for (int u = 0; u < mine; u++) {
            const int j = lane + u * lanes;
            score[u] = from + j < min(t.seen(query), t.n) ? t.scale * dot(q.row(r), keys.row(j), t.k) : -INFINITY;
            largest = fmaxf(largest, score[u]);
        }
        largest = row_max(largest);
        for (int u = 0; u < mine; u++) {
            const int j = lane + u * lanes;
            const float e = __expf(score[u] - largest);
            added += e;
            p[j] = e * t.kept(head, query, from + j);
        }
        const float shrink = __expf(most - largest);
        sum = sum * shrink + row_sum(added), most = largest;
        for (float &part : result) part *= shrink;
        __syncwarp();
        add_weighted(result, p, values, lane, t.k);
        __syncwarp();
    }
    if (query >= t.m) return;
    put_row(y + (head * t.m + query) * t.k, result, lane, t.k, 1 / sum);
    if (lane == 0) log_sum[head * t.m + query] = most + logf(sum);
}

/* A probability after dropout, and the gradient of its score. */
struct pair {
    float p, ds;
};
template <class T>
__device__ pair backward_of(const tensors<T> &t, int64_t head, int query, int key, float score, float slope)
{
    if (query >= t.m || key >= min(t.seen(query), t.n)) return {0, 0};
    const float p = __expf(score - t.log_sum[head * t.m + query]), kept = t.kept(head, query, key);
    return {p * kept, t.scale * p * (slope * kept - t.mean[head * t.m + query])};
}

template <class T> __global__ void __launch_bounds__(dl_block) query_tiles(tensors<T> t, T *dq)
{
    const int64_t head = blockIdx.y, of_keys = head / t.shared * t.n * t.k, of_head = head * t.m * t.k;
    const int first = blockIdx.x * tile, r = threadIdx.x / lanes, lane = threadIdx.x % lanes, query = first + r;
    const rows q(0, t.k), dy(1, t.k), keys(2, t.k), values(3, t.k);
    float result[parts] = {};
    float *const ds = weights_row(0, r);
    q.load(t.q + of_head, first, t.m, t.k);
    dy.load(t.dy + of_head, first, t.m, t.k);
    for (int from = 0; from < t.seen(min(first + tile, t.m) - 1); from += tile) {
        __syncthreads();
        keys.load(t.keys + of_keys, from, t.n, t.k);
        values.load(t.values + of_keys, from, t.n, t.k);
        __syncthreads();
        for (int j = lane; j < tile; j += lanes)
            ds[j] = backward_of(t, head, query, from + j, t.scale * dot(q.row(r), keys.row(j), t.k),
                                dot(dy.row(r), values.row(j), t.k))
                        .ds;
        __syncwarp();
        add_weighted(result, ds, keys, lane, t.k);
        __syncwarp();
    }
    if (query < t.m) put_row(dq + of_head + (int64_t)query * t.k, result, lane, t.k, 1);
}

template <class T> __global__ void __launch_bounds__(dl_block) key_tiles(tensors<T> t, T *dk, T *dv)
{
    const int64_t of_keys = (int64_t)blockIdx.y * t.n * t.k;
    const int first = blockIdx.x * tile, r = threadIdx.x / lanes, lane = threadIdx.x % lanes, key = first + r;
    const rows keys(0, t.k), values(1, t.k), q(2, t.k), dy(3, t.k);
    float of_key[parts] = {}, of_value[parts] = {};
    float *const p = weights_row(0, r), *const ds = weights_row(1, r);
    keys.load(t.keys + of_keys, first, t.n, t.k);
    values.load(t.values + of_keys, first, t.n, t.k);
    for (int64_t head = (int64_t)blockIdx.y * t.shared; head < ((int64_t)blockIdx.y + 1) * t.shared; head++)
        for (int from = 0; from < t.m; from += tile) {
            if (t.seen(min(from + tile, t.m) - 1) <= first) continue; /* none of these queries sees the keys */
            __syncthreads();
            q.load(t.q + head * t.m * t.k, from, t.m, t.k);
            dy.load(t.dy + head * t.m * t.k, from, t.m, t.k);
            __syncthreads();
            for (int i = lane; i < tile; i += lanes) {
                const pair of = backward_of(t, head, from + i, key, t.scale * dot(q.row(i), keys.row(r), t.k),
                                            dot(dy.row(i), values.row(r), t.k));
                p[i] = of.p, ds[i] = of.ds;
            }
            __syncwarp();
            add_weighted(of_value, p, dy, lane, t.k);
            add_weighted(of_key, ds, q, lane, t.k);
            __syncwarp();
        }
    if (key >= t.n) return;
    put_row(dk + of_keys + (int64_t)key * t.k, of_key, lane, t.k, 1);
    put_row(dv + of_keys + (int64_t)key * t.k, of_value, lane, t.k, 1);
}

/* dy y of every query: a warp each. */
template <class T> __global__ void means(const T *y, const T *dy, float *mean, int64_t queries, int size)
{
    const int64_t query = ((int64_t)blockIdx.x * dl_block + threadIdx.x) / dl_warp;
    float sum = 0;
    if (query >= queries) return;
    for (int64_t c = threadIdx.x % dl_warp; c < size; c += dl_warp)
        sum += dl_float_of(y[query * size + c]) * dl_float_of(dy[query * size + c]);
    sum = dl_warp_sum(sum);
    if (threadIdx.x % dl_warp == 0) mean[query] = sum;
}

template <class K> static K *with_memory(K *kernel)
{
    DL_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    return kernel;
}

template <class T> static void forward_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const dim3 blocks((unsigned)dl_ceil_div(d[m], tile), (unsigned)d[batch]);
    with_memory(forward_tiles<T>)<<<blocks, dl_block, shared_bytes, dl_cuda.stream>>>(
        tensors_of<T>(call, NULL), (T *)call->tensor[3], (float *)call->tensor[4]);
    DL_LAUNCHED(forward_tiles);
}
DL_BY_PRECISION(forward)

template <class T> static void backward_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim, queries = d[batch] * d[m];
    T *const *const t = (T *const *)call->tensor;
    const tensors<T> in = tensors_of<T>(call, t[5]);
    means<<<(unsigned)dl_ceil_div(queries * dl_warp, dl_block), dl_block, 0, dl_cuda.stream>>>(
        (const T *)t[3], (const T *)t[5], (float *)call->workspace, queries, (int)d[k]);
    DL_LAUNCHED(means);
    const dim3 of_queries((unsigned)dl_ceil_div(d[m], tile), (unsigned)d[batch]);
    with_memory(query_tiles<T>)<<<of_queries, dl_block, shared_bytes, dl_cuda.stream>>>(in, t[6]);
    DL_LAUNCHED(query_tiles);
    const dim3 of_keys((unsigned)dl_ceil_div(d[n], tile), (unsigned)d[key_batch]);
    with_memory(key_tiles<T>)<<<of_keys, dl_block, shared_bytes, dl_cuda.stream>>>(in, t[7], t[8]);
    DL_LAUNCHED(key_tiles);
}
DL_BY_PRECISION(backward)

static size_t means_bytes(const int64_t *d, enum dl_float) { return (size_t)(d[batch] * d[m]) * sizeof(float); }
static bool can(const int64_t *d, enum dl_float) { return d[k] <= most_k; }

#define TILED(the_pass, the_run)                                                                                       \
    .problem = "attention", .pass = the_pass, .way = "tiled",                                                          \
    .doc = "tiles as in FlashAttention-2, without tensor cores", .precisions = DL_PLAIN, .is_own = true,               \
    .run = the_run
const struct dl_routine dl_cuda_tiled_attentions[] = {
    {TILED("forward", forward), .can = can},
    {TILED("backward", backward), .workspace_bytes = means_bytes, .can = can},
    {},
};
