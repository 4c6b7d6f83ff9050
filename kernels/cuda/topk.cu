/* topk.cu - the k numbers of largest magnitude, read once.
 *
 * A sample tells where the k-th is likely to lie (`choose_cut`). All that is above the cut is collected, and of what is
 * equal to it as many as could be wanted, k (`filter`): numbers of few bits have many equals. If the k-th is one of
 * those, all above the cut and some of those are the result. Else it is found among what was collected digit by digit
 * (`count_digits`, radix selection) and everything above it taken (`emit`). If the sample misled, and there are too few
 * or too many to hold, the same kernels go over all numbers instead. */
#include <type_traits>

#include "kernels/cuda/words.h"

enum { count, k };
enum { digit_bits = 11, bins = 1 << digit_bits, n_digits = 3, key_bits = 31 }; /* the last two digits have 10 bits */

/* Digits of keys that are not zero in all numbers of a type: of 16 bits, keys have 8 of the exponent and at most 10. */
template <class T> constexpr int digits_of = sizeof(T) < sizeof(float) ? 2 : n_digits;

/* Magnitudes compare as their bits do. */
__device__ __forceinline__ uint32_t key_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }

struct found {
    float value;
    int32_t index;
};

struct state { /* in the workspace, before what was collected; choose_cut begins it with zeros */
    uint32_t cut;
    unsigned n_above, n_level; /* collected: above the cut, and equal to it */
    unsigned n_out, n_equal;   /* taken; of those equal to the k-th */
    unsigned digits[n_digits][bins];
};

struct search {
    struct state *state;
    struct found *above, *level;
    unsigned most; /* above the cut that can be held; of the others k */
    int64_t n, k;
};

/* What is searched: what was collected if the k-th is among it, else all. */
template <class T> struct source {
    const search &s;
    const T *x;
    bool is_all, is_settled; /* all are searched; the first k of what was collected are the result */
    int64_t n, n_above;
    __device__ source(const search &search, const T *data) : s(search), x(data), n_above(search.state->n_above)
    {
        const int64_t n_found = n_above + min((int64_t)s.state->n_level, s.k);
        is_all = n_found < s.k || n_above > s.most;
        is_settled = !is_all && n_above <= s.k;
        n = is_all ? s.n : n_found;
    }
    __device__ found get(int64_t i) const
    {
        if (is_all) return {dl_float_of(x[i]), (int32_t)i};
        return i < n_above ? s.above[i] : s.level[i - n_above];
    }
};

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
 * many of these reach as would, of the sample, about k of all and a little more. */
enum { sample_threads = 1024, most_packs = 8 /* of a thread */ };
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
    const int each = s.n < dl_length<T> ? 0 : sample.each, n_packs = (each + dl_length<T> - 1) / dl_length<T>;
    const double step = (double)(s.n / dl_length<T>) / (double)(n_packs * sample_threads);
    dl_pack<T, dl_length<T>> read[most_packs];
    uint32_t most = 0, cut = 0;
#pragma unroll
    for (int u = 0; u < most_packs; u++)
        if (u < n_packs)
            read[u] = ((const dl_pack<T, dl_length<T>> *)x)[(int64_t)((u * sample_threads + (int)threadIdx.x) * step)];
    for (int i = threadIdx.x; i < (int)(sizeof *s.state / sizeof(unsigned)); i += sample_threads)
        ((unsigned *)s.state)[i] = 0;
#pragma unroll
    for (int u = 0; u < most_packs; u++)
        for (int j = 0; j < dl_length<T>; j++)
            if (u * dl_length<T> + j < each) most = max(most, raw<T>::of(read[u].v[j]));
    for (int i = raw<T>::bits - 1; i >= 0; i--)
        if (__syncthreads_count(most >= (cut | 1u << i)) >= sample.rank) cut |= 1u << i;
    if (threadIdx.x == 0) s.state->cut = key_of(dl_float_of(raw<T>::number(cut)));
}

/* What a block collects, in shared memory first: one place for all would be waited for. */
enum { buffer = 1024 };
struct collection {
    found held[buffer];
    unsigned n, base;
    /* Where there is no more room it goes to the whole at once. */
    __device__ __forceinline__ void add(const found &f, unsigned *n_all, found *all, unsigned most)
    {
        const unsigned to = atomicAdd(&n, 1u);
        if (to < buffer) {
            held[to] = f;
            return;
        }
        const unsigned beyond = atomicAdd(n_all, 1u);
        if (beyond < most) all[beyond] = f;
    }
    /* By all threads of the block, after a barrier. */
    __device__ void hand_over(unsigned *n_all, found *all, unsigned most)
    {
        const unsigned n_held = min(n, (unsigned)buffer);
        if (threadIdx.x == 0 && n_held) base = atomicAdd(n_all, n_held);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < n_held; i += dl_block)
            if (base + i < most) all[base + i] = held[i];
    }
};

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

/* Few packs have a number that is not below the cut: one comparison tells. When k that are equal to it have been found,
 * by blocks before this one, more of those are not looked for. */
