/* rows.h - kernels that reduce the rows of a matrix and then need the row again.
 *
 * A row belongs to a team: a warp, a block, or the blocks of a cluster where rows are long. Each thread keeps up to P
 * packs of every tensor in registers, so that memory is read once. P = 0 is for rows that begin inside a pack (odd
 * widths) or that are too long: packs are then those of the whole matrix, read again (from the caches) each time they
 * are needed, and numbers outside of the row are skipped. */
#ifndef DL_KERNELS_CUDA_ROWS_H
#define DL_KERNELS_CUDA_ROWS_H

#include <cooperative_groups.h>

#include "kernels/cuda/packs.h"

enum { dl_team_threads = 512, dl_teams = 2 /* of a multiprocessor, at least */, dl_few_packs = 4, dl_many_packs = 8 };

struct dl_rows {
    int64_t n, width;
    int team;       /* threads of one block that share a row */
    int parts_log2; /* blocks that do: two to this */
    int held;       /* packs of a thread: P */
};

/* x of all blocks of the cluster, combined by over_warp, which does so for a warp; all threads come here. What they
 * have read stays until dl_cluster_wait, which all must call before the next time, or before they end. */
template <class V, class F> __device__ __forceinline__ V dl_over_cluster(V x, int parts, V neutral, F over_warp)
{
#if __CUDA_ARCH__ >= 900
    __shared__ V mine;
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const int lane = threadIdx.x % dl_warp;
    if (threadIdx.x == 0) mine = x;
    cluster.sync();
    x = lane < parts ? *cluster.map_shared_rank(&mine, lane) : neutral;
    cluster.barrier_arrive();
    return over_warp(x);
#else
    return x;
#endif
}

__device__ __forceinline__ void dl_cluster_wait(void)
{
#if __CUDA_ARCH__ >= 900
    __syncwarp(); /* all threads of a warp must come at once */
    cooperative_groups::this_cluster().barrier_wait();
#endif
}

/* The row of the thread's team, and which of its packs, counted from the one in which it begins, are the thread's. */
template <class T, int P> struct dl_team_row {
    using pack = dl_pack<T, dl_length<T>>;
    int64_t index, start; /* of the row; of its first pack, in numbers */
    int head, width;      /* numbers of the first pack before the row */
    int first, packs;     /* the thread's first pack; where those of the block end */
    int team, parts;
    bool is_read = false; /* by the cluster, of what this block gave it */
    __device__ explicit dl_team_row(const dl_rows &r) : width((int)r.width), team(r.team), parts(1 << r.parts_log2)
    {
        index = (int64_t)(blockIdx.x >> r.parts_log2) * blockDim.y + threadIdx.y;
        const int64_t begin = index * r.width;
        head = P ? 0 : (int)(begin % dl_length<T>), start = begin - head;
        const int all = (head + width + dl_length<T> - 1) / dl_length<T>, part = blockIdx.x & (parts - 1);
        const int each = (all + parts - 1) >> r.parts_log2;
        first = part * each + threadIdx.x, packs = min(all, (part + 1) * each);
    }
    __device__ __forceinline__ bool is_first(void) const { return first == 0; }
    __device__ __forceinline__ void go_on(int64_t rows) { index += rows, start += rows * width; }
    __device__ __forceinline__ ~dl_team_row(void)
    {
        if (is_read) dl_cluster_wait();
    }
    /* What all threads of the team have, combined by over_warp; x with `neutral` is x. */
    template <class V, class F> __device__ __forceinline__ V agree(V x, V neutral, F over_warp)
    {
        if (team == dl_warp) return over_warp(x);
        x = dl_over_block(x, neutral, over_warp);
        if (parts == 1) return x;
        if (is_read) dl_cluster_wait();
        is_read = true;
        return dl_over_cluster(x, parts, neutral, over_warp);
    }
    __device__ __forceinline__ float sum(float x)
    {
        return agree(x, 0.0f, [](float y) { return dl_warp_sum(y); });
    }
    /* The column of number j of pack p, and whether there is one. */
    __device__ __forceinline__ int column(int p, int j) const { return p * dl_length<T> + j - head; }
    __device__ __forceinline__ bool has(int p, int j) const { return P || (unsigned)column(p, j) < (unsigned)width; }
    /* f(p, u) for the thread's packs p, which is its u-th. */
    template <class F> __device__ __forceinline__ void each(F f) const
    {
        if constexpr (P > 0) {
#pragma unroll
            for (int u = 0; u < P; u++)
                if (first + u * team < packs) f(first + u * team, u);
        } else
            for (int p = first; p < packs; p += team) f(p, 0);
    }
    /* What belongs to the columns of a pack: gains, biases. */
    __device__ __forceinline__ dl_pack<float, dl_length<T>> of_columns(const T *data, int p) const
    {
        if constexpr (P > 0) {
            return dl_floats(*(const pack *)(data + p * dl_length<T>));
        } else {
            dl_pack<float, dl_length<T>> x;
            for (int j = 0; j < dl_length<T>; j++) x.v[j] = has(p, j) ? dl_float_of(data[column(p, j)]) : 0;
            return x;
        }
    }
    __device__ __forceinline__ void write(T *matrix, int p, const dl_pack<float, dl_length<T>> &x) const
    {
        if (P)
            *(pack *)(matrix + start + p * dl_length<T>) = dl_rounded<T>(x);
        else
            dl_write(matrix + start, p, head, head + width, dl_rounded<T>(x));
    }
};

