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
    unsigned blocks(void) const { return (unsigned)dl_ceil_div(threads, dl_block); }
};

/* What a thread does: the windows [first, last) of a plane's rows, at a pack of columns. */
template <class T> struct dl_strip {
    static constexpr int length = dl_length<T>, windows = length / 2;
    const dl_halving &h;
    int64_t plane;
    int pack, first, last;
    __device__ __forceinline__ dl_strip(const dl_halving &halving, uint32_t thread, int each) : h(halving)
    {
        const uint32_t strip = h.packs.quotient(thread), of = h.strips.quotient(strip);
        plane = of, pack = (int)(thread - strip * h.packs.by);
        first = (int)(strip - of * h.strips.by) * each, last = min(first + each, h.rows);
    }
    /* Where the thread's part of a row of the plane, and of its windows, begins. */
    __device__ __forceinline__ int64_t at(int row) const { return (plane * h.height + row) * h.width + pack * length; }
    __device__ __forceinline__ int64_t window_at(int row) const
    {
        return (plane * h.rows + row) * h.columns + pack * windows;
    }
};

/* A row at a thread's columns as it is read: with the number before it, and the two behind it. */
template <class T> struct dl_seen {
    uint4 word;
    uint32_t before; /* in the last place */
    uint32_t behind[2];
};

/* The same by windows; the third word has one that is the right neighbour's. */
struct dl_sides {
    uint32_t left[3], middle[3], right[3];
};

template <class T> __device__ __forceinline__ dl_sides dl_sides_of(const dl_seen<T> &r)
{
    dl_sides s;
    s.middle[0] = dl_evens<T>(r.word.x, r.word.y), s.right[0] = dl_odds<T>(r.word.x, r.word.y);
    s.middle[1] = dl_evens<T>(r.word.z, r.word.w), s.right[1] = dl_odds<T>(r.word.z, r.word.w);
    s.middle[2] = dl_evens<T>(r.behind[0], r.behind[1]), s.right[2] = dl_odds<T>(r.behind[0], r.behind[1]);
    s.left[0] = dl_one_before<T>(r.before, s.right[0]);
    for (int k = 1; k < 3; k++) s.left[k] = dl_one_before<T>(s.right[k - 1], s.right[k]);
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
    dl_seen<T> row[n_rows];
#pragma unroll
    for (int r = 0; r < n_rows; r++) {
        const T *const from = x + strip.at(min(max(2 * strip.first - 1 + r, 0), h.height - 1));
        row[r].word = *(const uint4 *)from;
        row[r].before = dl_in_last_place(from[strip.pack ? -1 : 0]);
    }
#pragma unroll
    for (int r = 0; r < dl_halving_rows; r++) {
        dl_seen<T> most = row[2 * r];
        for (int u = 1; u < 3; u++) {
            const dl_seen<T> &other = row[2 * r + u];
            most.word.x = dl_larger<T>(most.word.x, other.word.x),
            most.word.y = dl_larger<T>(most.word.y, other.word.y);
            most.word.z = dl_larger<T>(most.word.z, other.word.z),
            most.word.w = dl_larger<T>(most.word.w, other.word.w);
            most.before = dl_larger<T>(most.before, other.before);
        }
        most.behind[0] = most.behind[1] = 0;
        const dl_sides s = dl_sides_of(most);
        uint32_t out[2];
        for (int k = 0; k < 2; k++) out[k] = dl_larger<T>(dl_larger<T>(s.left[k], s.middle[k]), s.right[k]);
        if (strip.first + r < strip.last) *(uint2 *)(y + strip.window_at(strip.first + r)) = make_uint2(out[0], out[1]);
    }
}

/* A row of windows: its two lower rows, and what they pass back. */
template <class T> struct dl_window_row {
    dl_seen<T> middle, bottom;
    uint32_t slope[3];
};

/* Numbers outside of the plane are never the largest, and windows outside pass nothing. */
template <class T> __device__ __forceinline__ dl_seen<T> dl_see(const dl_strip<T> &strip, const T *x, int row)
{
    const uint32_t lowest = dl_lowest<T>;
    dl_seen<T> r = {{lowest, lowest, lowest, lowest}, lowest, {lowest, lowest}};
    if (row < 0 || row >= strip.h.height) return r;
    const T *const from = x + strip.at(row);
    r.word = *(const uint4 *)from;
    if (strip.pack) r.before = dl_in_last_place(from[-1]);
    if (strip.pack + 1 < (int)strip.h.packs.by) dl_two_words<T>(from + dl_length<T>, r.behind);
    return r;
}

