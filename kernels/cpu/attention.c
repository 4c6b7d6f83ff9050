/* attention.c - attention head by head: with all scores of a head in memory, and tile by tile as FlashAttention-2 does
 * (Dao 2023, Algorithms 1 and 2), so that scores stay in the cache. */
#include "kernels/cpu/cpu.h"

#include <math.h>

enum { batch, m, n, k, shared, causal, dropout, key_batch };
enum { tile = 64 };

/* One head of queries; `first` is the number of its first query in the whole batch. */
struct head {
    const int64_t *d;
    const float *q, *keys, *values, *dy, *y, *log_sum;
    float *out, *out_log_sum, *dq, *dk, *dv;
    int64_t first;
    float scale;
};

static struct head head_at(const struct dl_call *call, int64_t i, bool is_backward)
{
    const int64_t *const d = call->dim, at = i * d[m] * d[k], key_at = i / d[shared] * d[n] * d[k];
    float *const *const t = (float *const *)call->tensor;
    struct head h = {.d = d, .q = t[0] + at, .keys = t[1] + key_at, .values = t[2] + key_at};
    h.out = t[3] + at, h.out_log_sum = t[4] + i * d[m];
    h.y = h.out, h.log_sum = h.out_log_sum;
    h.first = i * d[m];
    h.scale = 1 / sqrtf((float)d[k]);
    if (is_backward) h.dy = t[5] + at, h.dq = t[6] + at, h.dk = t[7] + key_at, h.dv = t[8] + key_at;
    return h;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Keys that query i sees. */
static int64_t n_seen(const struct head *h, int64_t i) { return h->d[causal] ? i + h->d[n] - h->d[m] + 1 : h->d[n]; }

/* A rectangle of queries and keys, and its scores or their gradients, `step` apart. */
struct block {
    int64_t from, queries, key_from, keys, step;
    float *data;
};

static void product_with_keys(const struct head *h, const struct block *b, const float *left, const float *right,
                              float scale)
{
    const int64_t size = h->d[k];
    dl_cpu_gemm(&(struct dl_gemm){b->queries,
                                  b->keys,
                                  size,
                                  {left + b->from * size, size, false},
                                  {right + b->key_from * size, size, true},
                                  b->data,
                                  b->step,
                                  scale,
                                  0});
}

/* out[queries] += data times right[keys] */
static void times_keys(const struct head *h, const struct block *b, const float *right, float *out, float scale,
                       float keep)
{
    const int64_t size = h->d[k];
    dl_cpu_gemm(&(struct dl_gemm){b->queries,
                                  size,
                                  b->keys,
                                  {b->data, b->step, false},
                                  {right + b->key_from * size, size, false},
                                  out + b->from * size,
                                  size,
                                  scale,
                                  keep});
}

/* out[keys] += data^T times right[queries] */
static void times_queries(const struct head *h, const struct block *b, const float *right, float *out, float scale)
{
    const int64_t size = h->d[k];
    dl_cpu_gemm(&(struct dl_gemm){b->keys,
                                  size,
                                  b->queries,
                                  {b->data, b->step, true},
                                  {right + b->from * size, size, false},
                                  out + b->key_from * size,
                                  size,
                                  scale,
                                  1});
}

static float kept(const struct head *h, int64_t query, int64_t key)
{
    return dl_kept((uint64_t)((h->first + query) * h->d[n] + key)) ? DL_DROPOUT_SCALE : 0;
}

static void drop(const struct head *h, const struct block *b)
{
    for (int64_t i = 0; i < b->queries; i++)
        for (int64_t j = 0; j < b->keys; j++) b->data[i * b->step + j] *= kept(h, b->from + i, b->key_from + j);
}

static void softmax_rows(const struct head *h, const struct block *b)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *const row = b->data + i * b->step;
        const int64_t seen = n_seen(h, i);
        const float most = dl_cpu_largest(row, seen), sum = dl_cpu_exponentials(row, row, seen, most), part = 1 / sum;
        for (int64_t j = 0; j < seen; j++) row[j] *= part;
        memset(row + seen, 0, (size_t)(b->keys - seen) * sizeof *row);
        h->out_log_sum[i] = most + logf(sum);
    }
}

