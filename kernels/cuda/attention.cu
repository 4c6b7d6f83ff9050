/* attention.cu - attention with all scores in memory: products by cuBLAS, softmax, mask and dropout by kernels between
 * them. Heads of queries that share keys lie one after the other, so they are one matrix of `shared` m queries. Scores
 * are fp32, probabilities and their gradients in the precision of the call. */
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/packs.h"

enum { batch, m, n, k, shared, causal, dropout, key_batch };

struct scores {
    int64_t queries, m, n, k; /* queries of all heads */
    bool is_causal, drops;
    float *score, *slope; /* slope: of the probabilities */
    void *probability;    /* after dropout; or the gradients of the scores */
    __device__ int64_t seen(int64_t query) const { return is_causal ? query % m + n - m + 1 : n; }
    __device__ float kept(int64_t at) const
    {
        if (!drops) return 1;
        return dl_kept((uint64_t)at) ? DL_DROPOUT_SCALE : 0;
    }
};

static struct scores scores_of(const struct dl_call *call, bool is_backward)
{
    const int64_t *const d = call->dim, total = d[batch] * d[m] * d[n];
    float *const score = (float *)call->workspace, *const slope = is_backward ? score + total : NULL;
    return {d[batch] * d[m],
            d[m],
            d[n],
            d[k],
            d[causal] != 0,
            d[dropout] != 0,
            score,
            slope,
            score + (is_backward ? 2 : 1) * total};
}

/* The row of the warp. */
__device__ __forceinline__ int64_t query_of_warp(void)
{
    return ((int64_t)blockIdx.x * dl_block + threadIdx.x) / dl_warp;
}

/* Scores become probabilities; the logarithm of their sum is left for backward. */
template <class T> __global__ void __launch_bounds__(dl_block) softmax(scores s, float *log_sum)
{
    const int64_t query = query_of_warp(), lane = threadIdx.x % dl_warp;
    if (query >= s.queries) return;
    const float *const score = s.score + query * s.n;
    T *const p = (T *)s.probability + query * s.n;
    const int64_t seen = s.seen(query);
    float most = -INFINITY, sum = 0;
    for (int64_t j = lane; j < seen; j += dl_warp) most = fmaxf(most, score[j]);
    most = dl_warp_max(most);
    for (int64_t j = lane; j < seen; j += dl_warp) sum += __expf(score[j] - most);
    sum = dl_warp_sum(sum);
    for (int64_t j = lane; j < s.n; j += dl_warp)
        p[j] = dl_as<T>(j < seen ? __expf(score[j] - most) / sum * s.kept(query * s.n + j) : 0);
    if (lane == 0) log_sum[query] = most + logf(sum);
}

/* The same probabilities again, by what forward left. */
template <class T> __global__ void __launch_bounds__(dl_block) probabilities(scores s, const float *log_sum)
{
    const int64_t query = query_of_warp(), seen = s.seen(query);
    if (query >= s.queries) return;
    for (int64_t j = threadIdx.x % dl_warp; j < s.n; j += dl_warp) {
        const int64_t at = query * s.n + j;
        ((T *)s.probability)[at] = dl_as<T>(j < seen ? __expf(s.score[at] - log_sum[query]) * s.kept(at) : 0);
    }
}

struct results {
    const void *y, *dy;
    const float *log_sum;
};

/* dS = P (dP - dy y) over sqrt(k); dP is `slope` after dropout. */
template <class T> __global__ void __launch_bounds__(dl_block) score_gradients(scores s, results r)
{
    const int64_t query = query_of_warp(), lane = threadIdx.x % dl_warp, seen = s.seen(query);
    if (query >= s.queries) return;
    const T *const y = (const T *)r.y + query * s.k, *const dy = (const T *)r.dy + query * s.k;
    const float scale = rsqrtf((float)s.k);
    float mean = 0;
    for (int64_t c = lane; c < s.k; c += dl_warp) mean += dl_float_of(y[c]) * dl_float_of(dy[c]);
    mean = dl_warp_sum(mean);
    for (int64_t j = lane; j < s.n; j += dl_warp) {
        const int64_t at = query * s.n + j;
        const float p = j < seen ? __expf(s.score[at] - r.log_sum[query]) : 0;
        ((T *)s.probability)[at] = dl_as<T>(p * (s.slope[at] * s.kept(at) - mean) * scale);
    }
}

static unsigned warps_for(const scores &s) { return (unsigned)dl_ceil_div(s.queries * dl_warp, dl_block); }