enum { packs_each = 16, packs_together = 4 };
template <class T> __global__ void __launch_bounds__(dl_block, 6) filter(search s, const T *x)
{
    __shared__ collection above, level;
    const uint32_t cut = s.state->cut;
    const bool is_enough = *(volatile unsigned *)&s.state->n_level >= s.k;
    const uint32_t least = raw<T>::of(dl_as<T>(__uint_as_float(cut))) + is_enough;
    const bool is_whole = (int64_t)(blockIdx.x + 1) * packs_each * dl_block * dl_length<T> <= s.n;
    if (threadIdx.x == 0) above.n = level.n = 0;
    __syncthreads();
    for (int u = 0; u < packs_each; u += packs_together) {
        dl_pack<T, dl_length<T>> read[packs_together] = {};
        const int64_t first = ((int64_t)blockIdx.x * packs_each + u) * dl_block + threadIdx.x;
        for (int v = 0; v < packs_together; v++) {
            const int64_t pack = first + v * dl_block;
            if (is_whole)
                read[v] = ((const dl_pack<T, dl_length<T>> *)x)[pack];
            else if (pack * dl_length<T> < s.n)
                read[v] = dl_read<dl_length<T>>(x, pack, s.n);
        }
        for (int v = 0; v < packs_together; v++) {
            if (!reaches(read[v], raw<T>::number(least))) continue;
            const int64_t at = (first + v * dl_block) * dl_length<T>;
            for (int j = 0; j < dl_length<T>; j++) {
                if (raw<T>::of(read[v].v[j]) < least || at + j >= s.n) continue;
                const found f = {dl_float_of(read[v].v[j]), (int32_t)(at + j)};
                if (key_of(f.value) > cut)
                    above.add(f, &s.state->n_above, s.above, s.most);
                else
                    level.add(f, &s.state->n_level, s.level, (unsigned)s.k);
            }
        }
    }
    __syncthreads();
    above.hand_over(&s.state->n_above, s.above, s.most);
    level.hand_over(&s.state->n_level, s.level, (unsigned)s.k);
}

/* The bits of the k-th key that are known after some digits, and how many of those that share them are wanted. */
struct prefix {
    uint32_t bits;
    int known;
    int64_t wanted;
};

__device__ int shift_after(int digits) { return key_bits - digit_bits - (digits - 1) * (digit_bits - 1); }

/* What the threads of the block before this one have, added up. */
__device__ unsigned sum_of_earlier(unsigned mine)
{
    __shared__ unsigned sums[dl_block / dl_warp];
    const int warp = threadIdx.x / dl_warp, lane = threadIdx.x % dl_warp;
    unsigned sum = mine;
    for (int step = 1; step < dl_warp; step *= 2) {
        const unsigned left = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += left;
    }
    if (lane == dl_warp - 1) sums[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) sum += sums[w];
    return sum - mine;
}

/* Of one digit: the bin in which `wanted` numbers from the top on are reached. All threads of the block take part. */
__device__ void take_digit(const unsigned *digits, int n_bins, prefix *p)
{
    __shared__ unsigned chosen, before;
    const int per_thread = n_bins / dl_block, from = n_bins - 1 - (int)threadIdx.x * per_thread; /* from the top down */
    unsigned mine = 0;
    for (int i = 0; i < per_thread; i++) mine += digits[from - i];
    unsigned above = sum_of_earlier(mine);
    for (int i = 0; i < per_thread; i++) {
        const unsigned here = digits[from - i];
        if (above < p->wanted && above + here >= p->wanted) chosen = (unsigned)(from - i), before = above;
        above += here;
    }
    __syncthreads();
    const int bits = p->known ? digit_bits - 1 : digit_bits;
    p->bits = p->bits << bits | chosen;
    p->known += bits;
    p->wanted -= before;
    __syncthreads();
}

__device__ prefix prefix_after(const search &s, int digits)
{
    prefix p = {0, 0, s.k};
    for (int d = 0; d < digits; d++) take_digit(s.state->digits[d], d ? bins / 2 : bins, &p);
    return p;
}

/* Counts the next digit of the keys that begin as the k-th does. Equal digits of a warp are counted together. */
template <class T> __global__ void __launch_bounds__(dl_block) count_digits(search s, const T *x, int digit)
{
    __shared__ unsigned counts[bins];
    const source<T> from(s, x);
    if (from.is_settled) return;
    for (int i = threadIdx.x; i < bins; i += dl_block) counts[i] = 0;
    const prefix p = prefix_after(s, digit);
    __syncthreads();
    const int shift = shift_after(digit + 1), bits = digit ? digit_bits - 1 : digit_bits;
    const uint32_t none = bins;
    for (int64_t first = (int64_t)blockIdx.x * dl_block; first < from.n; first += (int64_t)gridDim.x * dl_block) {
        const int64_t i = first + threadIdx.x;
        uint32_t bin = none;
        if (i < from.n) {
            const uint32_t key = key_of(from.get(i).value) >> shift;
            if (!digit || key >> bits == p.bits) bin = key & ((1u << bits) - 1);
        }
        const unsigned same = __match_any_sync(0xffffffff, bin);
        if (bin != none && (int)threadIdx.x % dl_warp == __ffs((int)same) - 1)
            atomicAdd(&counts[bin], (unsigned)__popc(same));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < bins; i += dl_block)
        if (counts[i]) atomicAdd(&s.state->digits[digit][i], counts[i]);
}

