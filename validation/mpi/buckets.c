/* buckets.c - the parameters of a stage, drawn as if nobody cut them, in the buckets that are exchanged together. */
#include <assert.h>
#include <gsl/gsl_randist.h>
#include <limits.h>

#include "sim/core/random.h"
#include "validation/mpi/train.h"

/* ---- the layers of the stage ---- */

/* The last position first, and of each the last layer: the order of the backward. */
static void list_layers(struct dl_train *t)
{
    t->stage_layers = dl_alloc(t->model.n_layers * sizeof *t->stage_layers);
    for (size_t i = t->model.n_layers; i-- > 0;)
        for (uint32_t chunk = 0; chunk < t->s->chunks; chunk++) {
            const struct dl_position *const p = dl_position_of(t, chunk);
            if (i >= p->first_layer && i < p->end_layer) t->stage_layers[t->n_stage_layers++] = &t->layers[i];
        }
}

static size_t count_parameters(const struct dl_real_layer *layer, enum dl_set set)
{
    size_t n = 0;
    for (size_t i = 0; i < layer->n_units; i++)
        if (layer->units[i].set == set) n += layer->units[i].n_parameters;
    return n;
}

/* ---- buckets ---- */

static void add_bucket(struct dl_train *t, enum dl_set set, uint32_t first, uint32_t n_layers, size_t n)
{
    if (!n) return;
    assert(n <= INT_MAX); /* as MPI counts */
    DL_GROW(t->buckets, t->n_buckets, t->buckets_capacity);
    t->buckets[t->n_buckets++] =
        (struct dl_bucket){.set = set, .n = n, .own = {0, n}, .first_layer = first, .n_layers = n_layers};
}

static bool ends_position(const struct dl_train *t, uint32_t i)
{
    return i + 1 == t->n_stage_layers || t->stage_layers[i + 1]->is + 1 != t->stage_layers[i]->is;
}

/* As strategies/data.c: full with the layer that reaches its size, or with the last one of the position. */
static void deal(struct dl_train *t, enum dl_set set)
{
    uint32_t first = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_stage_layers; i++) {
        n += count_parameters(t->stage_layers[i], set);
        const bool full = t->by_layer || (double)(n * sizeof(dl_real)) >= t->bucket_bytes;
        const bool ends = i + 1 == t->n_stage_layers || (t->overlap && (full || ends_position(t, i))) || t->by_layer;
        if (!ends) continue;
        add_bucket(t, set, first, i + 1 - first, n);
        first = i + 1;
        n = 0;
    }
}

void dl_bucket_point(struct dl_train *t, const struct dl_bucket *b)
{
    size_t at = 0;
    for (uint32_t i = b->first_layer; i < b->first_layer + b->n_layers; i++)
        for (size_t j = 0; j < t->stage_layers[i]->n_units; j++) {
            struct dl_unit *const u = &t->stage_layers[i]->units[j];
            if (u->set != b->set) continue;
            u->values = b->values ? b->values + at : NULL;
            u->gradients = b->gradients ? b->gradients + at : NULL;
            at += u->n_parameters;
        }
}

/* ---- what they hold at first ---- */

/* All of the parameters are drawn, those that are here are kept. */
static void draw_unit(const struct dl_train *t, const struct dl_unit *u)
{
    if (u->scale <= 0) return;
    gsl_rng *const rng = dl_random_new(t->options->seed, "parameters", u->id);
    for (size_t i = 0; i < u->inputs; i++)
        for (size_t j = 0; j < u->outputs; j++) {
            const double value = gsl_ran_gaussian(rng, u->scale);
            if (i - u->rows.from < u->rows.n && j - u->cols.from < u->cols.n)
                u->values[(i - u->rows.from) * u->cols.n + j - u->cols.from] = (dl_real)value;
        }
    gsl_rng_free(rng);
}

static void draw_bucket(struct dl_train *t, struct dl_bucket *b)
{
    b->values = dl_alloc(b->n * sizeof *b->values);
    b->gradients = dl_alloc(b->n * sizeof *b->gradients);
    dl_bucket_point(t, b);
    for (uint32_t i = b->first_layer; i < b->first_layer + b->n_layers; i++)
        for (size_t j = 0; j < t->stage_layers[i]->n_units; j++)
            if (t->stage_layers[i]->units[j].set == b->set && t->stage_layers[i]->units[j].n_parameters)
                draw_unit(t, &t->stage_layers[i]->units[j]);
}

void dl_train_allocate(struct dl_train *t)
{
    list_layers(t);
    for (int set = 0; set < DL_N_SETS; set++) deal(t, (enum dl_set)set);
    for (size_t i = 0; i < t->n_buckets; i++) draw_bucket(t, &t->buckets[i]);
}

dl_real *dl_own_gradients(const struct dl_bucket *b)
{
    return b->own_gradients ? b->own_gradients : b->gradients + b->own.from;
}

dl_real *dl_own_values(const struct dl_bucket *b) { return b->own_values ? b->own_values : b->values + b->own.from; }

static void release_bucket(struct dl_bucket *b)
{
    dl_real *const blocks[] = {b->values,     b->gradients,  b->own_values, b->own_gradients,
                               b->moments[0], b->moments[1], b->error};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
}

void dl_train_release(struct dl_train *t)
{
    void *const blocks[] = {t->layers,
                            t->inputs,
                            t->targets,
                            t->buckets,
                            t->stage_layers,
                            t->sent,
                            t->timeline.moments.list,
                            t->timeline.exchanges.list};
    const struct dl_json docs[] = {t->strategy_doc, t->software_doc, t->workload_doc};
    for (size_t i = 0; i < t->n_buckets; i++) release_bucket(&t->buckets[i]);
    for (size_t i = 0; i < t->model.n_layers && t->layers; i++) dl_free(t->layers[i].units);
    if (t->lossy_random) gsl_rng_free(t->lossy_random);
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    for (size_t i = 0; i < DL_COUNT(docs); i++) json_decref(docs[i].value);
    dl_arena_free(t->arena);
}
