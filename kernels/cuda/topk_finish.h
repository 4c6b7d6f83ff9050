/* topk_finish.h - the second part of topk.cu: of what was collected, the k largest. */
#ifndef DL_KERNELS_CUDA_TOPK_FINISH_H
#define DL_KERNELS_CUDA_TOPK_FINISH_H

#include <cooperative_groups.h>

#include "kernels/cuda/topk.h"

namespace dl_topk
{

/* What is searched: what was collected if the k-th is among it, else all. */
template <class T> struct source {
    const search &s;
    const T *x;
    bool is_all, is_settled; /* all are searched; the first k of what was collected are the result */
    int64_t n, n_above;
    __device__ source(const search &search, const T *data)
        : s(search), x(data), n_above((unsigned)search.state->n_collected)
    {
        const int64_t n_found = n_above + min((int64_t)(s.state->n_collected >> 32), s.k);
        is_all = n_found < s.k || n_above > s.most;
        is_settled = !is_all && n_above <= s.k;
        n = is_all ? s.n : n_above <= s.k ? n_found : n_above;
    }
    __device__ found get(int64_t i) const
    {
        if (is_all) return {dl_float_of(x[i]), (int32_t)i};
        return i < n_above ? s.above[i] : s.level[i - n_above];
    }
};

/* What the threads of the block before this one have, added up, and what all have. */
__device__ sums sums_of(unsigned mine)
{
    __shared__ unsigned of_warps[warps];
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    const unsigned sum = sum_up_to(mine, lane);
    unsigned before = 0, all = 0;
    __syncthreads(); /* those of the time before have been read */
    if (lane == dl_warp - 1) of_warps[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warps; w++) all += of_warps[w], before += w < warp ? of_warps[w] : 0;
    __syncthreads(); /* nothing else is written yet: the compiler may have put it in the same place */
    return {before + sum - mine, all};
}

/* The bin in which `wanted` numbers from the top on are reached, and how many are wanted of it; of `n` numbers, those
 * that are in no bin are above all. All threads of the block take part. */
struct rank {
    unsigned bin, wanted, here; /* how many there are in it; 0: it is none of these bins */
};
template <int N> __device__ rank rank_of(const unsigned *counts, unsigned n, unsigned wanted)
{
    __shared__ rank chosen;
    enum { each = N / dl_block, last = N - each };
    dl_pack<unsigned, each> here = ((const dl_pack<unsigned, each> *)(counts + last))[-(int)threadIdx.x];
    unsigned mine = 0;
    for (unsigned c : here.v) mine += c;
    const sums counted = sums_of(mine);
    if (n - counted.all >= wanted) return {N, wanted, 0};
    unsigned above = n - counted.all + counted.before;
    for (int i = each - 1; i >= 0; above += here.v[i], i--) /* from the top down */
        if (above < wanted && above + here.v[i] >= wanted)
            chosen = {last - threadIdx.x * each + i, wanted - above, here.v[i]};
    __syncthreads();
    const rank r = chosen;
    __syncthreads();
    return r;
}

/* Where results go: those above the k-th key or its bin first, then those that are equal. */
template <class T> struct results {
    const search &s;
    T *value;
    int32_t *index;
    __device__ __forceinline__ void put(int64_t at, const found &f) const
    {
        if (at < s.k) value[at] = dl_as<T>(f.value), index[at] = f.index;
    }
};

/* Of what `from` has, everything for which side_of says that it is above, and of what is equal as many as are wanted,
 * or all into the list of the level, if that is `kept` to be sorted out. */
enum side { below, equal, above_it };
enum { each_time = 4 };
template <class T, class F>
__device__ void share_out(const source<T> &from, const results<T> &to, unsigned wanted, bool is_kept, F side_of)
{
    __shared__ unsigned base[2];
    const search &s = from.s;
    const int64_t together = (int64_t)each_time * dl_block;
    for (int64_t first = blockIdx.x * together; first < from.n; first += gridDim.x * together) {
        found f[each_time];
        enum side side[each_time];
        unsigned mine = 0; /* those that are equal in the upper half; there are at most 1024 */
        for (int u = 0; u < each_time; u++) {
            const int64_t i = first + u * dl_block + threadIdx.x;
            f[u] = i < from.n ? from.get(i) : found{0, 0};
            side[u] = i < from.n ? side_of(f[u].value) : below;
            mine += side[u] == above_it ? 1 : side[u] == equal ? 1 << 16 : 0;
        }
        const sums n = sums_of(mine);
        if (threadIdx.x == 0) {
            base[0] = atomicAdd(&s.state->n_taken, n.all & 0xffff);
            base[1] = n.all >> 16 ? atomicAdd(&s.state->n_equal, n.all >> 16) : 0;
        }
        __syncthreads();
        unsigned taken = base[0] + (n.before & 0xffff), equals = base[1] + (n.before >> 16);
        for (int u = 0; u < each_time; u++) {
            if (side[u] == above_it) to.put(taken++, f[u]);
            if (side[u] != equal) continue;
            if (is_kept)
                s.level[equals++] = f[u];
            else
                to.put(s.k - wanted + equals++, f[u]);
        }
    }
}

/* The last block to come here: of the `n` in the list of the level, which share a bin, those `wanted` that are largest;
 * found bit by bit. */
enum { most_sorted = 16 * dl_block };
template <class T> __device__ void sort_out(const search &s, const results<T> &to, unsigned n, unsigned wanted)
{
    __shared__ uint32_t keys[most_sorted];
    const auto count_of = [&](auto is_counted) {
        unsigned mine = 0;
        for (unsigned i = threadIdx.x; i < n; i += dl_block) mine += is_counted(keys[i]);
        return sums_of(mine);
    };
    const struct scale scale = s.state->scale;
    const uint32_t in_bin = (1u << scale.bin_bits) - 1;
    for (unsigned i = threadIdx.x; i < n; i += dl_block) keys[i] = scale.distance_of(s.level[i].value) & in_bin;
    uint32_t least = 0;
    for (uint32_t bit = (in_bin + 1) / 2; bit; bit /= 2)
        if (count_of([=](uint32_t key) { return key >= (least | bit); }).all >= wanted) least |= bit;
    const sums larger = count_of([=](uint32_t key) { return key > least; });
    const sums same = count_of([=](uint32_t key) { return key == least; });
    int64_t taken = s.k - wanted + larger.before, equals = s.k - wanted + larger.all + same.before;
    for (unsigned i = threadIdx.x; i < n; i += dl_block)
        if (keys[i] > least)
            to.put(taken++, s.level[i]);
        else if (keys[i] == least)
            to.put(equals++, s.level[i]);
}

__device__ bool is_last_block(struct state *state)
{
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&state->n_done, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return is_last;
}

/* By the bins. */
template <class T> __device__ void share_out_by_bins(const source<T> &from, const results<T> &to, const rank &r)
{
    const search &s = from.s;
    const bool is_kept = !are_bins_exact<T>;
    const struct scale scale = s.state->scale;
    share_out(from, to, r.wanted, is_kept, [&](float x) {
        const unsigned bin = scale.bin_of(x);
        return bin > r.bin ? above_it : bin == r.bin ? equal : below;
    });
    if (is_kept && is_last_block(s.state)) sort_out(s, to, r.here, r.wanted);
}

/* The bits of the k-th key that are known after some digits, and how many of those that share them are wanted. */
struct prefix {
    uint32_t bits;
    int known;
    unsigned wanted;
};

/* Counts the next digit of the keys that begin as the k-th does. Equal digits of a warp are counted together. */
template <class T> __device__ void count_digit(const source<T> &from, const prefix &p, unsigned *total)
{
    __shared__ unsigned counts[digit_bins];
    const int bits = p.known ? digit_bits - 1 : digit_bits, shift = key_bits - p.known - bits;
    const uint32_t none = digit_bins;
    for (int i = threadIdx.x; i < digit_bins; i += dl_block) counts[i] = 0;
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * dl_block; first < from.n; first += (int64_t)gridDim.x * dl_block) {
        const int64_t i = first + threadIdx.x;
        uint32_t bin = none;
        if (i < from.n) {
            const uint32_t key = key_of(from.get(i).value) >> shift;
            if (!p.known || key >> bits == p.bits) bin = key & ((1u << bits) - 1);
        }
        const unsigned same = __match_any_sync(0xffffffff, bin);
        if (bin != none && (int)threadIdx.x % dl_warp == __ffs((int)same) - 1)
            atomicAdd(&counts[bin], (unsigned)__popc(same));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < digit_bins; i += dl_block)
        if (counts[i]) atomicAdd(&total[i], counts[i]);
}

