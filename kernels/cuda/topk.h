/* topk.h - what the two parts of topk.cu share. */
#ifndef DL_KERNELS_CUDA_TOPK_H
#define DL_KERNELS_CUDA_TOPK_H

#include "kernels/cuda/words.h"

namespace dl_topk
{

enum { count, k }; /* of the problem */

/* Of the last two digits 10 bits. */
enum { digit_bits = 11, digit_bins = 1 << digit_bits, n_digits = 3, key_bits = 31 };

/* Digits of keys that are not zero in all numbers of a type: of 16 bits, keys have 8 of the exponent and at most 10. */
template <class T> constexpr int digits_of = sizeof(T) < sizeof(float) ? 2 : n_digits;

/* Distances from the cut are counted in bins of 2^n keys, which numbers of 16 bits never share. */
enum { n_bins = 4096, most_bin_bits = 13 };
template <class T> constexpr bool are_bins_exact = sizeof(T) < sizeof(float);

/* Magnitudes compare as their bits do. */
__device__ __forceinline__ uint32_t key_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }

struct found {
    float value;
    int32_t index;
};

struct scale {
    uint32_t cut;
    int bin_bits;
    /* Of a number above the cut: how far above it, and the bin; those beyond the last are not counted. */
    __device__ __forceinline__ uint32_t distance_of(float x) const { return key_of(x) - cut - 1; }
    __device__ __forceinline__ unsigned bin_of(float x) const
    {
        return min(distance_of(x) >> bin_bits, (unsigned)n_bins);
    }
};

struct state { /* in the workspace, before what was collected; choose_cut begins it with zeros */
    struct scale scale;
    unsigned long long n_collected;    /* above the cut, and in the upper half those that are equal to it */
    unsigned n_taken, n_equal, n_done; /* results; those in the bin, or with the key, of the k-th; blocks */
    alignas(dl_pack_bytes) unsigned bins[n_bins];
    alignas(dl_pack_bytes) unsigned digits[n_digits][digit_bins];
};

struct search {
    struct state *state;
    struct found *above, *level;
    unsigned most; /* above the cut that can be held; of the others k */
    int64_t n, k;
};

/* What the threads of the warp have, added up from the first to this one, which is at `lane`. */
__device__ __forceinline__ unsigned sum_up_to(unsigned mine, int lane)
{
    unsigned sum = mine;
    for (int step = 1; step < dl_warp; step *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += left;
    }
    return sum;
}

/* What the threads before this one have, added up, and what all have. */
struct sums {
    unsigned before, all;
};

} // namespace dl_topk

#endif