template <class T>
__device__ __forceinline__ dl_window_row<T> dl_see_windows(const dl_strip<T> &strip, const T *x, const T *dy, int row)
{
    const T *const slopes = dy + strip.window_at(row);
    const uint2 mine = *(const uint2 *)slopes;
    dl_window_row<T> w = {dl_see(strip, x, 2 * row), dl_see(strip, x, 2 * row + 1), {mine.x, mine.y, 0}};
    if (strip.pack + 1 < (int)strip.h.packs.by) w.slope[2] = dl_in_first_place(slopes[dl_strip<T>::windows]);
    return w;
}

/* What each of three rows gets: a slope goes to the first of a window's numbers that is the largest. */
template <class T>
__device__ __forceinline__ void dl_pass_back(const dl_sides *row, const uint32_t *slope, dl_sides *passed)
{
#pragma unroll
    for (int k = 0; k < 3; k++) {
        uint32_t most = dl_lowest<T>, taken = 0;
        for (int r = 0; r < 3; r++)
            most = dl_larger<T>(dl_larger<T>(most, row[r].left[k]), dl_larger<T>(row[r].middle[k], row[r].right[k]));
        const auto pass = [&](uint32_t number) {
            const uint32_t is_most = dl_equal<T>(number, most), to = is_most & ~taken & slope[k];
            taken |= is_most;
            return to;
        };
        for (int r = 0; r < 3; r++) {
            passed[r].left[k] = pass(row[r].left[k]);
            passed[r].middle[k] = pass(row[r].middle[k]);
            passed[r].right[k] = pass(row[r].right[k]);
        }
    }
}

/* Even columns are in the middle of a window; odd ones are on the right of one and on the left of the next. */
template <class T>
__device__ __forceinline__ void dl_add_passed(dl_pack<float, dl_length<T>> *sum, const dl_sides &passed)
{
    enum { numbers = (int)(sizeof(uint32_t) / sizeof(T)) };
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const uint32_t next = dl_one_behind<T>(passed.left[k], passed.left[k + 1]);
        for (int j = 0; j < numbers; j++) {
            float *const even = &sum->v[2 * (k * numbers + j)];
            even[0] += dl_number<T>(passed.middle[k], j);
            even[1] += dl_number<T>(passed.right[k], j) + dl_number<T>(next, j);
        }
    }
}

/* Row 2 r is in windows r alone, row 2 r + 1 also in windows r + 1: those below the strip are seen as well. */
template <class T>
__global__ void __launch_bounds__(dl_block, 3) dl_halve_back(dl_halving h, const T *x, const T *dy, T *dx)
{
    using sums = dl_pack<float, dl_length<T>>;
    const uint32_t thread = blockIdx.x * dl_block + threadIdx.x;
    if (thread >= h.threads) return;
    const dl_strip<T> strip(h, thread, dl_halving_back_rows);
    const int end = min(strip.last + 1, h.rows);
    dl_sides row[3], passed[3];
    sums odd = {};
    row[2] = dl_sides_of(dl_see(strip, x, 2 * strip.first - 1));
    dl_window_row<T> next = dl_see_windows(strip, x, dy, strip.first);
    for (int r = strip.first; r < end; r++) {
        const dl_window_row<T> w = next;
        if (r + 1 < end) next = dl_see_windows(strip, x, dy, r + 1);
        row[0] = row[2], row[1] = dl_sides_of(w.middle), row[2] = dl_sides_of(w.bottom);
        dl_pass_back<T>(row, w.slope, passed);
        dl_add_passed<T>(&odd, passed[0]);
        if (r > strip.first) *(dl_pack<T, dl_length<T>> *)(dx + strip.at(2 * r - 1)) = dl_rounded<T>(odd);
        if (r == strip.last) return;
        sums even = {};
        odd = {};
        dl_add_passed<T>(&even, passed[1]);
        dl_add_passed<T>(&odd, passed[2]);
        *(dl_pack<T, dl_length<T>> *)(dx + strip.at(2 * r)) = dl_rounded<T>(even);
    }
    if (2 * strip.last - 1 < h.height)
        *(dl_pack<T, dl_length<T>> *)(dx + strip.at(2 * strip.last - 1)) = dl_rounded<T>(odd);
}

#endif
