/* experts.c - a mixture of experts: a router sends each token to the best of them, wherever they are, and adds what
 * comes back, weighted by their scores (Shazeer et al., ICLR 2017). Experts take as many tokens as come.
 *
 *   slot     one choice of one token, `chosen` for each; slots travel sorted by expert, so by the rank that has it
 *   visitor  a slot that came here; sorted by the expert of this rank, then by where it came from */
#include <math.h>
#include <string.h>

#include "validation/mpi/layers/gemm.h"
#include "validation/mpi/layers/units.h"

/* The router's and the experts' parameters are in units of their own before the unit that computes. */
enum { router = 3, first = 2, second = 1 };

static struct dl_rows pass_on(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    (void)t, (void)u, (void)memo;
    return x;
}

static const struct dl_unit_kind holder = {"holder", pass_on, pass_on, NULL};

static void add_expert_weights(struct dl_train *t, struct dl_real_layer *layer, size_t experts, size_t inputs,
                               size_t outputs)
{
    const struct dl_range mine = dl_part_of(experts, (size_t)t->experts.rank, (size_t)t->experts.n);
    struct dl_unit *const u =
        dl_add_parameters(layer, &holder, experts * inputs, outputs,
                          (struct dl_range){mine.from * inputs, mine.n * inputs}, (struct dl_range){0, outputs});
    u->scale = sqrt(2 / (double)inputs);
    u->set = t->experts.n > 1 ? DL_SET_EXPERTS : DL_SET_COMMON;
}

void dl_add_experts(struct dl_train *t, struct dl_real_layer *layer, const struct dl_experts_shape *given)
{
    struct dl_experts_shape *const shape = dl_arena_alloc(t->arena, sizeof *shape);
    *shape = *given;
    const struct dl_range rows = {0, shape->hidden}, cols = {0, shape->n};
    struct dl_unit *const scores = dl_add_parameters(layer, &holder, shape->hidden, shape->n, rows, cols);
    scores->scale = 1 / sqrt((double)shape->hidden);
    add_expert_weights(t, layer, shape->n, shape->hidden, shape->ffn);
    add_expert_weights(t, layer, shape->n, shape->ffn, shape->hidden);
    dl_add_unit(layer, &dl_unit_experts)->more = shape;
}

/* ---- what is kept ---- */

/* Pieces of memo->counts and memo->more. */
struct trip {
    const struct dl_experts_shape *shape;
    size_t n_tokens, n_slots, n_here, n_visitors;
    size_t *expert;                                        /* by token and choice */
    size_t *slot;                                          /* where that choice is among the slots that travel */
    size_t *leaving;                                       /* by expert: slots of this rank */
    size_t *coming;                                        /* by rank and expert here: visitors */
    dl_real *share;                                        /* by token and expert: softmax of the scores */
    dl_real *back;                                         /* by slot: what the experts made of it */
    dl_real *came, *between, *gradient, *gradient_between; /* by visitor */
};

static struct trip layout(struct dl_train *t, const struct dl_unit *u, const struct dl_memo *memo, size_t n_tokens)
{
    struct trip p = {.shape = u->more, .n_tokens = n_tokens};
    const size_t n = p.shape->n, ranks = (size_t)t->experts.n;
    p.n_slots = n_tokens * p.shape->chosen;
    p.n_here = n / ranks;
    p.expert = memo->counts;
    p.slot = p.expert + p.n_slots;
    p.leaving = p.slot + p.n_slots;
    p.coming = p.leaving + n;
    return p;
}

static void lay_out_values(struct trip *p, dl_real *values)
{
    const size_t visitors = p->n_visitors, hidden = p->shape->hidden, ffn = p->shape->ffn;
    p->share = values;
    p->back = p->share + p->n_tokens * p->shape->n;
    p->came = p->back + p->n_slots * hidden;
    p->between = p->came + visitors * hidden;
    p->gradient = p->between + visitors * ffn;
    p->gradient_between = p->gradient + visitors * hidden;
}

static size_t count_values(const struct trip *p)
{
    return p->n_tokens * p->shape->n + p->n_slots * p->shape->hidden +
           2 * p->n_visitors * (p->shape->hidden + p->shape->ffn) + 1;
}

static struct trip recall(struct dl_train *t, const struct dl_unit *u, const struct dl_memo *memo)
{
    struct trip p = layout(t, u, memo, memo->given.n);
    for (size_t i = 0; i < (size_t)t->experts.n * p.n_here; i++) p.n_visitors += p.coming[i];
    lay_out_values(&p, memo->more);
    return p;
}

