/* halving.h - the pooling that halves a plane, as ResNets have it: windows of 3, two apart, one row and column around
 * it.
 *
 * Window o covers columns 2 o - 1, 2 o and 2 o + 1, and rows likewise. A thread takes a pack of columns and goes down a
 * strip of rows of windows, all in registers of 32 bits: words, which hold one number or two. Of a row it needs what
 * its windows have on their left, in the middle and on their right, neighbouring windows in one word:
 *
 *     numbers of 16 bits: 0 1 | 2 3 | 4 5 | 6 7     left . 1, 3 5     middle 0 2, 4 6     right 1 3, 5 7 */
#ifndef DL_KERNELS_CUDA_HALVING_H
#define DL_KERNELS_CUDA_HALVING_H

#include "kernels/cuda/words.h"

enum { dl_halving_rows = 4 /* of windows in a strip, forward */, dl_halving_back_rows = 8 };

/* Made from the dimensions of the problem: planes, height, width, window, stride, pad, rows, columns. */
struct dl_halving {
    int height, width, rows, columns;
    uint32_t threads;
    dl_divisor packs, strips; /* of a row; of a plane */
    dl_halving(const int64_t *d, int length, int each)
        : height((int)d[1]), width((int)d[2]), rows((int)d[6]), columns((int)d[7]), packs((uint32_t)(d[2] / length)),
          strips((uint32_t)dl_ceil_div(d[6], each))
    {
        threads = (uint32_t)d[0] * strips.by * packs.by;
    }
    static bool can(const int64_t *d, int length)
    {
        const bool is_halving = d[3] == 3 && d[4] == 2 && d[5] == 1;
        return is_halving && d[2] % length == 0 && d[0] * d[6] * (d[2] / length) <= INT32_MAX;
    }
    unsigned blocks(int threads_of_block) const { return (unsigned)dl_ceil_div(threads, threads_of_block); }
};

/* What a thread does: the windows [first, last) of a plane's rows, at a pack of columns. */
template <class T> struct dl_strip {
    static constexpr int length = dl_length<T>, windows = length / 2;
    const dl_halving &h;
    int64_t corner, window_corner; /* of the plane, and of its windows: where the thread's columns begin */
    int pack, first, last;
    __device__ __forceinline__ dl_strip(const dl_halving &halving, uint32_t thread, int each) : h(halving)
    {
        const uint32_t strip = h.packs.quotient(thread), plane = h.strips.quotient(strip);
        pack = (int)(thread - strip * h.packs.by);
        first = (int)(strip - plane * h.strips.by) * each, last = min(first + each, h.rows);
        corner = (int64_t)plane * h.height * h.width + pack * length;
        window_corner = (int64_t)plane * h.rows * h.columns + pack * windows;
    }
    __device__ __forceinline__ bool is_last_pack(void) const { return pack + 1 == (int)h.packs.by; }
    /* Where the thread's part of a row of the plane, and of its windows, begins. */
    __device__ __forceinline__ int64_t at(int row) const { return corner + row * h.width; }
    __device__ __forceinline__ int64_t window_at(int row) const { return window_corner + row * h.columns; }
};

/* A row at a thread's columns, with the number before it in the last place of a word. */
struct dl_seen {
    uint4 word;
    uint32_t before;
};

/* The same by windows, with the largest of each. */
struct dl_sides {
    uint32_t left[2], middle[2], right[2], most[2];
};

template <class T> __device__ __forceinline__ dl_sides dl_sides_of(const dl_seen &r)
{
    dl_sides s;
    s.middle[0] = dl_evens<T>(r.word.x, r.word.y), s.right[0] = dl_odds<T>(r.word.x, r.word.y);
    s.middle[1] = dl_evens<T>(r.word.z, r.word.w), s.right[1] = dl_odds<T>(r.word.z, r.word.w);
    s.left[0] = dl_one_before<T>(r.before, s.right[0]), s.left[1] = dl_one_before<T>(s.right[0], s.right[1]);
    for (int k = 0; k < 2; k++) s.most[k] = dl_larger<T>(dl_larger<T>(s.left[k], s.middle[k]), s.right[k]);
    return s;
}