/* One tensor of the row. */
template <class T, int P> struct dl_held {
    using pack = dl_pack<T, dl_length<T>>;
    const T *data;
    int end; /* of the matrix, if it is in the row's last pack */
    pack kept[P ? P : 1];
    __device__ __forceinline__ dl_held(const dl_rows &r, const dl_team_row<T, P> &row, const T *matrix)
        : data(matrix + row.start)
    {
        end = (int)min(r.n * r.width - row.start, (int64_t)row.packs * dl_length<T>);
        if (P) row.each([&](int p, int u) { kept[u] = *(const pack *)(data + p * dl_length<T>); });
    }
    __device__ __forceinline__ dl_pack<float, dl_length<T>> get(int p, int u) const
    {
        pack x = P ? kept[u] : dl_read<dl_length<T>>(data, p, end);
        uint32_t *const word = (uint32_t *)x.v;
        /* Not known to be the same as last time: or the floats of then would be kept beside it. */
        if (P && sizeof(T) < sizeof(float))
            asm volatile("" : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3]));
        return dl_floats(x);
    }
};

/* Teams for rows of which a thread can hold at most so many packs: as small as they can be with few packs each, so that
 * many rows are on their way at a time; then more packs, then more blocks. */
template <class T> static dl_rows dl_rows_of(int64_t n, int64_t width, int most_packs)
{
    const int64_t packs = dl_ceil_div(width + (width % dl_length<T> != 0), dl_length<T>);
    dl_rows r = {n, width, dl_warp, 0, dl_few_packs};
    while (r.team < dl_team_threads && packs > r.team * r.held) r.team *= 2;
    if (packs > r.team * r.held) r.held = most_packs;
    while (r.parts_log2 < dl_cuda.parts_log2 && packs > (int64_t)r.team * r.held << r.parts_log2) r.parts_log2++;
    if (width % dl_length<T> == 0 && packs <= (int64_t)r.team * r.held << r.parts_log2) return r;
    r.held = r.parts_log2 = 0;
    return r;
}

/* Of a kernel with all its teams; `cluster` must stay until it is launched. */
static cudaLaunchConfig_t dl_rows_config(const dl_rows &r, cudaLaunchAttribute *cluster)
{
    const unsigned teams = r.team == dl_warp ? dl_block / dl_warp : 1, parts = 1u << r.parts_log2;
    *cluster = {};
    cluster->id = cudaLaunchAttributeClusterDimension;
    cluster->val.clusterDim = {parts, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)dl_ceil_div(r.n, teams) * parts);
    config.blockDim = dim3((unsigned)r.team, teams);
    config.stream = dl_cuda.stream;
    config.attrs = cluster;
    config.numAttrs = parts > 1;
    return config;
}

/* Launches KERNEL(r, arguments...). */
template <class... P, class... A> static void dl_rows_launch(void (*kernel)(dl_rows, P...), const dl_rows &r, A... a)
{
    cudaLaunchAttribute cluster;
    const cudaLaunchConfig_t config = dl_rows_config(r, &cluster);
    DL_CUDA(cudaLaunchKernelEx(&config, kernel, r, (P)a...));
}

#endif
