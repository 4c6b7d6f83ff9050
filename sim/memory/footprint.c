#include "sim/memory/footprint.h"

#include <math.h>

double dl_moment_total(const struct dl_moment *m)
{
    double sum = 0;
    for (int i = 0; i < DL_MEMORY_HOST; i++) sum += m->bytes[i];
    return sum;
}

/* ---- what is there ---- */

static void widen(struct dl_live *live, const struct dl_memory_ops *ops)
{
    for (size_t i = 0; i < ops->n; i++) {
        const uint32_t layer = dl_memory_layer(ops, i), end = live->first_layer + live->n_layers;
        const uint32_t first = live->n_layers && live->first_layer < layer ? live->first_layer : layer;
        live->n_layers = (live->n_layers && end > layer ? end : layer + 1) - first;
        live->first_layer = first;
    }
}

void dl_live_init(struct dl_live *live, const struct dl_program *p)
{
    *live = (struct dl_live){0};
    widen(live, &p->begin);
    for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++) widen(live, &p->items[i]->memory);
    widen(live, &p->end.memory);
    live->bytes = dl_alloc(((size_t)live->n_layers * DL_N_TENSORS + 1) * sizeof *live->bytes);
}

void dl_live_release(struct dl_live *live) { dl_free(live->bytes); }

static double *tag_of(const struct dl_live *live, const struct dl_memory_ops *ops, size_t i)
{
    return &live->bytes[(size_t)(dl_memory_layer(ops, i) - live->first_layer) * DL_N_TENSORS + ops->items[i].tensor];
}

/* ---- a block ---- */

/* What an op adds. Each micro-batch has tensors of its own, and all have the same. */
static double change(const struct dl_memory_op *op, double *there)
{
    const double before = *there;
    if (dl_tensor_is_of_micro(op->tensor)) {
        if (!op->frees) *there = op->bytes;
        return op->frees ? -before : op->bytes;
    }
    *there = op->frees ? 0 : fmax(before, op->bytes);
    return *there - before;
}

/* Sums may end a rounding beside nothing. */
static void drop_rest(struct dl_moment *left, const struct dl_moment *moved)
{
    const double rounding = 1e-12;
    for (int i = 0; i < DL_N_MEMORY_CATEGORIES; i++)
        if (fabs(left->bytes[i]) < rounding * moved->bytes[i]) left->bytes[i] = 0;
}

static void reduce(const struct dl_memory_ops *ops, const struct dl_live *live, struct dl_memory_footprint *f)
{
    struct dl_moment moved = {0};
    for (size_t i = 0; i < ops->n; i++) {
        const enum dl_memory_category category = dl_tensor_category(ops->items[i].tensor);
        const double more = change(&ops->items[i], tag_of(live, ops, i));
        f->left.bytes[category] += more;
        moved.bytes[category] += fabs(more);
        if (more > 0 && dl_moment_total(&f->left) > dl_moment_total(&f->fullest)) f->fullest = f->left;
        f->most_on_host = fmax(f->most_on_host, f->left.bytes[DL_MEMORY_HOST]);
    }
    drop_rest(&f->left, &moved);
}

/* Of the tags that ops name, one by one: there are far fewer than layers and tensors. */
static void copy_tags(const struct dl_live *live, const struct dl_memory_ops *ops, double *out)
{
    for (size_t i = 0; i < ops->n; i++) out[i] = *tag_of(live, ops, i);
}

static bool are_as_before(const struct dl_live *live, const struct dl_memory_ops *ops, const double *before)
{
    size_t i = 0;
    while (i < ops->n && *tag_of(live, ops, i) == before[i]) i++;
    return i == ops->n;
}

struct dl_memory_footprint dl_memory_footprint(const struct dl_memory_ops *ops, struct dl_live *live)
{
    struct dl_memory_footprint f = {0};
    double *const before = dl_alloc((ops->n + 1) * sizeof *before);
    copy_tags(live, ops, before);
    reduce(ops, live, &f);
    live->version += !are_as_before(live, ops, before);
    dl_free(before);
    return f;
}