/* The largest of three rows; then of three columns. Rows and columns outside count as those at the edge, which are in
 * the same windows. */
template <class T> __global__ void __launch_bounds__(dl_block, 3) dl_halve(dl_halving h, const T *x, T *y)
{
    enum { n_rows = 2 * dl_halving_rows + 1 };
    const uint32_t thread = blockIdx.x * dl_block + threadIdx.x;
    if (thread >= h.threads) return;
    const dl_strip<T> strip(h, thread, dl_halving_rows);
    dl_seen row[n_rows];
#pragma unroll
    for (int r = 0; r < n_rows; r++) {
        const T *const from = x + strip.at(min(max(2 * strip.first - 1 + r, 0), h.height - 1));
        row[r].word = *(const uint4 *)from;
        row[r].before = dl_in_last_place(from[strip.pack ? -1 : 0]);
    }
#pragma unroll
    for (int r = 0; r < dl_halving_rows; r++) {
        dl_seen most = row[2 * r];
        for (int u = 1; u < 3; u++) {
            const dl_seen &other = row[2 * r + u];
            most.word.x = dl_larger<T>(most.word.x, other.word.x),
            most.word.y = dl_larger<T>(most.word.y, other.word.y);
            most.word.z = dl_larger<T>(most.word.z, other.word.z),
            most.word.w = dl_larger<T>(most.word.w, other.word.w);
            most.before = dl_larger<T>(most.before, other.before);
        }
        const dl_sides s = dl_sides_of<T>(most);
        if (strip.first + r < strip.last)
            *(uint2 *)(y + strip.window_at(strip.first + r)) = make_uint2(s.most[0], s.most[1]);
    }
}

/* Four words; what is near them will be wanted soon and comes into the L2 cache as well. */
__device__ __forceinline__ uint4 dl_read_ahead(const uint32_t *from)
{
    uint4 x;
    asm("ld.global.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
    return x;
}

/* A row as it is read: a thread's columns, and for the first thread of a warp the word before them; all others have
 * it from their neighbour. */
template <class T> __device__ __forceinline__ dl_seen dl_read_row(const dl_strip<T> &strip, const T *x, int row)
{
    const uint32_t lowest = dl_lowest<T>; /* numbers outside of the plane are never the largest */
    dl_seen r = {{lowest, lowest, lowest, lowest}, lowest};
    if (row < 0 || row >= strip.h.height) return r;
    const uint32_t *const from = (const uint32_t *)(x + strip.at(row));
    r.word = dl_read_ahead(from);
    if (threadIdx.x % dl_warp == 0 && strip.pack) r.before = from[-1];
    return r;
}

/* All threads of the warp come here. */
template <class T> __device__ __forceinline__ dl_sides dl_sides_by_warp(const dl_strip<T> &strip, dl_seen r)
{
    const uint32_t before = __shfl_up_sync(0xffffffff, r.word.w, 1);
    if (threadIdx.x % dl_warp) r.before = strip.pack ? before : dl_lowest<T>;
    return dl_sides_of<T>(r);
}

/* A row of windows: its two lower rows, and what they pass back; those outside pass nothing. */
struct dl_window_row {
    dl_seen middle, bottom;
    uint2 slope;
};

template <class T>
__device__ __forceinline__ dl_window_row dl_read_windows(const dl_strip<T> &strip, const T *x, const T *dy, int row)
{
    dl_window_row w = {dl_read_row(strip, x, 2 * row), dl_read_row(strip, x, 2 * row + 1), {0, 0}};
    if (row < strip.h.rows) w.slope = *(const uint2 *)(dy + strip.window_at(row));
    return w;
}

/* What each of three rows gets: a slope goes to the first of a window's numbers that is the largest. */
template <class T>
__device__ __forceinline__ void dl_pass_back(const dl_sides *row, const uint32_t *slope, dl_sides *passed)
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const uint32_t most = dl_larger<T>(dl_larger<T>(row[0].most[k], row[1].most[k]), row[2].most[k]);
        uint32_t left = slope[k];
        const auto pass = [&](uint32_t number) {
            const uint32_t is_most = dl_equal<T>(number, most), to = is_most & left;
            left &= ~is_most;
            return to;
        };
        for (int r = 0; r < 3; r++) {
            passed[r].left[k] = pass(row[r].left[k]);
            passed[r].middle[k] = pass(row[r].middle[k]);
            passed[r].right[k] = pass(row[r].right[k]);
        }
    }
}

