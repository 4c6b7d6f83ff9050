/* optimizer.c - SGD, momentum and Adam over the parts of the buckets that this rank updates. */
#include <math.h>
#include <string.h>

#include "validation/mpi/train.h"

struct part {
    dl_real *values, *moments[2];
    const dl_real *gradients;
    size_t n;
    double rate;
    uint64_t step; /* from 1 on */
};

static void descend(const struct part *p)
{
    for (size_t i = 0; i < p->n; i++) p->values[i] -= (dl_real)p->rate * p->gradients[i];
}

static void descend_with_momentum(const struct part *p)
{
    const dl_real kept = (dl_real)0.9; /* Sutskever et al., ICML 2013 */
    for (size_t i = 0; i < p->n; i++) {
        p->moments[0][i] = kept * p->moments[0][i] + p->gradients[i];
        p->values[i] -= (dl_real)p->rate * p->moments[0][i];
    }
}

/* Kingma and Ba, ICLR 2015, algorithm 1 with its default constants. */
static void adapt(const struct part *p)
{
    const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    const double bias1 = 1 - pow(beta1, (double)p->step), bias2 = 1 - pow(beta2, (double)p->step);
    for (size_t i = 0; i < p->n; i++) {
        const double g = (double)p->gradients[i];
        const double m = beta1 * (double)p->moments[0][i] + (1 - beta1) * g;
        const double v = beta2 * (double)p->moments[1][i] + (1 - beta2) * g * g;
        p->moments[0][i] = (dl_real)m;
        p->moments[1][i] = (dl_real)v;
        p->values[i] -= (dl_real)(p->rate * (m / bias1) / (sqrt(v / bias2) + epsilon));
    }
}

static const struct optimizer {
    const char *name; /* as in strategy files */
    int n_moments;
    double rate; /* if none is given */
    void (*update)(const struct part *part);
} optimizers[] = {{"sgd", 0, 0.1, descend}, {"momentum", 1, 0.02, descend_with_momentum}, {"adam", 2, 0.003, adapt}};

static const struct optimizer *find(const struct dl_train *t)
{
    for (size_t i = 0; i < DL_COUNT(optimizers); i++)
        if (strcmp(optimizers[i].name, t->s->optimizer) == 0) return &optimizers[i];
    return NULL;
}

enum dl_status dl_optimizer_check(const struct dl_train *t, struct dl_error *err)
{
    if (find(t)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(t->strategy_doc, "optimizer", t->arena).where,
                   "must be sgd, momentum or adam to be trained, got %s", t->s->optimizer);
}

void dl_optimizer_update(struct dl_train *t)
{
    const struct optimizer *const o = find(t);
    const double rate = t->options->learning_rate > 0 ? t->options->learning_rate : o->rate;
    for (size_t i = 0; i < t->n_buckets; i++) {
        struct dl_bucket *const b = &t->buckets[i];
        for (int j = 0; j < o->n_moments; j++)
            if (!b->moments[j]) b->moments[j] = dl_alloc((b->own.n + 1) * sizeof(dl_real));
        o->update(&(struct part){.values = dl_own_values(b),
                                 .gradients = dl_own_gradients(b),
                                 .moments = {b->moments[0], b->moments[1]},
                                 .n = b->own.n,
                                 .rate = rate,
                                 .step = t->step + 1});
    }
}
