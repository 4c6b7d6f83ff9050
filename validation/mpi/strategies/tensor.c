/* tensor.c - matrices cut by columns, then by rows: what the marks mean for data, with and without sequence parallelism
 * (Megatron-LM); for grids see summa.c. */
#include <string.h>

#include "strategies/operators.h"
#include "validation/mpi/layers/units.h"

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    const double grid = dl_option_number(level, "grid");
    if (grid > DL_GRID_SUMMA) return dl_fail(err, DL_IMPOSSIBLE, level->where, "grids are trained in 2d only");
    if (dl_option_number(level, "overlap_chunks") > 1)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'overlap_chunks' is not trained; leave it out");
    t->summa = grid == DL_GRID_SUMMA;
    t->sequence = dl_option_number(level, "sequence") != 0 && t->s->ways[DL_AXIS_TENSOR] > 1;
    if (t->summa) t->product = &dl_product_summa;
    return DL_OK;
}

struct dl_rows dl_tensor_enter(struct dl_train *t, struct dl_rows x)
{
    if (!t->sequence) return x;
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_SEQUENCE);
    const struct dl_rows whole = dl_rows_new(x.n * (size_t)t->tensor.n, x.width);
    memcpy(whole.at + (size_t)t->tensor.rank * x.n * x.width, x.at, x.n * x.width * sizeof *x.at);
    dl_ring_gather(&t->tensor, whole.at, whole.n * whole.width);
    dl_rows_free(&x);
    dl_switch_cause(&t->timeline, before);
    return whole;
}

struct dl_rows dl_tensor_leave(struct dl_train *t, struct dl_rows x)
{
    const enum dl_cause before = dl_switch_cause(&t->timeline, t->sequence ? DL_CAUSE_SEQUENCE : DL_CAUSE_TENSOR);
    struct dl_rows own = x;
    if (t->sequence) {
        dl_ring_scatter(&t->tensor, x.at, x.n * x.width);
        own = dl_rows_new(x.n / (size_t)t->tensor.n, x.width);
        memcpy(own.at, x.at + (size_t)t->tensor.rank * own.n * own.width, own.n * own.width * sizeof *own.at);
        dl_rows_free(&x);
    } else {
        t->algorithm->sum(&t->tensor, x.at, x.n * x.width);
    }
    dl_switch_cause(&t->timeline, before);
    return own;
}

/* Gradients of parameters that ranks hold in common but that have seen a part of the tokens each. */
static void sum_partial(struct dl_train *t, struct dl_real_layer *layer, enum dl_partial partial,
                        const struct dl_team *team)
{
    size_t n = 0;
    for (size_t i = 0; i < layer->n_units; i++)
        if (layer->units[i].partial == partial) n += layer->units[i].n_parameters;
    if (!n || team->n == 1) return;
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_TENSOR);
    dl_real *const all = dl_alloc(n * sizeof *all);
    for (int back = 0; back < 2; back++) {
        size_t at = 0;
        for (size_t i = 0; i < layer->n_units; i++) {
            const struct dl_unit *const u = &layer->units[i];
            if (u->partial != partial || !u->n_parameters) continue;
            memcpy(back ? u->gradients : all + at, back ? all + at : u->gradients, u->n_parameters * sizeof *all);
            at += u->n_parameters;
        }
        if (!back) dl_sum_ring.sum(team, all, n);
    }
    dl_free(all);
    dl_switch_cause(&t->timeline, before);
}

static void layer_done(struct dl_train *t, struct dl_real_layer *layer)
{
    if (layer->n_backwards && !t->by_layer) return; /* buckets by layer give gradients away after every backward */
    sum_partial(t, layer, DL_SUM_OVER_TENSOR, &t->tensor);
    sum_partial(t, layer, DL_SUM_OVER_COLUMN, &t->column);
}

const struct dl_real_strategy dl_real_tensor = {.name = "tensor", .begin = begin, .layer_done = layer_done};