/* Even columns are in the middle of a window; odd ones are on the right of one and on the left of the next, the last of
 * the thread on the left of its neighbour's first. All threads of the warp come here. */
template <class T>
__device__ __forceinline__ void dl_add_passed(const dl_strip<T> &strip, dl_pack<float, dl_length<T>> *sum,
                                              const dl_sides &passed)
{
    enum { numbers = (int)(sizeof(uint32_t) / sizeof(T)) };
    const uint32_t behind = __shfl_down_sync(0xffffffff, passed.left[0], 1);
    const uint32_t left[3] = {passed.left[0], passed.left[1], strip.is_last_pack() ? 0 : behind};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const uint32_t next = dl_one_behind<T>(left[k], left[k + 1]);
        for (int j = 0; j < numbers; j++) {
            float *const even = &sum->v[2 * (k * numbers + j)];
            even[0] += dl_number<T>(passed.middle[k], j);
            even[1] += dl_number<T>(passed.right[k], j) + dl_number<T>(next, j);
        }
    }
}

/* Row 2 r is in windows r alone, row 2 r + 1 also in windows r + 1: those below the strip are seen as well. The last
 * thread of a warp works for its neighbour only and is the first of the next warp again; threads behind the last do as
 * it does, and write nothing. */
enum { dl_halving_lanes = dl_warp - 1, dl_halving_threads = dl_block / dl_warp * dl_halving_lanes };
template <class T>
__global__ void __launch_bounds__(dl_block, 4) dl_halve_back(dl_halving h, const T *x, const T *dy, T *dx)
{
    using sums = dl_pack<float, dl_length<T>>;
    const uint32_t lane = threadIdx.x % dl_warp;
    const uint32_t thread = blockIdx.x * dl_halving_threads + threadIdx.x / dl_warp * dl_halving_lanes + lane;
    const bool is_writing = lane < dl_halving_lanes && thread < h.threads;
    const dl_strip<T> strip(h, min(thread, h.threads - 1), dl_halving_back_rows);
    const auto write = [&](int row, const sums &sum) {
        if (is_writing && row < h.height) *(dl_pack<T, dl_length<T>> *)(dx + strip.at(row)) = dl_rounded<T>(sum);
    };
    dl_sides row[3], passed[3];
    sums odd = {};
    row[2] = dl_sides_by_warp(strip, dl_read_row(strip, x, 2 * strip.first - 1));
    dl_window_row next = dl_read_windows(strip, x, dy, strip.first);
    for (int r = strip.first;; r++) {
        const dl_window_row w = next;
        const uint32_t slope[2] = {w.slope.x, w.slope.y};
        if (r < strip.last) next = dl_read_windows(strip, x, dy, r + 1);
        row[0] = row[2], row[1] = dl_sides_by_warp(strip, w.middle), row[2] = dl_sides_by_warp(strip, w.bottom);
        dl_pass_back<T>(row, slope, passed);
        dl_add_passed(strip, &odd, passed[0]);
        if (r > strip.first && r <= strip.last) write(2 * r - 1, odd);
        if (r == strip.first + dl_halving_back_rows) return;
        sums even = {};
        odd = {};
        dl_add_passed(strip, &even, passed[1]);
        dl_add_passed(strip, &odd, passed[2]);
        if (r < strip.last) write(2 * r, even);
    }
}

#endif
