/* words.h - 32 bits that hold one number or two, and what is done with all of them by one instruction. Words follow
 * each other as the numbers do; the first place of a word is in its lowest bits. */
#ifndef DL_KERNELS_CUDA_WORDS_H
#define DL_KERNELS_CUDA_WORDS_H

#include "kernels/cuda/packs.h"

template <class T> constexpr bool dl_is_one_word = sizeof(T) == sizeof(uint32_t);

/* Minus infinity in all places. */
template <class T> constexpr uint32_t dl_lowest = 0xff800000u;
template <> constexpr uint32_t dl_lowest<__nv_bfloat16> = 0xff80ff80u;
template <> constexpr uint32_t dl_lowest<__half> = 0xfc00fc00u;

template <class T> __device__ __forceinline__ uint32_t dl_larger(uint32_t a, uint32_t b)
{
    using two = typename dl_two_of<T>::type;
    if constexpr (dl_is_one_word<T>) {
        return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
    } else {
        const two most = __hmax2(*(const two *)&a, *(const two *)&b);
        return *(const uint32_t *)&most;
    }
}

/* All bits of a number that is the same in both. */
template <class T> __device__ __forceinline__ uint32_t dl_equal(uint32_t a, uint32_t b)
{
    using two = typename dl_two_of<T>::type;
    if constexpr (dl_is_one_word<T>)
        return __uint_as_float(a) == __uint_as_float(b) ? ~0u : 0;
    else
        return __heq2_mask(*(const two *)&a, *(const two *)&b);
}

/* Of the numbers of a and then b: those with even places, and those with odd ones. */
template <class T> __device__ __forceinline__ uint32_t dl_evens(uint32_t a, uint32_t b)
{
    return dl_is_one_word<T> ? a : __byte_perm(a, b, 0x5410);
}
template <class T> __device__ __forceinline__ uint32_t dl_odds(uint32_t a, uint32_t b)
{
    return dl_is_one_word<T> ? b : __byte_perm(a, b, 0x7632);
}

/* One place before those of b, and one behind those of a, where b follows a. */
template <class T> __device__ __forceinline__ uint32_t dl_one_before(uint32_t a, uint32_t b)
{
    return dl_is_one_word<T> ? a : __byte_perm(a, b, 0x5432);
}
template <class T> __device__ __forceinline__ uint32_t dl_one_behind(uint32_t a, uint32_t b)
{
    return dl_is_one_word<T> ? b : __byte_perm(a, b, 0x5432);
}

/* A number alone in a word, zero elsewhere; and the number of place j. */
template <class T> __device__ __forceinline__ uint32_t dl_in_first_place(T x)
{
    uint32_t word = 0;
    *(T *)&word = x;
    return word;
}
template <class T> __device__ __forceinline__ uint32_t dl_in_last_place(T x)
{
    return dl_in_first_place(x) << (8 * (sizeof(uint32_t) - sizeof(T)));
}
template <class T> __device__ __forceinline__ float dl_number(uint32_t word, int j)
{
    return dl_float_of(((const T *)&word)[j]);
}

#endif
