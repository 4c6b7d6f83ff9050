/* attention.c - softmax(Q K^T / sqrt(k)) V for a batch of (sample, head), with dropout of what softmax gives if asked.
 *
 * `shared` heads of queries use the same keys and values (grouped-query attention). Causal: query i sees the keys up to
 * i + n - m. Forward leaves the logarithm of each query's sum of exponentials, all that backward needs besides its
 * inputs and the result (Dao 2023, FlashAttention-2, Algorithms 1 and 2). */
#include "kernels/problems/problems.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/harness.h"

enum { batch, m, n, k, shared, causal, dropout, key_batch };

static void complete(int64_t *d) { d[key_batch] = d[batch] / d[shared]; }

/* Keys that query i sees. */
static int64_t seen(const int64_t *d, int64_t i) { return d[causal] ? i + d[n] - d[m] + 1 : d[n]; }

/* As the workloads count: causal does half of the whole, and backward has five products for two. */
static double flop(const int64_t *d)
{
    return 4.0 * (double)d[batch] * (double)d[m] * (double)d[n] * (double)d[k] * (d[causal] ? 0.5 : 1);
}

static double backward_flop(const int64_t *d) { return 2.5 * flop(d); }

static void values(const int64_t *d, double *v)
{
    for (int i = 0; i < 4; i++) v[i] = (double)d[i];
    v[4] = (double)d[causal];
    v[5] = 1.0 / (double)d[shared];
}

/* Probabilities of one query, and the logarithm of the sum. */
static double softmax(const int64_t *d, const double *q, const double *keys, int64_t i, double *p)
{
    const int64_t n_seen = seen(d, i);
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n_seen; j++) {
        p[j] = 0;
        for (int64_t c = 0; c < d[k]; c++) p[j] += q[c] * keys[j * d[k] + c];
        p[j] /= sqrt((double)d[k]);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < n_seen; j++) sum += exp(p[j] - most);
    for (int64_t j = 0; j < d[n]; j++) p[j] = j < n_seen ? exp(p[j] - most) / sum : 0;
    return most + log(sum);
}

/* By what dropout multiplies the probability of key j. */
static double kept(const int64_t *d, int64_t query, int64_t j)
{
    if (!d[dropout]) return 1;
    return dl_kept((uint64_t)(query * d[n] + j)) ? (double)DL_DROPOUT_SCALE : 0;
}

static void forward(const int64_t *d, double *const *t)
{
    double *const p = dl_memory((size_t)d[n] * sizeof *p);
    for (int64_t query = 0; query < d[batch] * d[m]; query++) {
        const int64_t b = query / d[m], keys = b / d[shared] * d[n] * d[k];
        t[4][query] = softmax(d, t[0] + query * d[k], t[1] + keys, query % d[m], p);
        for (int64_t c = 0; c < d[k]; c++) {
            double sum = 0;
            for (int64_t j = 0; j < d[n]; j++) sum += p[j] * kept(d, query, j) * t[2][keys + j * d[k] + c];
            t[3][query * d[k] + c] = sum;
        }
    }
    free(p);
}

/* Adds what one query gives to the gradients dq, dk and dv, by `term` of each product in their sums; `at` is where its
 * keys and values begin. */
static void backward_of_query(const int64_t *d, double *const *t, int64_t query, int64_t at, double *p,
                              double *const *gradient, double (*term)(double))
{
    const double *const q = t[0] + query * d[k], *const dy = t[5] + query * d[k], scale = 1 / sqrt((double)d[k]);
    const double *const y = t[3] + query * d[k];
    double *const dp = p + d[n], mean = 0; /* of dp, which is dy y: y counts as it was rounded */
    for (int64_t c = 0; c < d[k]; c++) mean += dy[c] * y[c];
    softmax(d, q, t[1] + at, query % d[m], p);
    for (int64_t j = 0; j < d[n]; j++) {
        dp[j] = 0;
        for (int64_t c = 0; c < d[k]; c++) {
            dp[j] += dy[c] * t[2][at + j * d[k] + c] * kept(d, query, j);
            gradient[2][at + j * d[k] + c] += term(p[j] * kept(d, query, j) * dy[c]);
        }
    }
    for (int64_t j = 0; j < d[n]; j++)
        for (int64_t c = 0; c < d[k]; c++) {
            gradient[0][query * d[k] + c] += term(scale * p[j] * (dp[j] - mean) * t[1][at + j * d[k] + c]);
            gradient[1][at + j * d[k] + c] += term(scale * p[j] * (dp[j] - mean) * q[c]);
        }
}