/* Digit by digit, of which all blocks must have counted one before the next. */
template <class T> __device__ void share_out_by_digits(const source<T> &from, const results<T> &to)
{
    prefix p = {0, 0, (unsigned)from.s.k};
    unsigned n = (unsigned)from.n;
    for (int d = 0; d < digits_of<T>; d++) {
        unsigned *const total = from.s.state->digits[d];
        count_digit(from, p, total);
        cooperative_groups::this_grid().sync();
        const rank r = d ? rank_of<digit_bins / 2>(total, n, p.wanted) : rank_of<digit_bins>(total, n, p.wanted);
        const int bits = d ? digit_bits - 1 : digit_bits;
        p = {p.bits << bits | r.bin, p.known + bits, r.wanted};
        n = r.here;
    }
    share_out(from, to, p.wanted, false, [=](float x) {
        const uint32_t key = key_of(x) >> (key_bits - p.known);
        return key > p.bits ? above_it : key == p.bits ? equal : below;
    });
}

template <class T> __global__ void __launch_bounds__(dl_block) finish(search s, const T *x, T *value, int32_t *index)
{
    const source<T> from(s, x);
    const results<T> to = {s, value, index};
    if (from.is_settled) {
        for (int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x; i < s.k; i += (int64_t)gridDim.x * dl_block)
            to.put(i, from.get(i));
        return;
    }
    if (!from.is_all) {
        const rank r = rank_of<n_bins>(s.state->bins, (unsigned)from.n, (unsigned)s.k);
        if (r.here && (are_bins_exact<T> || r.here <= most_sorted)) {
            share_out_by_bins(from, to, r);
            return;
        }
    }
    share_out_by_digits(from, to);
}

} // namespace dl_topk

#endif