/* The products; a head of keys has `many` queries. */
struct heads {
    const struct dl_call *call;
    int64_t many;
};
static struct dl_matrix of_queries(const heads &h, void *data, int64_t step, bool is_transposed)
{
    return {data, step, h.many * step, is_transposed};
}
static struct dl_matrix of_keys(const heads &h, void *data, bool is_transposed)
{
    return {data, h.call->dim[k], h.call->dim[n] * h.call->dim[k], is_transposed};
}

/* scores = scale left right^T, left of queries and right of keys, in fp32 */
static void times_keys(const heads &h, void *left, void *right, float *to, float scale)
{
    const int64_t *const d = h.call->dim;
    const struct dl_product p = {.precision = h.call->precision,
                                 .batch = d[key_batch],
                                 .m = h.many,
                                 .n = d[n],
                                 .k = d[k],
                                 .a = of_queries(h, left, d[k], false),
                                 .b = of_keys(h, right, true),
                                 .c = of_queries(h, to, d[n], false),
                                 .scale = scale,
                                 .is_c_fp32 = true};
    dl_cuda_product(&p);
}

/* of queries: to = weights right */
static void weighted_keys(const heads &h, void *weights, void *right, void *to)
{
    const int64_t *const d = h.call->dim;
    const struct dl_product p = {.precision = h.call->precision,
                                 .batch = d[key_batch],
                                 .m = h.many,
                                 .n = d[k],
                                 .k = d[n],
                                 .a = of_queries(h, weights, d[n], false),
                                 .b = of_keys(h, right, false),
                                 .c = of_queries(h, to, d[k], false),
                                 .scale = 1};
    dl_cuda_product(&p);
}

/* of keys: to = weights^T right */
static void weighted_queries(const heads &h, void *weights, void *right, void *to)
{
    const int64_t *const d = h.call->dim;
    const struct dl_product p = {.precision = h.call->precision,
                                 .batch = d[key_batch],
                                 .m = d[n],
                                 .n = d[k],
                                 .k = h.many,
                                 .a = of_queries(h, weights, d[n], true),
                                 .b = of_queries(h, right, d[k], false),
                                 .c = of_keys(h, to, false),
                                 .scale = 1};
    dl_cuda_product(&p);
}

static float scale_of(const struct dl_call *call) { return 1 / sqrtf((float)call->dim[k]); }

/* q, k, v -> y, log_sum */
template <class T> static void forward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    const heads h = {call, call->dim[shared] * call->dim[m]};
    const scores s = scores_of(call, false);
    times_keys(h, t[0], t[1], s.score, scale_of(call));
    softmax<T><<<warps_for(s), dl_block, 0, dl_cuda.stream>>>(s, (float *)t[4]);
    DL_LAUNCHED(softmax);
    weighted_keys(h, s.probability, t[2], t[3]);
}
DL_BY_PRECISION(forward)

/* q, k, v, y, log_sum, dy -> dq, dk, dv */
template <class T> static void backward_as(const struct dl_call *call)
{
    void *const *const t = call->tensor;
    const heads h = {call, call->dim[shared] * call->dim[m]};
    const scores s = scores_of(call, true);
    times_keys(h, t[0], t[1], s.score, scale_of(call));
    probabilities<T><<<warps_for(s), dl_block, 0, dl_cuda.stream>>>(s, (const float *)t[4]);
    DL_LAUNCHED(probabilities);
    weighted_queries(h, s.probability, t[5], t[8]);
    times_keys(h, t[5], t[2], s.slope, 1);
    score_gradients<T><<<warps_for(s), dl_block, 0, dl_cuda.stream>>>(s, {t[3], t[5], (const float *)t[4]});
    DL_LAUNCHED(score_gradients);
    weighted_keys(h, s.probability, t[1], t[6]);
    weighted_queries(h, s.probability, t[0], t[7]);
}
DL_BY_PRECISION(backward)

static size_t total(const int64_t *d) { return (size_t)(d[batch] * d[m] * d[n]); }
static size_t forward_bytes(const int64_t *d, enum dl_float f)
{
    return total(d) * (sizeof(float) + dl_float_bytes(f));
}
static size_t backward_bytes(const int64_t *d, enum dl_float f)
{
    return total(d) * (2 * sizeof(float) + dl_float_bytes(f));
}

#define UNFUSED(the_pass, the_run, the_bytes)                                                                          \
    .problem = "attention", .pass = the_pass, .way = "cublas", .doc = "cuBLAS, with all scores in memory",             \
    .precisions = DL_PRODUCT, .run = the_run, .workspace_bytes = the_bytes
const struct dl_routine dl_cuda_attentions[] = {
    {UNFUSED("forward", forward, forward_bytes)},
    {UNFUSED("backward", backward, backward_bytes)},
    {},
};