/* ---- routing ---- */

static void soften(dl_real *row, size_t n)
{
    double sum = 0, most = (double)row[0];
    for (size_t i = 1; i < n; i++) most = fmax(most, (double)row[i]);
    for (size_t i = 0; i < n; i++) sum += exp((double)row[i] - most);
    for (size_t i = 0; i < n; i++) row[i] = (dl_real)(exp((double)row[i] - most) / sum);
}

/* The best that is not chosen yet; of equals the first. */
static size_t best(const dl_real *share, size_t n, const size_t *chosen, size_t n_chosen)
{
    size_t found = n;
    for (size_t i = 0; i < n; i++) {
        bool taken = false;
        for (size_t j = 0; j < n_chosen; j++) taken |= chosen[j] == i;
        if (!taken && (found == n || share[i] > share[found])) found = i;
    }
    return found;
}

static void route(const struct trip *p, const dl_real *share)
{
    const size_t n = p->shape->n, chosen = p->shape->chosen;
    for (size_t i = 0; i < p->n_slots; i++) {
        const size_t token = i / chosen;
        p->expert[i] = best(share + token * n, n, p->expert + token * chosen, i % chosen);
        p->leaving[p->expert[i]]++;
    }
    size_t *const next = dl_alloc(n * sizeof *next);
    for (size_t e = 1; e < n; e++) next[e] = next[e - 1] + p->leaving[e - 1];
    for (size_t i = 0; i < p->n_slots; i++) p->slot[i] = next[p->expert[i]]++;
    dl_free(next);
}

/* ---- travel ---- */

static void exchange(struct dl_train *t, const struct dl_pairwise *messages)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_EXPERT);
    dl_pairwise_alltoall(&t->experts, messages);
    dl_switch_cause(&t->timeline, before);
}

static void tell_counts(struct dl_train *t, struct trip *p)
{
    const size_t ranks = (size_t)t->experts.n;
    void **const at = dl_alloc(2 * ranks * sizeof *at);
    size_t *const bytes = dl_alloc(ranks * sizeof *bytes);
    for (size_t i = 0; i < ranks; i++) {
        at[i] = p->leaving + i * p->n_here;
        at[ranks + i] = p->coming + i * p->n_here;
        bytes[i] = p->n_here * sizeof *p->coming;
    }
    exchange(t, &(struct dl_pairwise){at, at + ranks, bytes, bytes});
    for (size_t i = 0; i < ranks * p->n_here; i++) p->n_visitors += p->coming[i];
    t->n_visitors += (double)p->n_visitors;
    dl_free(at);
    dl_free(bytes);
}

static size_t sum_of(const size_t *counts, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += counts[i];
    return sum;
}

/* Visitors come sorted by rank, then expert; the experts want them by expert, then rank. `sorted` is theirs. */
static void sort_visitors(const struct trip *p, size_t ranks, dl_real *arrived, dl_real *sorted, bool away)
{
    const size_t hidden = p->shape->hidden;
    for (size_t rank = 0; rank < ranks; rank++)
        for (size_t e = 0; e < p->n_here; e++) {
            const size_t n = p->coming[rank * p->n_here + e], from = sum_of(p->coming, rank * p->n_here + e);
            size_t to = 0;
            for (size_t r = 0; r < ranks; r++)
                for (size_t f = 0; f < p->n_here; f++)
                    if (f < e || (f == e && r < rank)) to += p->coming[r * p->n_here + f];
            dl_real *const a = arrived + from * hidden, *const b = sorted + to * hidden;
            memcpy(away ? a : b, away ? b : a, n * hidden * sizeof *a);
        }
}