static void add_gradients(const int64_t *d, double *const *t, double *const *gradient, double (*term)(double))
{
    double *const p = dl_memory(2 * (size_t)d[n] * sizeof *p);
    for (int64_t query = 0; query < d[batch] * d[m]; query++)
        backward_of_query(d, t, query, query / d[m] / d[shared] * d[n] * d[k], p, gradient, term);
    free(p);
}

static double itself(double x) { return x; }

static void backward(const int64_t *d, double *const *t)
{
    for (int64_t i = 0; i < d[batch] * d[m] * d[k]; i++) t[6][i] = 0;
    for (int64_t i = 0; i < d[key_batch] * d[n] * d[k]; i++) t[7][i] = t[8][i] = 0;
    add_gradients(d, t, t + 6, itself);
}

/* Where all scores are kept in memory, P and dS are rounded before they are multiplied: each of the products in a sum,
 * |dS| |q| for dk, has a rounding of dS and one of the other factor. */
static void backward_magnitudes(const int64_t *d, double *const *t, double *const *magnitude)
{
    add_gradients(d, t, magnitude + 6, fabs);
}

static const struct dl_tensor_spec forward_tensors[] = {
    {.name = "q", .shape = "batch m k"},
    {.name = "k", .shape = "key_batch n k"},
    {.name = "v", .shape = "key_batch n k"},
    {.name = "y", .role = DL_OUTPUT, .shape = "batch m k"},
    {.name = "log_sum", .role = DL_OUTPUT, .shape = "batch m", .store = DL_STORE_FLOAT},
};
/* y and log_sum are what forward left: its tensors come first, in its order, so it can derive them. */
static const struct dl_tensor_spec backward_tensors[] = {
    {.name = "q", .shape = "batch m k"},
    {.name = "k", .shape = "key_batch n k"},
    {.name = "v", .shape = "key_batch n k"},
    {.name = "y", .shape = "batch m k"},
    {.name = "log_sum", .shape = "batch m", .store = DL_STORE_FLOAT},
    {.name = "dy", .shape = "batch m k"},
    {.name = "dq", .role = DL_OUTPUT, .shape = "batch m k"},
    {.name = "dk", .role = DL_OUTPUT, .shape = "key_batch n k"},
    {.name = "dv", .role = DL_OUTPUT, .shape = "key_batch n k"},
};

static const int64_t odd[][DL_MAX_DIMS] = {
    {1, 1, 1, 1, 1, 0, 0},   {2, 5, 5, 3, 1, 1, 0},   {4, 33, 65, 16, 2, 0, 0}, {3, 70, 70, 8, 3, 1, 0},
    {2, 17, 40, 5, 1, 1, 0}, {2, 19, 37, 8, 1, 0, 1}, {2, 66, 66, 32, 2, 1, 1}, {0},
};
static const int64_t timed[][DL_MAX_DIMS] = {
    {12, 128, 128, 64, 1, 1},   {12, 256, 256, 64, 1, 1},    {12, 512, 512, 64, 1, 1},    {12, 1024, 1024, 64, 1, 1},
    {16, 128, 128, 64, 1, 0},   {16, 512, 512, 64, 1, 0},    {8, 512, 512, 128, 1, 1},    {8, 1024, 1024, 128, 1, 0},
    {4, 2048, 2048, 64, 1, 1},  {32, 100, 100, 32, 1, 1},    {8, 333, 333, 80, 1, 1},     {8, 777, 777, 64, 1, 0},
    {32, 512, 512, 128, 4, 1},  {32, 1024, 1024, 128, 8, 1}, {96, 1024, 1024, 64, 1, 1},  {128, 1024, 1024, 64, 1, 1},
    {25, 1024, 1024, 64, 1, 1}, {32, 2048, 2048, 128, 1, 1}, {32, 4096, 4096, 128, 4, 1}, {20, 8192, 8192, 128, 1, 1},
    {64, 4096, 4096, 64, 1, 0}, {12, 2048, 2048, 128, 1, 1}, {128, 512, 512, 64, 1, 0},   {0},
};

#define ATTENTION(tensor_list, the_pass, the_doc)                                                                      \
    .name = "attention", .pass = the_pass, .doc = the_doc,                                                             \
    .dims = {"batch", "m", "n", "k", "shared", "causal", "dropout", "key_batch"}, .n_given = 7,                        \
    DL_TENSORS(tensor_list), .row = DL_ROW_ATTENTION, .complete = complete, .values = values, .odd = odd,              \
    .timed = timed
const struct dl_problem dl_problem_attention = {
    ATTENTION(forward_tensors, "forward", "queries, keys and values to their context"), .flop = flop,
    .reference = forward};
const struct dl_problem dl_problem_attention_backward = {
    ATTENTION(backward_tensors, "backward", "gradients of queries, keys and values"), .derive = forward,
    .flop = backward_flop, .reference = backward, .magnitudes = backward_magnitudes};
