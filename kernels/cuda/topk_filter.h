/* topk_filter.h - the first part of topk.cu: what may be among the k largest is collected. */
#ifndef DL_KERNELS_CUDA_TOPK_FILTER_H
#define DL_KERNELS_CUDA_TOPK_FILTER_H

#include <type_traits>

#include "kernels/cuda/topk.h"

namespace dl_topk
{

/* A number by its bits, less the sign: those compare as magnitudes do. */
template <class T> struct raw {
    using type = typename std::conditional<sizeof(T) == sizeof(uint32_t), uint32_t, uint16_t>::type;
    static constexpr int bits = 8 * (int)sizeof(T) - 1;
    static __device__ __forceinline__ uint32_t of(T x) { return *(const type *)&x & ((1u << bits) - 1); }
    static __device__ __forceinline__ T number(uint32_t r)
    {
        const type t = (type)r;
        return *(const T *)&t;
    }
};

/* One block: each thread takes the largest number of its share of a sample, packs from all over. The cut is what so
 * many of these reach as would, of the sample, about k of all and a little more. The k-th is likely to lie below what
 * half as many reach: so far half of the bins go. */
enum { sample_threads = 1024, most_packs = 8 /* of a thread */, together = 4 /* beside each other */ };
struct sampling {
    int each, rank; /* numbers of a thread; threads that are to be above the cut */
    sampling(const int64_t *d, int length)
    {
        const double deviations = 4; /* of the number of samples above: one in 10^4 misleads */
        const double of_one = (double)d[k] / (double)d[count] * sample_threads, wanted = sample_threads / 4;
        each = (int)fmax(1, fmin(most_packs * length, wanted / of_one));
        rank = (int)ceil(of_one * each + deviations * sqrt(of_one * each)) + 1;
    }
};

template <class T> __global__ void __launch_bounds__(sample_threads) choose_cut(search s, const T *x, sampling sample)
{
    const int each = s.n < together * dl_length<T> ? 0 : sample.each,
              n_packs = (each + dl_length<T> - 1) / dl_length<T>;
    const double step = (double)(s.n / dl_length<T> / together) / (double)(n_packs * sample_threads / together);
    const auto place_of = [=](int i) { return (int64_t)(i / together * step) * together + i % together; };
    dl_pack<T, dl_length<T>> read[most_packs];
    uint32_t most = 0;
#pragma unroll
    for (int u = 0; u < most_packs; u++)
        if (u < n_packs)
            read[u] = ((const dl_pack<T, dl_length<T>> *)x)[place_of(u * sample_threads + (int)threadIdx.x)];
    for (int i = threadIdx.x; i < (int)(sizeof *s.state / sizeof(unsigned)); i += sample_threads)
        ((unsigned *)s.state)[i] = 0;
#pragma unroll
    for (int u = 0; u < most_packs; u++)
        for (int j = 0; j < dl_length<T>; j++)
            if (u * dl_length<T> + j < each) most = max(most, raw<T>::of(read[u].v[j]));
    /* What so many have, as a key. */
    const auto reached_by = [=](int threads) {
        uint32_t cut = 0;
        for (int i = raw<T>::bits - 1; i >= 0; i--)
            if (__syncthreads_count(most >= (cut | 1u << i)) >= threads) cut |= 1u << i;
        return key_of(dl_float_of(raw<T>::number(cut)));
    };
    scale chosen = {reached_by(sample.rank), 0};
    const uint32_t far = reached_by(sample.rank / 2) - chosen.cut;
    while (chosen.bin_bits < most_bin_bits && far >> chosen.bin_bits >= n_bins / 2) chosen.bin_bits++;
    if (threadIdx.x == 0) s.state->scale = chosen;
}

/* Whether a number of a pack is not below `least` in magnitude. */
template <class T> __device__ __forceinline__ bool reaches(const dl_pack<T, dl_length<T>> &p, T least)
{
    using two = typename dl_two_of<T>::type;
    if constexpr (dl_is_one_word<T>) {
        return fmaxf(fmaxf(fabsf(p.v[0]), fabsf(p.v[1])), fmaxf(fabsf(p.v[2]), fabsf(p.v[3]))) >= least;
    } else {
        const two *const v = (const two *)p.v;
        const two most = __hmax2(__hmax2(__habs2(v[0]), __habs2(v[1])), __hmax2(__habs2(v[2]), __habs2(v[3])));
        two all;
        all.x = all.y = least;
        return !__hblt2(most, all);
    }
}

/* A warp takes chunks that are as far apart as there are warps, and reads the next while it looks at one. Few packs
 * have a number that is not below the cut: one comparison tells, and they are put on a list. When there are many,
 * and at the end, all threads look which numbers of its packs it was: seldom, because each time they wait to be told
 * where to put them. When k that are equal to the cut have been found, more of those are not looked for. */
enum { packs_each = 8, filter_blocks = 4 /* of a multiprocessor */, warps = dl_block / dl_warp };
enum { chunk_packs = packs_each * dl_warp, part_packs = packs_each / 2 /* after which the list is looked at */ };
enum { many_listed = 2 * dl_warp, most_listed = many_listed + part_packs * dl_warp };
enum { looked_at = 4 /* packs of a thread at a time: a word has a bit for each number */ };

template <class T> struct waiting {
    dl_pack<T, dl_length<T>> pack[most_listed];
    uint32_t number[most_listed];
};

/* How many of all threads of the warp before this one have, and how many there are in all: of two kinds at a time, the
 * second in the upper half. */
__device__ __forceinline__ sums sums_of_warp(unsigned mine)
{
    const unsigned sum = sum_up_to(mine, (int)threadIdx.x % dl_warp);
    return {sum - mine, __shfl_sync(0xffffffff, sum, dl_warp - 1)};
}

template <class T> struct filtering {
    using pack = dl_pack<T, dl_length<T>>;
    const search &s;
    const T *x;
    waiting<T> &list; /* of the warp */
    unsigned *bins;   /* of the block */
    struct scale scale;
    uint32_t at_cut;
    unsigned n_listed;
    bool is_enough; /* that is equal to the cut has been found */
    __device__ __forceinline__ int64_t pack_of(int64_t c, int u) const
    {
        return c * chunk_packs + u * dl_warp + threadIdx.x % dl_warp;
    }
    __device__ __forceinline__ void take_chunk(int64_t c)
    {
        const bool is_whole = (c + 1) * chunk_packs * dl_length<T> <= s.n;
        pack read[packs_each] = {};
        for (int u = 0; u < packs_each; u++)
            if (is_whole)
                read[u] = ((const pack *)x)[pack_of(c, u)];
            else if (pack_of(c, u) * dl_length<T> < s.n)
                read[u] = dl_read<dl_length<T>>(x, pack_of(c, u), s.n);
        for (int part = 0; part < packs_each; part += part_packs) {
            const T least = raw<T>::number(at_cut + is_enough);
            for (int u = part; u < part + part_packs; u++)
                put_on_list(reaches(read[u], least), read[u], (uint32_t)pack_of(c, u));
            if (n_listed > many_listed) work_off_list();
        }
    }
    __device__ __forceinline__ void put_on_list(bool is_wanted, const pack &p, uint32_t number)
    {
        const unsigned who = __ballot_sync(0xffffffff, is_wanted), before = (1u << threadIdx.x % dl_warp) - 1;
        if (!who) return;
        if (is_wanted) {
            const unsigned place = n_listed + __popc(who & before);
            list.pack[place] = p;
            list.number[place] = number;
        }
        n_listed += __popc(who);
    }
    __device__ void work_off_list(void)
    {
        __syncwarp();
        for (unsigned first = 0; first < n_listed; first += looked_at * dl_warp) {
            unsigned above = 0, level = 0; /* a bit for each number */
            for (int i = 0; i < looked_at * dl_length<T>; i += dl_length<T>) {
                const unsigned place = place_of(first, i);
                if (place >= n_listed) continue;
                const pack p = list.pack[place];
                for (int j = 0; j < dl_length<T>; j++) {
                    const bool is_one = (int64_t)list.number[place] * dl_length<T> + j < s.n;
                    above |= (is_one && raw<T>::of(p.v[j]) > at_cut) << (i + j);
                    level |= (is_one && raw<T>::of(p.v[j]) == at_cut) << (i + j);
                }
            }
            collect(first, above, level);
        }
        __syncwarp();
        n_listed = 0;
    }
    /* Of the packs that are looked at together, where the pack of a number is, and the number itself. */
    __device__ __forceinline__ unsigned place_of(unsigned first, int i) const
    {
        return first + i / dl_length<T> * dl_warp + threadIdx.x % dl_warp;
    }
    __device__ __forceinline__ found found_at(unsigned place, int i) const
    {
        const int j = i % dl_length<T>;
        return {dl_float_of(list.pack[place].v[j]), (int32_t)(list.number[place] * dl_length<T> + j)};
    }
    __device__ __forceinline__ void collect(unsigned first, unsigned above, unsigned level)
    {
        const sums n = sums_of_warp(__popc(above) | __popc(level) << 16);
        unsigned long long before = (unsigned long long)(n.all >> 16) << 32 | (n.all & 0xffff);
        if (threadIdx.x % dl_warp == 0) before = atomicAdd(&s.state->n_collected, before);
        before = __shfl_sync(0xffffffff, before, 0);
        unsigned to_above = (unsigned)before + (n.before & 0xffff),
                 to_level = (unsigned)(before >> 32) + (n.before >> 16);
        is_enough = is_enough || before >> 32 >= s.k;
        for (; above; above &= above - 1) {
            const int i = __ffs((int)above) - 1;
            const found f = found_at(place_of(first, i), i);
            const unsigned bin = scale.bin_of(f.value);
            if (bin < n_bins) atomicAdd(&bins[bin], 1u);
            if (to_above < s.most) s.above[to_above] = f;
            to_above++;
        }
        for (; level && to_level < s.k; level &= level - 1) {
            const int i = __ffs((int)level) - 1;
            s.level[to_level++] = found_at(place_of(first, i), i);
        }
    }
};

template <class T> __global__ void __launch_bounds__(dl_block, filter_blocks) filter(search s, const T *x)
{
    __shared__ waiting<T> lists[warps];
    __shared__ unsigned counts[n_bins];
    const int warp = threadIdx.x / dl_warp;
    const struct scale scale = s.state->scale;
    filtering<T> f = {s, x, lists[warp], counts, scale, raw<T>::of(dl_as<T>(__uint_as_float(scale.cut)))};
    for (int i = threadIdx.x; i < n_bins; i += dl_block) counts[i] = 0;
    __syncthreads();
    for (int64_t c = (int64_t)blockIdx.x * warps + warp; c * chunk_packs * dl_length<T> < s.n; c += gridDim.x * warps)
        f.take_chunk(c);
    f.work_off_list();
    __syncthreads();
    for (int i = threadIdx.x; i < n_bins; i += dl_block)
        if (counts[i]) atomicAdd(&s.state->bins[i], counts[i]);
}

} // namespace dl_topk

#endif