/* Rows by slot become rows by visitor, or (back) the other way round. */
static void travel(struct dl_train *t, const struct trip *p, dl_real *slots, dl_real *visitors, bool back)
{
    const size_t ranks = (size_t)t->experts.n, row = p->shape->hidden * sizeof *slots;
    dl_real *const arrived = dl_alloc((p->n_visitors + 1) * row);
    void **const at = dl_alloc(2 * ranks * sizeof *at);
    size_t *const bytes = dl_alloc(2 * ranks * sizeof *bytes);
    if (back) sort_visitors(p, ranks, arrived, visitors, true);
    for (size_t i = 0; i < ranks; i++) {
        at[i] = (char *)slots + sum_of(p->leaving, i * p->n_here) * row;
        at[ranks + i] = (char *)arrived + sum_of(p->coming, i * p->n_here) * row;
        bytes[i] = sum_of(p->leaving + i * p->n_here, p->n_here) * row;
        bytes[ranks + i] = sum_of(p->coming + i * p->n_here, p->n_here) * row;
    }
    const struct dl_pairwise there = {at, at + ranks, bytes, bytes + ranks},
                             home = {at + ranks, at, bytes + ranks, bytes};
    exchange(t, back ? &home : &there);
    if (!back) sort_visitors(p, ranks, arrived, visitors, false);
    dl_free(arrived);
    dl_free(at);
    dl_free(bytes);
}

/* ---- experts ---- */

static size_t visitors_of(const struct trip *p, size_t ranks, size_t expert)
{
    size_t n = 0;
    for (size_t rank = 0; rank < ranks; rank++) n += p->coming[rank * p->n_here + expert];
    return n;
}

/* One product for the visitors of each expert here: rows (n x k) times its weights, which may be turned round. */
struct product {
    dl_real *rows, *made;
    size_t k, n;
    bool turned;
};

static void multiply(struct dl_train *t, const struct trip *p, const dl_real *weights, const struct product *m)
{
    size_t from = 0;
    for (size_t e = 0; e < p->n_here; e++) {
        const size_t n = visitors_of(p, (size_t)t->experts.n, e);
        if (n)
            dl_gemm(CblasRowMajor, CblasNoTrans, m->turned ? CblasTrans : CblasNoTrans, (int)n, (int)m->n, (int)m->k, 1,
                    m->rows + from * m->k, (int)m->k, weights + e * m->k * m->n, (int)(m->turned ? m->k : m->n), 0,
                    m->made + from * m->n, (int)m->n);
        from += n;
    }
}

static void weight_gradient(struct dl_train *t, const struct trip *p, const struct dl_unit *u, const dl_real *rows,
                            size_t k, const dl_real *gradient, size_t n)
{
    size_t from = 0;
    for (size_t e = 0; e < p->n_here; e++) {
        const size_t visitors = visitors_of(p, (size_t)t->experts.n, e);
        if (visitors)
            dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)n, (int)visitors, 1, rows + from * k, (int)k,
                    gradient + from * n, (int)n, 1, u->gradients + e * k * n, (int)n);
        from += visitors;
    }
}

/* The activation is a unit like any other, with a memo of the moment. */
static struct dl_rows activate(struct dl_train *t, const struct trip *p)
{
    struct dl_memo memo = {0};
    const struct dl_rows between = {p->between, p->n_visitors, p->shape->ffn};
    const struct dl_rows y = p->shape->activation->forward(t, NULL, &memo, dl_rows_copy(between));
    dl_rows_free(&memo.given);
    return y;
}

/* ---- the unit ---- */

static struct dl_rows forward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows x)
{
    const struct dl_experts_shape *const s = u->more;
    dl_real *const share = dl_alloc(x.n * s->n * sizeof *share);
    memo->given = x;
    memo->counts = dl_alloc((2 * x.n * s->chosen + 2 * s->n) * sizeof *memo->counts);
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)x.n, (int)s->n, (int)s->hidden, 1, x.at, (int)x.width,
            (u - router)->values, (int)s->n, 0, share, (int)s->n);
    for (size_t i = 0; i < x.n; i++) soften(share + i * s->n, s->n);
    struct trip p = layout(t, u, memo, x.n);
    route(&p, share);
    tell_counts(t, &p);
    memo->more = dl_alloc(count_values(&p) * sizeof *memo->more);
    lay_out_values(&p, memo->more);
    memcpy(p.share, share, x.n * s->n * sizeof *share);
    dl_free(share);

    for (size_t i = 0; i < p.n_slots; i++)
        memcpy(p.back + p.slot[i] * s->hidden, x.at + i / s->chosen * s->hidden, s->hidden * sizeof *x.at);
    travel(t, &p, p.back, p.came, false);
    multiply(t, &p, (u - first)->values, &(struct product){p.came, p.between, s->hidden, s->ffn, false});
    struct dl_rows active = activate(t, &p), made = dl_rows_new(p.n_visitors, s->hidden);
    multiply(t, &p, (u - second)->values, &(struct product){active.at, made.at, s->ffn, s->hidden, false});
    travel(t, &p, p.back, made.at, true);
    dl_rows_free(&active);
    dl_rows_free(&made);

    const struct dl_rows y = dl_rows_new(x.n, x.width);
    for (size_t i = 0; i < p.n_slots; i++) {
        const size_t token = i / s->chosen;
        const dl_real share_of = p.share[token * s->n + p.expert[i]];
        for (size_t j = 0; j < s->hidden; j++)
            y.at[token * s->hidden + j] += share_of * p.back[p.slot[i] * s->hidden + j];
    }
    return y;
}