/* How many threads of the warp before this one say yes, and how many do in all. */
struct votes {
    unsigned before, all;
    __device__ votes(bool yes)
    {
        const unsigned who = __ballot_sync(0xffffffff, yes), lane = threadIdx.x % dl_warp;
        before = __popc(who & ((1u << lane) - 1)), all = __popc(who);
    }
};

/* The first of the warp reserves so many places; all learn where they begin. */
__device__ unsigned reserve(unsigned *counter, unsigned n)
{
    unsigned begin = 0;
    if (threadIdx.x % dl_warp == 0 && n) begin = atomicAdd(counter, n);
    return __shfl_sync(0xffffffff, begin, 0);
}

template <class T> __device__ void put(const search &s, int64_t at, const found &f, T *value, int32_t *index)
{
    if (at < s.k) value[at] = dl_as<T>(f.value), index[at] = f.index;
}

/* Everything above the k-th, and of those equal to it as many as are wanted. */
template <class T> __global__ void __launch_bounds__(dl_block) emit(search s, const T *x, T *value, int32_t *index)
{
    __shared__ unsigned n_taken, base;
    const source<T> from(s, x);
    const int64_t step = (int64_t)gridDim.x * dl_block;
    if (from.is_settled) {
        for (int64_t i = (int64_t)blockIdx.x * dl_block + threadIdx.x; i < s.k; i += step)
            put(s, i, from.get(i), value, index);
        return;
    }
    const prefix p = prefix_after(s, digits_of<T>);
    for (int64_t first = (int64_t)blockIdx.x * dl_block; first < from.n; first += step) {
        const int64_t i = first + threadIdx.x;
        const found f = i < from.n ? from.get(i) : found{0, 0};
        const uint32_t key = key_of(f.value) >> shift_after(digits_of<T>);
        const bool is_equal = i < from.n && key == p.bits;
        const votes equal(is_equal);
        const unsigned ticket = reserve(&s.state->n_equal, equal.all) + equal.before;
        const bool is_taken = i < from.n && (key > p.bits || (is_equal && ticket < p.wanted));
        const votes taken(is_taken);
        if (threadIdx.x == 0) n_taken = 0;
        __syncthreads();
        const unsigned at = reserve(&n_taken, taken.all) + taken.before;
        __syncthreads();
        if (threadIdx.x == 0 && n_taken) base = atomicAdd(&s.state->n_out, n_taken);
        __syncthreads();
        if (is_taken) put(s, base + at, f, value, index);
    }
}

/* A sample stands for many numbers where k is small. */
static unsigned most_above(const int64_t *d, enum dl_float f)
{
    const sampling sample(d, dl_pack_bytes / (int)dl_float_bytes(f));
    const int64_t stands_for = dl_ceil_div(d[count], sample_threads * sample.each);
    const int64_t wanted = 2 * d[k] + 4 * sample.rank * stands_for;
    return (unsigned)(wanted < d[count] ? wanted : d[count]);
}

static size_t workspace_bytes(const int64_t *d, enum dl_float f)
{
    return sizeof(struct state) + ((size_t)most_above(d, f) + (size_t)d[k]) * sizeof(struct found);
}

template <class T> static void topk_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const T *const x = (const T *)call->tensor[0];
    struct state *const state = (struct state *)call->workspace;
    struct found *const above = (struct found *)(state + 1);
    const unsigned most = most_above(d, call->precision);
    const search s = {state, above, above + most, most, d[count], d[k]};
    const unsigned blocks = 4 * (unsigned)dl_cuda.units;
    choose_cut<<<1, sample_threads, 0, dl_cuda.stream>>>(s, x, sampling(d, dl_length<T>));
    DL_LAUNCHED(choose_cut);
    const int64_t of_a_block = (int64_t)packs_each * dl_block * dl_length<T>;
    filter<<<(unsigned)dl_ceil_div(d[count], of_a_block), dl_block, 0, dl_cuda.stream>>>(s, x);
    DL_LAUNCHED(filter);
    for (int digit = 0; digit < digits_of<T>; digit++) {
        count_digits<<<blocks, dl_block, 0, dl_cuda.stream>>>(s, x, digit);
        DL_LAUNCHED(count_digits);
    }
    emit<<<blocks, dl_block, 0, dl_cuda.stream>>>(s, x, (T *)call->tensor[1], (int32_t *)call->tensor[2]);
    DL_LAUNCHED(emit);
}
DL_BY_PRECISION(topk)

/* Places are 32 bits wide. */
static bool can(const int64_t *d, enum dl_float) { return d[count] <= INT32_MAX; }

const struct dl_routine dl_cuda_topks[] = {
    {DL_KERNEL("topk", "forward", topk), .workspace_bytes = workspace_bytes, .can = can},
    {},
};