static void unfused(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const struct block all = {0, d[m], 0, d[n], d[n], call->workspace};
    for (int64_t i = 0; i < d[batch]; i++) {
        const struct head h = head_at(call, i, false);
        product_with_keys(&h, &all, h.q, h.keys, h.scale);
        softmax_rows(&h, &all);
        if (d[dropout]) drop(&h, &all);
        times_keys(&h, &all, h.values, h.out, 1, 0);
    }
}

/* Probabilities again, from the scores and the logarithms that forward left. */
static void probabilities(const struct head *h, const struct block *b)
{
    product_with_keys(h, b, h->q, h->keys, h->scale);
    for (int64_t i = 0; i < b->queries; i++) {
        float *const row = b->data + i * b->step;
        int64_t seen = least(n_seen(h, b->from + i) - b->key_from, b->keys);
        if (seen < 0) seen = 0;
        dl_cpu_exponentials(row, row, seen, h->log_sum[b->from + i]);
        memset(row + seen, 0, (size_t)(b->keys - seen) * sizeof *row);
    }
}

/* dS = P (dP - dy y), where dP comes in ds->data. */
static void score_gradients(const struct head *h, const struct block *p, const struct block *ds)
{
    for (int64_t i = 0; i < p->queries; i++) {
        const float *const dy = h->dy + (p->from + i) * h->d[k], *const y = h->y + (p->from + i) * h->d[k];
        float mean = 0;
        DL_SUM(mean)
        for (int64_t c = 0; c < h->d[k]; c++) mean += dy[c] * y[c];
        for (int64_t j = 0; j < p->keys; j++)
            ds->data[i * ds->step + j] = p->data[i * p->step + j] * (ds->data[i * ds->step + j] - mean);
    }
}

static void backward_of_block(const struct head *h, const struct block *p, const struct block *ds)
{
    probabilities(h, p);
    for (int64_t i = 0; i < p->queries; i++)
        memcpy(ds->data + i * ds->step, p->data + i * p->step, (size_t)p->keys * sizeof *ds->data);
    if (h->d[dropout]) drop(h, ds);
    times_queries(h, ds, h->dy, h->dv, 1);
    product_with_keys(h, ds, h->dy, h->values, 1);
    if (h->d[dropout]) drop(h, ds);
    score_gradients(h, p, ds);
    times_keys(h, ds, h->keys, h->dq, h->scale, 1);
    times_queries(h, ds, h->q, h->dk, h->scale);
}

static void clear_gradients(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    memset(call->tensor[6], 0, (size_t)(d[batch] * d[m] * d[k]) * sizeof(float));
    memset(call->tensor[7], 0, (size_t)(d[key_batch] * d[n] * d[k]) * sizeof(float));
    memset(call->tensor[8], 0, (size_t)(d[key_batch] * d[n] * d[k]) * sizeof(float));
}

static void unfused_backward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const struct block p = {0, d[m], 0, d[n], d[n], call->workspace};
    struct block ds = p;
    ds.data += d[m] * d[n];
    clear_gradients(call);
    for (int64_t i = 0; i < d[batch]; i++) {
        const struct head h = head_at(call, i, true);
        backward_of_block(&h, &p, &ds);
    }
}

static size_t unfused_bytes(const int64_t *d, enum dl_float f)
{
    (void)f;
    return (size_t)(d[m] * d[n]) * sizeof(float);
}

static size_t unfused_backward_bytes(const int64_t *d, enum dl_float f) { return 2 * unfused_bytes(d, f); }

/* Of a block of queries: what was largest so far, and the sum of exponentials over it. */
struct running {
    float largest[tile], sum[tile];
};