/* From the gradient of the shares that were used to that of the scores. */
static struct dl_rows score_gradients(const struct trip *p, struct dl_rows dy)
{
    const struct dl_experts_shape *const s = p->shape;
    const struct dl_rows d = dl_rows_new(p->n_tokens, s->n);
    for (size_t i = 0; i < p->n_slots; i++) {
        const size_t token = i / s->chosen;
        double dot = 0;
        for (size_t j = 0; j < s->hidden; j++)
            dot += (double)dy.at[token * s->hidden + j] * (double)p->back[p->slot[i] * s->hidden + j];
        d.at[token * s->n + p->expert[i]] = (dl_real)dot;
    }
    for (size_t i = 0; i < p->n_tokens; i++) {
        const dl_real *const share = p->share + i * s->n;
        double along = 0;
        for (size_t e = 0; e < s->n; e++) along += (double)share[e] * (double)d.at[i * s->n + e];
        for (size_t e = 0; e < s->n; e++) d.at[i * s->n + e] = share[e] * (d.at[i * s->n + e] - (dl_real)along);
    }
    return d;
}

static void through_experts(struct dl_train *t, const struct dl_unit *u, const struct trip *p, dl_real *slots)
{
    const struct dl_experts_shape *const s = u->more;
    travel(t, p, slots, p->gradient, false);
    multiply(t, p, (u - second)->values, &(struct product){p->gradient, p->gradient_between, s->hidden, s->ffn, true});
    struct dl_memo memo = {.given = {p->between, p->n_visitors, s->ffn}};
    s->activation->backward(t, NULL, &memo, (struct dl_rows){p->gradient_between, p->n_visitors, s->ffn});
    struct dl_rows dx = dl_rows_new(p->n_visitors, s->hidden);
    multiply(t, p, (u - first)->values, &(struct product){p->gradient_between, dx.at, s->ffn, s->hidden, true});
    travel(t, p, slots, dx.at, true);
    dl_rows_free(&dx);
}

static struct dl_rows backward(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    const struct dl_experts_shape *const s = u->more;
    const struct trip p = recall(t, u, memo);
    memo->gradient = score_gradients(&p, dy);
    dl_real *const slots = dl_alloc(p.n_slots * s->hidden * sizeof *slots);
    for (size_t i = 0; i < p.n_slots; i++) {
        const dl_real share = p.share[i / s->chosen * s->n + p.expert[i]];
        for (size_t j = 0; j < s->hidden; j++)
            slots[p.slot[i] * s->hidden + j] = share * dy.at[i / s->chosen * s->hidden + j];
    }
    through_experts(t, u, &p, slots);
    dl_gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)dy.n, (int)s->hidden, (int)s->n, 1, memo->gradient.at,
            (int)s->n, (u - router)->values, (int)s->n, 0, dy.at, (int)s->hidden);
    for (size_t i = 0; i < p.n_slots; i++)
        for (size_t j = 0; j < s->hidden; j++) dy.at[i / s->chosen * s->hidden + j] += slots[p.slot[i] * s->hidden + j];
    dl_free(slots);
    return dy;
}

static void weights(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo)
{
    const struct dl_experts_shape *const s = u->more;
    const struct trip p = recall(t, u, memo);
    struct dl_rows active = activate(t, &p);
    weight_gradient(t, &p, u - second, active.at, s->ffn, p.gradient, s->hidden);
    weight_gradient(t, &p, u - first, p.came, s->hidden, p.gradient_between, s->ffn);
    dl_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)s->hidden, (int)s->n, (int)memo->given.n, 1, memo->given.at,
            (int)s->hidden, memo->gradient.at, (int)s->n, 1, (u - router)->gradients, (int)s->n);
    dl_rows_free(&active);
}

const struct dl_unit_kind dl_unit_experts = {"experts", forward, backward, weights};
