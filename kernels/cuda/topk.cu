/* topk.cu - the k numbers of largest magnitude, read once.
 *
 * A sample tells where the k-th is likely to lie (`choose_cut`). All that is above the cut is collected, and of what is
 * equal to it as many as could be wanted, k (`filter`): numbers of few bits have many equals. Among those the k-th is
 * found digit by digit (`count_digits`, radix selection) and everything above it taken (`emit`). If the sample misled,
 * and there are too few or too many to hold, the same kernels go over all numbers instead. */
#include "kernels/cuda/packs.h"

enum { count, k };
enum { digit_bits = 11, bins = 1 << digit_bits, n_digits = 3, key_bits = 31 }; /* the last two digits have 10 bits */

/* Digits, and bits, of keys that are not zero in all numbers of a type. */
template <class T> constexpr int digits_of = sizeof(T) < sizeof(float) ? 2 : n_digits;
template <class T>
constexpr int bits_of = sizeof(T) < sizeof(float) ? 8 + 10 : key_bits; /* exponent, fp16's mantissa */

/* Magnitudes compare as their bits do. */
__device__ __forceinline__ uint32_t key_of(float x) { return __float_as_uint(x) & 0x7fffffffu; }

struct found {
    float value;
    int32_t index;
};

struct state { /* in the workspace, before what was collected */
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
    bool is_all;
    int64_t n, n_above;
    __device__ source(const search &search, const T *data) : s(search), x(data), n_above(search.state->n_above)
    {
        const int64_t n_found = n_above + min((int64_t)s.state->n_level, s.k);
        is_all = n_found < s.k || n_above > s.most;
        n = is_all ? s.n : n_found;
    }
    __device__ found get(int64_t i) const
    {
        if (is_all) return {dl_float_of(x[i]), (int32_t)i};
        return i < n_above ? s.above[i] : s.level[i - n_above];
    }
};

/* One block: the cut is the key of a sample, above which about k, and a little more, of all are. */
enum { sample_threads = 1024, each = 16 };
template <class T> __global__ void __launch_bounds__(sample_threads) choose_cut(search s, const T *x)
{
    __shared__ int above[key_bits];
    const double samples = (double)sample_threads * each, expected = (double)s.k / (double)s.n * samples;
    const double deviations = 4; /* of the number of samples above: one in 10^4 misleads */
    const int rank = (int)(expected + deviations * sqrt(expected)) + each;
    uint32_t key[each], cut = 0;
    for (int j = 0; j < each; j++) {
        const double part = ((double)j * sample_threads + threadIdx.x) / samples;
        key[j] = key_of(dl_float_of(x[(int64_t)(part * (double)s.n)]));
    }
    if (threadIdx.x < key_bits) above[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < bits_of<T>; i++) {
        const uint32_t higher = cut | 1u << (key_bits - 1 - i);
        int n = 0;
        for (int j = 0; j < each; j++) n += key[j] >= higher;
        n = __reduce_add_sync(0xffffffff, n);
        if (threadIdx.x % dl_warp == 0) atomicAdd(&above[i], n);
        __syncthreads();
        if (above[i] >= rank) cut = higher;
    }
    if (threadIdx.x == 0) s.state->cut = cut;
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

/* Few packs have a number that is not below the cut: one comparison tells. */
enum { packs_each = 16, packs_together = 4 };
template <class T> __global__ void __launch_bounds__(dl_block) filter(search s, const T *x)
{
    __shared__ collection above, level;
    const uint32_t cut = s.state->cut;
    if (threadIdx.x == 0) above.n = level.n = 0;
    __syncthreads();
    for (int u = 0; u < packs_each; u += packs_together) {
        dl_pack<T, dl_length<T>> read[packs_together] = {};
        const int64_t first = ((int64_t)blockIdx.x * packs_each + u) * dl_block + threadIdx.x;
        for (int v = 0; v < packs_together; v++)
            if ((first + v * dl_block) * dl_length<T> < s.n)
                read[v] = dl_read<dl_length<T>>(x, first + v * dl_block, s.n);
        for (int v = 0; v < packs_together; v++) {
            const auto p = dl_floats(read[v]);
            float most = 0;
            for (int j = 0; j < dl_length<T>; j++) most = fmaxf(most, fabsf(p.v[j]));
            if (key_of(most) < cut) continue;
            for (int j = 0; j < dl_length<T>; j++) {
                const int64_t at = (first + v * dl_block) * dl_length<T> + j;
                const uint32_t key = key_of(p.v[j]);
                if (key < cut || at >= s.n) continue;
                const found f = {p.v[j], (int32_t)at};
                if (key > cut)
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

/* Everything above the k-th, and of those equal to it as many as are wanted. */
template <class T> __global__ void __launch_bounds__(dl_block) emit(search s, const T *x, T *value, int32_t *index)
{
    __shared__ unsigned n_taken, base;
    const source<T> from(s, x);
    const prefix p = prefix_after(s, digits_of<T>);
    for (int64_t first = (int64_t)blockIdx.x * dl_block; first < from.n; first += (int64_t)gridDim.x * dl_block) {
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
        if (is_taken && base + at < s.k) value[base + at] = dl_as<T>(f.value), index[base + at] = f.index;
    }
}

/* A sample stands for many numbers where k is small. */
static unsigned most_above(const int64_t *d)
{
    const int64_t samples = sample_threads * each, for_the_sample = 2 * each * dl_ceil_div(d[count], samples);
    const int64_t wanted = 4 * d[k] + for_the_sample;
    return (unsigned)(wanted < d[count] ? wanted : d[count]);
}

static size_t workspace_bytes(const int64_t *d, enum dl_float)
{
    return sizeof(struct state) + ((size_t)most_above(d) + (size_t)d[k]) * sizeof(struct found);
}

template <class T> static void topk_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const T *const x = (const T *)call->tensor[0];
    struct state *const state = (struct state *)call->workspace;
    struct found *const above = (struct found *)(state + 1);
    const unsigned most = most_above(d);
    const search s = {state, above, above + most, most, d[count], d[k]};
    const unsigned blocks = 4 * (unsigned)dl_cuda.units;
    DL_CUDA(cudaMemsetAsync(state, 0, sizeof *state, dl_cuda.stream));
    choose_cut<<<1, sample_threads, 0, dl_cuda.stream>>>(s, x);
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