/* Takes the scores of a tile in: what has been summed so far shrinks by what the largest grew. */
static void take_in(const struct head *h, const struct block *b, struct running *run)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *const row = b->data + i * b->step, *const out = h->out + (b->from + i) * h->d[k];
        int64_t seen = least(n_seen(h, b->from + i) - b->key_from, b->keys);
        if (seen < 0) seen = 0;
        memset(row + seen, 0, (size_t)(b->keys - seen) * sizeof *row);
        if (!seen) continue;
        const float most = fmaxf(run->largest[i], dl_cpu_largest(row, seen));
        const float shrink = dl_exp(run->largest[i] - most);
        run->sum[i] = run->sum[i] * shrink + dl_cpu_exponentials(row, row, seen, most);
        run->largest[i] = most;
        for (int64_t c = 0; c < h->d[k]; c++) out[c] *= shrink;
    }
}

static void finish_queries(const struct head *h, const struct block *b, const struct running *run)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *const out = h->out + (b->from + i) * h->d[k];
        for (int64_t c = 0; c < h->d[k]; c++) out[c] /= run->sum[i];
        h->out_log_sum[b->from + i] = run->largest[i] + logf(run->sum[i]);
    }
}

static void tiled_queries(const struct head *h, struct block b)
{
    const float nothing = -1e30f;
    struct running run;
    for (int64_t i = 0; i < tile; i++) run.largest[i] = nothing, run.sum[i] = 0;
    memset(h->out + b.from * h->d[k], 0, (size_t)(b.queries * h->d[k]) * sizeof *h->out);
    const int64_t end = n_seen(h, b.from + b.queries - 1);
    for (b.key_from = 0; b.key_from < end; b.key_from += tile) {
        b.keys = least(tile, h->d[n] - b.key_from);
        product_with_keys(h, &b, h->q, h->keys, h->scale);
        take_in(h, &b, &run);
        times_keys(h, &b, h->values, h->out, 1, 1);
    }
    finish_queries(h, &b, &run);
}

static void tiled(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    for (int64_t i = 0; i < d[batch]; i++) {
        const struct head h = head_at(call, i, false);
        for (int64_t from = 0; from < d[m]; from += tile)
            tiled_queries(&h, (struct block){from, least(tile, d[m] - from), 0, 0, tile, call->workspace});
    }
}

static void tiled_backward(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    float *const scores = call->workspace;
    clear_gradients(call);
    for (int64_t i = 0; i < d[batch]; i++) {
        const struct head h = head_at(call, i, true);
        for (int64_t from = 0; from < d[m]; from += tile)
            for (int64_t key = 0; key < n_seen(&h, least(from + tile, d[m]) - 1); key += tile) {
                const struct block p = {from, least(tile, d[m] - from), key, least(tile, d[n] - key), tile, scores};
                struct block ds = p;
                ds.data = scores + tile * tile;
                backward_of_block(&h, &p, &ds);
            }
    }
}

static size_t tiled_bytes(const int64_t *d, enum dl_float f)
{
    (void)d, (void)f;
    return 2 * tile * tile * sizeof(float);
}

static bool has_no_dropout(const int64_t *d, enum dl_float f)
{
    (void)f;
    return !d[dropout];
}

const struct dl_routine dl_cpu_attentions[] = {
    {DL_CPU_BLAS("attention", "forward", unfused), .workspace_bytes = unfused_bytes},
    {DL_CPU_BLAS("attention", "backward", unfused_backward), .workspace_bytes = unfused_backward_bytes},
    {.problem = "attention",
     .pass = "forward",
     .way = "tiled",
     .doc = "tiles as in FlashAttention-2",
     .precisions = 1u << DL_FLOAT_FP32,
     .is_own = true,
     .run = tiled,
     .workspace_bytes = tiled_bytes,
     .can = has_no_dropout},
    {.problem = "attention",
     .pass = "backward",
     .way = "tiled",
     .doc = "tiles as in FlashAttention-2",
     .precisions = 1u << DL_FLOAT_FP32,
     .is_own = true,
     .run = tiled_backward,
     .workspace_bytes = tiled_bytes,
     .can = has_no_dropout},
    {0},
};
