/* rows.h - kernels that reduce the rows of a matrix and then need the row again.
 *
 * A row belongs to a team: a warp, or a block where rows are long. What is read first stays in shared memory, each pack
 * read again only by the thread that put it there; what does not fit is read again from memory (the L2 cache). Rows of
 * odd widths begin inside a pack: packs are those of the whole matrix, and numbers outside of the row are skipped. */
#ifndef DL_KERNELS_CUDA_ROWS_H
#define DL_KERNELS_CUDA_ROWS_H

#include "kernels/cuda/packs.h"

struct dl_rows {
    int64_t n, width;
    int team;     /* threads */
    int capacity; /* packs of one tensor that a team can keep */
    int arrays;   /* tensors that are kept */
};

/* The row of the thread's team. Its packs are counted from the one in which it begins, `head` numbers behind its start.
 */
template <class T> struct dl_team_row {
    int64_t index, start; /* of the row; of its first pack, in numbers */
    int packs, head, width, rank, team;
    dl_pack<T, dl_length<T>> *shared;
    __device__ dl_team_row(const dl_rows &r, void *memory)
    {
        const int teams = blockDim.x / r.team, mine = threadIdx.x / r.team;
        index = (int64_t)blockIdx.x * teams + mine;
        const int64_t begin = index * r.width;
        head = (int)(begin % dl_length<T>), width = (int)r.width;
        start = begin - head;
        packs = (head + width + dl_length<T> - 1) / dl_length<T>;
        rank = threadIdx.x % r.team, team = r.team;
        shared = (dl_pack<T, dl_length<T>> *)memory + mine * r.capacity * r.arrays;
    }
    __device__ float sum(float x) const { return team == dl_warp ? dl_warp_sum(x) : dl_block_sum(x); }
    __device__ float max(float x) const { return team == dl_warp ? dl_warp_max(x) : dl_block_max(x); }
    /* The column of number j of pack p, and whether there is one. */
    __device__ int column(int p, int j) const { return p * dl_length<T> + j - head; }
    __device__ bool has(int p, int j) const { return (unsigned)column(p, j) < (unsigned)width; }
    __device__ void write(T *matrix, int p, const dl_pack<T, dl_length<T>> &x) const
    {
        dl_write(matrix + start, p, head, head + width, x);
    }
};

/* One tensor of the row: read first, and kept; then got back. */
template <class T> struct dl_held {
    using pack = dl_pack<T, dl_length<T>>;
    const T *data;
    pack *kept;
    int capacity, end; /* of the matrix, if it is in the row's last pack */
    __device__ dl_held(const dl_rows &r, const dl_team_row<T> &row, const T *matrix, int array)
        : data(matrix + row.start), kept(row.shared + array * r.capacity), capacity(r.capacity)
    {
        end = (int)min(r.n * r.width - row.start, (int64_t)row.packs * dl_length<T>);
    }
    __device__ __forceinline__ pack read(int p) const { return dl_read<dl_length<T>>(data, p, end); }
    __device__ __forceinline__ void keep(int p, const pack &x) const
    {
        if (p < capacity) kept[p] = x;
    }
    __device__ __forceinline__ pack get(int p) const { return p < capacity ? kept[p] : read(p); }
};

/* f(p, x) for the thread's packs of the row; several loads are on their way at a time. */
template <class T, class F> __device__ __forceinline__ void dl_fill(const dl_team_row<T> &row, const dl_held<T> &x, F f)
{
    enum { together = 4 };
    dl_pack<T, dl_length<T>> loaded[together];
    for (int from = row.rank; from < row.packs; from += together * row.team) {
#pragma unroll
        for (int u = 0; u < together; u++)
            if (from + u * row.team < row.packs) loaded[u] = x.read(from + u * row.team);
#pragma unroll
        for (int u = 0; u < together; u++) {
            const int p = from + u * row.team;
            if (p >= row.packs) break;
            x.keep(p, loaded[u]);
            f(p, loaded[u]);
        }
    }
}

/* The same for two tensors. */
template <class T, class F>
__device__ __forceinline__ void dl_fill_two(const dl_team_row<T> &row, const dl_held<T> &x, const dl_held<T> &y, F f)
{
    enum { together = 2 };
    dl_pack<T, dl_length<T>> loaded[together], beside[together];
    for (int from = row.rank; from < row.packs; from += together * row.team) {
#pragma unroll
        for (int u = 0; u < together; u++) {
            if (from + u * row.team >= row.packs) break;
            loaded[u] = x.read(from + u * row.team);
            beside[u] = y.read(from + u * row.team);
        }
#pragma unroll
        for (int u = 0; u < together; u++) {
            const int p = from + u * row.team;
            if (p >= row.packs) break;
            x.keep(p, loaded[u]);
            y.keep(p, beside[u]);
            f(p, loaded[u], beside[u]);
        }
    }
}

/* What belongs to the columns of a pack: gains, biases. */
template <class T>
__device__ __forceinline__ dl_pack<T, dl_length<T>> dl_columns(const dl_team_row<T> &row, const T *data, int p)
{
    if (row.width % dl_length<T> == 0) return dl_read<dl_length<T>>(data, p, row.width);
    dl_pack<T, dl_length<T>> x;
    for (int j = 0; j < dl_length<T>; j++) x.v[j] = row.has(p, j) ? data[row.column(p, j)] : T(0);
    return x;
}

/* Teams for rows of which so many tensors are kept. Up to so many packs a warp, 256 or 512 threads do: enough of them
 * then share a multiprocessor to hide the time that memory takes. */
template <class T> static dl_rows dl_rows_of(int64_t n, int64_t width, int arrays)
{
    enum { of_warp = 256, of_block = 2048, of_large_block = 4096, largest_block = 1024 };
    const int64_t packs = width % dl_length<T> ? width / dl_length<T> + 2 : width / dl_length<T>;
    const int64_t fit = arrays ? (int64_t)(dl_cuda.shared_bytes / dl_pack_bytes) / arrays : 0;
    const int64_t kept = packs * arrays;
    dl_rows r = {n, width, largest_block, (int)(packs < fit ? packs : fit), arrays};
    if (kept <= of_large_block && packs <= of_large_block) r.team = 2 * dl_block;
    if (kept <= of_block && packs <= of_block) r.team = dl_block;
    if (kept <= of_warp && packs <= of_warp) r.team = dl_warp;
    return r;
}

/* Launches KERNEL(r, arguments...), whose dynamic shared memory holds what is kept. */
template <class... P, class... A> static void dl_rows_launch(void (*kernel)(dl_rows, P...), const dl_rows &r, A... a)
{
    const int threads = r.team == dl_warp ? dl_block : r.team, teams = threads / r.team;
    const size_t bytes = (size_t)teams * (size_t)(r.capacity * r.arrays) * dl_pack_bytes;
    DL_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<(unsigned)dl_ceil_div(r.n, teams), threads, bytes, dl_cuda.stream>>>(r, a...);
    DL_LAUNCHED(kernel);
}

#endif
