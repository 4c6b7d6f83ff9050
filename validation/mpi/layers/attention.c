/* attention.c - softmax(Q K^T / sqrt(d)) V for each sample and head. A row holds, head by head, the query, the key and
 * the value of a token. */
#include <math.h>

#include "validation/mpi/layers/gemm.h"
#include "validation/mpi/layers/units.h"

/* One head of one sample. */
struct head {
    const struct dl_attention_shape *shape;
    dl_real *queries, *keys, *values, *out, *scores; /* rows of the first three are `in` apart, of the fourth `made` */
    int n, size, in, made;
};

static struct head head_at(const struct dl_attention_shape *a, struct dl_rows x, struct dl_rows y, dl_real *scores,
                           size_t i)
{
    const size_t sample = i / a->heads, head = i % a->heads, first = sample * a->seq;
    dl_real *const queries = x.at + first * x.width + head * 3 * a->head_size;
    return (struct head){.shape = a,
                         .queries = queries,
                         .keys = queries + a->head_size,
                         .values = queries + 2 * a->head_size,
                         .out = y.at + first * y.width + head * a->head_size,
                         .scores = scores + i * a->seq * a->seq,
                         .n = (int)a->seq,
                         .size = (int)a->head_size,
                         .in = (int)x.width,
                         .made = (int)y.width};
}

static size_t n_heads(const struct dl_attention_shape *a, struct dl_rows x) { return x.n / a->seq * a->heads; }

static dl_real scale_of(const struct dl_attention_shape *a) { return (dl_real)(1 / sqrt((double)a->head_size)); }

static void soften(dl_real *row, size_t n, size_t seq)
{
    dl_real most = row[0];
    double sum = 0;
    for (size_t j = 1; j < n; j++) most = row[j] > most ? row[j] : most;
    for (size_t j = 0; j < n; j++) sum += exp((double)(row[j] - most));
    for (size_t j = 0; j < seq; j++) row[j] = j < n ? (dl_real)(exp((double)(row[j] - most)) / sum) : 0;
}

static void attend(const struct head *h)
{
    const size_t seq = h->shape->seq;
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->n, h->n, h->size, scale_of(h->shape), h->queries, h->in,
            h->keys, h->in, 0, h->scores, h->n);
    for (size_t i = 0; i < seq; i++) soften(h->scores + i * seq, h->shape->causal ? i + 1 : seq, seq);
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->n, h->size, h->n, 1, h->scores, h->n, h->values, h->in, 0,
            h->out, h->made);
}

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_attention_shape *const a = u->more;
    const struct dl_rows y = dl_rows_new(x.n, a->heads * a->head_size);
    (void)t;
    memo->given = x;
    memo->more = dl_alloc(n_heads(a, x) * a->seq * a->seq * sizeof *memo->more);
    for (size_t i = 0; i < n_heads(a, x); i++) {
        const struct head h = head_at(a, x, y, memo->more, i);
        attend(&h);
    }
    return y;
}

/* `d` has the gradients of what `h` has, its scores those of the softmax. */
static void attend_backward(const struct head *h, const struct head *d)
{
    const size_t seq = h->shape->seq;
    const dl_real scale = scale_of(h->shape);
    dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->n, h->size, h->n, 1, h->scores, h->n, d->out, d->made, 0,
            d->values, d->in);
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->n, h->n, h->size, 1, d->out, d->made, h->values, h->in, 0,
            d->scores, h->n);
    for (size_t i = 0; i < seq; i++) {
        const dl_real *const p = h->scores + i * seq;
        dl_real *const dp = d->scores + i * seq;
        double along = 0;
        for (size_t j = 0; j < seq; j++) along += (double)p[j] * (double)dp[j];
        for (size_t j = 0; j < seq; j++) dp[j] = p[j] * (dp[j] - (dl_real)along);
    }
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->n, h->size, h->n, scale, d->scores, h->n, h->keys, h->in, 0,
            d->queries, d->in);
    dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->n, h->size, h->n, scale, d->scores, h->n, h->queries, h->in, 0,
            d->keys, d->in);
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const struct dl_attention_shape *const a = u->more;
    const struct dl_rows x = memo->given, dx = dl_rows_new(x.n, x.width);
    dl_real *const scores = dl_alloc(n_heads(a, x) * a->seq * a->seq * sizeof *scores);
    (void)t;
    for (size_t i = 0; i < n_heads(a, x); i++) {
        const struct head h = head_at(a, x, dy, memo->more, i), d = head_at(a, dx, dy, scores, i);
        attend_backward(&h, &d);
    }
    dl_free(scores);
    dl_rows_free(&dy);
    return dx;
}

const struct dl_unit_kind dl_unit_attention = {"attention", forward, backward, NULL};
