#include "validation/mpi/layers/units.h"

#include <math.h>
#include <string.h>

struct dl_rows dl_rows_new(size_t n, size_t width)
{
    return (struct dl_rows){dl_alloc((n * width + 1) * sizeof(dl_real)), n, width};
}

struct dl_rows dl_rows_copy(struct dl_rows rows)
{
    const struct dl_rows copy = dl_rows_new(rows.n, rows.width);
    memcpy(copy.at, rows.at, rows.n * rows.width * sizeof *rows.at);
    return copy;
}

struct dl_rows dl_keep_gradient(struct dl_train *t, const struct dl_unit *u, struct dl_memo *memo, struct dl_rows dy)
{
    (void)t, (void)u;
    memo->gradient = dl_rows_copy(dy);
    return dy;
}

void dl_rows_free(struct dl_rows *rows)
{
    dl_free(rows->at);
    *rows = (struct dl_rows){0};
}

/* ---- making layers ---- */

struct dl_unit *dl_add_unit(struct dl_real_layer *layer, const struct dl_unit_kind *kind)
{
    DL_GROW(layer->units, layer->n_units, layer->capacity);
    struct dl_unit *const u = &layer->units[layer->n_units++];
    *u = (struct dl_unit){.kind = kind};
    return u;
}

struct dl_unit *dl_add_parameters(struct dl_real_layer *layer, const struct dl_unit_kind *kind, size_t inputs,
                                  size_t outputs, struct dl_range rows, struct dl_range cols)
{
    const uint64_t most = 256; /* units with parameters in a layer */
    uint64_t before = 0;       /* marks do not count: not everyone has them */
    for (size_t i = 0; i < layer->n_units; i++) before += layer->units[i].n_parameters > 0;
    struct dl_unit *const u = dl_add_unit(layer, kind);
    u->id = layer->is->index * most + before;
    u->inputs = inputs;
    u->outputs = outputs;
    u->rows = rows;
    u->cols = cols;
    u->n_parameters = rows.n * cols.n;
    return u;
}

struct dl_unit *dl_add_linear(struct dl_train *t, struct dl_real_layer *layer, size_t inputs, size_t outputs,
                              enum dl_unit_cut cut)
{
    const size_t me = (size_t)t->tensor.rank, ways = (size_t)t->tensor.n;
    struct dl_range rows = {0, inputs}, cols = {0, outputs};
    if (t->summa) {
        rows = dl_part_of(inputs, (size_t)t->column.rank, (size_t)t->column.n);
        cols = dl_part_of(outputs, (size_t)t->row.rank, (size_t)t->row.n);
    } else if (cut == DL_UNIT_BY_COLUMNS) {
        cols = dl_part_of(outputs, me, ways);
    } else if (cut == DL_UNIT_BY_ROWS) {
        rows = dl_part_of(inputs, me, ways);
    }
    struct dl_unit *const u = dl_add_parameters(layer, &dl_unit_linear, inputs, outputs, rows, cols);
    u->scale = sqrt(2 / (double)inputs); /* He et al., ICCV 2015, for a relu after it */
    if (!t->summa && t->sequence && cut == DL_UNIT_WHOLE) u->partial = DL_SUM_OVER_TENSOR;
    return u;
}

struct dl_unit *dl_add_vector(struct dl_train *t, struct dl_real_layer *layer, const struct dl_unit_kind *kind,
                              size_t vectors, size_t width, bool inside)
{
    const struct dl_range all = {0, vectors};
    const struct dl_range cols = inside && !t->summa ? dl_part_of(width, (size_t)t->tensor.rank, (size_t)t->tensor.n)
                                                     : dl_cols_outside(t, width);
    struct dl_unit *const u = dl_add_parameters(layer, kind, vectors, width, all, cols);
    if (t->summa)
        u->partial = DL_SUM_OVER_COLUMN;
    else if (t->sequence && !inside)
        u->partial = DL_SUM_OVER_TENSOR;
    return u;
}

/* A grid's products do all by themselves. */
void dl_add_mark(struct dl_train *t, struct dl_real_layer *layer, const struct dl_unit_kind *kind)
{
    if (t->tensor.n > 1 && !t->summa) dl_add_unit(layer, kind);
}

/* ---- who has which rows ---- */

struct dl_range dl_rows_outside(const struct dl_train *t)
{
    const size_t n = (size_t)t->s->microbatch * t->rows_per_sample;
    if (t->summa) return dl_part_of(n, (size_t)t->column.rank, (size_t)t->column.n);
    if (t->sequence) return dl_part_of(n, (size_t)t->tensor.rank, (size_t)t->tensor.n);
    return (struct dl_range){0, n};
}

struct dl_range dl_cols_outside(const struct dl_train *t, size_t width)
{
    if (t->summa) return dl_part_of(width, (size_t)t->row.rank, (size_t)t->row.n);
    return (struct dl_range){0, width};
}

/* ---- samples ---- */

/* The number of a sample among all samples of the training. */
static uint64_t sample_number(const struct dl_train *t, uint64_t step, uint32_t micro, size_t i)
{
    const uint64_t batch = (uint64_t)t->s->global_batch, size = (uint64_t)t->s->microbatch;
    return step * batch + (t->at[DL_AXIS_DATA] * t->s->micros + micro) * size + i;
}

/* Where the samples of a micro-batch of this rank begin. */
static size_t first_sample(const struct dl_train *t, uint64_t step, uint32_t micro)
{
    return (step * t->s->micros + micro) * (size_t)t->s->microbatch;
}

void dl_draw_samples(struct dl_train *t)
{
    const size_t n = first_sample(t, t->options->steps, 0);
    t->inputs = dl_alloc(n * t->sample_inputs * sizeof *t->inputs);
    t->targets = dl_alloc(n * t->rows_per_sample * sizeof *t->targets);
    for (uint64_t step = 0; step < t->options->steps; step++)
        for (uint32_t micro = 0; micro < t->s->micros; micro++)
            for (size_t i = 0; i < (size_t)t->s->microbatch; i++) {
                const size_t at = first_sample(t, step, micro) + i;
                t->kind->sample(t, sample_number(t, step, micro, i), t->inputs + at * t->sample_inputs,
                                t->targets + at * t->rows_per_sample);
            }
}

const uint32_t *dl_targets(const struct dl_train *t)
{
    return t->targets + first_sample(t, t->step, t->micro) * t->rows_per_sample;
}

struct dl_rows dl_inputs(const struct dl_train *t)
{
    const struct dl_rows all = {t->inputs + first_sample(t, t->step, t->micro) * t->sample_inputs,
                                (size_t)t->s->microbatch * t->rows_per_sample, t->sample_inputs / t->rows_per_sample};
    return dl_rows_copy(all);
}
