/* tensor_axonn.c - products on a grid of three dimensions (AxoNN; Singh et al., arXiv 2305.13525 and SC24,
 * arXiv 2502.08145).
 *
 *   A: rows over z, columns over y, the same along x       gather B over z
 *   B: rows over y, columns over x, each block cut over z  C = A B, summed over y
 *   C: rows over z, columns over x, the same along y       backward: dA = dC B^T, summed over x; dB = A^T dC, summed
 *                                                          and scattered over z
 * In every second product x and y change places, so that its A is the C of the one before; these are the layers that
 * Megatron cuts by rows. What is inside a pair is the same along y, what is outside along x. Gathered matrices are kept
 * for the backward (but recomputation gathers again). The sums of vectors are left out. */
#include "strategies/layer_memory.h"
#include "strategies/recompute.h"
#include "strategies/tensor_grid.h"

struct block {
    dl_digits rows, columns; /* of B */
    double n_rows, n_columns, depth;
    double blocks; /* of B, before the cut over z */
};

/* The rows of B are the inner dimension. */
static bool is_swapped(const struct dl_event *ev)
{
    const struct dl_kernel_dimensions *const by = &ev->kernel.by;
    const dl_dimensions rows[] = {
        [DL_PRODUCT_FORWARD] = by->k, [DL_PRODUCT_INPUT] = by->n, [DL_PRODUCT_WEIGHT] = by->m};
    return rows[dl_product_of(ev)] & DL_BY_INNER;
}

static struct block block_of(const struct dl_setting *s, bool swapped)
{
    const dl_digits rows = swapped ? DL_ALONG_X : DL_ALONG_Y;
    const dl_digits columns = swapped ? DL_ALONG_Y : DL_ALONG_X;
    return (struct block){.rows = rows,
                          .columns = columns,
                          .n_rows = dl_ranks_count(&s->ranks, rows),
                          .n_columns = dl_ranks_count(&s->ranks, columns),
                          .depth = s->grid[2],
                          .blocks = (double)s->grid[0] * s->grid[1]};
}

static enum dl_status gather(const struct dl_event *ev, double elements, struct dl_stack *below, struct dl_error *err)
{
    return dl_grid_send(ev, DL_ALLGATHER, DL_ALONG_Z, elements, below, err);
}

static enum dl_status scatter(const struct dl_event *ev, double elements, struct dl_stack *below, struct dl_error *err)
{
    return dl_grid_send(ev, DL_REDUCESCATTER, DL_ALONG_Z, elements, below, err);
}

static enum dl_status sum(const struct dl_event *piece, dl_digits over, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_kernel *const k = &piece->kernel;
    return dl_grid_send(piece, DL_ALLREDUCE, over, k->batch * k->m * k->n, below, err);
}

static enum dl_status product(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct block b = block_of(dl_stack_setting(below), is_swapped(ev));
    struct dl_event piece = *ev;
    struct dl_kernel *const k = &piece.kernel;
    switch (dl_product_of(ev)) {
    case DL_PRODUCT_FORWARD:
        if (gather(ev, k->batch * k->k * k->n / b.blocks, below, err)) return err->status;
        k->m /= b.depth, k->n /= b.n_columns, k->k /= b.n_rows;
        return dl_emit(below, &piece, err) ? err->status : sum(&piece, b.rows, below, err);
    case DL_PRODUCT_INPUT:
        k->m /= b.depth, k->n /= b.n_rows, k->k /= b.n_columns;
        return dl_emit(below, &piece, err) ? err->status : sum(&piece, b.columns, below, err);
    case DL_PRODUCT_WEIGHT: break;
    }
    k->m /= b.n_rows, k->n /= b.n_columns, k->k /= b.depth;
    return dl_emit(below, &piece, err) ? err->status : scatter(ev, k->batch * k->m * k->n, below, err);
}

/* The table is B, its rows over x; each rank finds those that it has. */
static enum dl_status look_up(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct block b = block_of(dl_stack_setting(below), true);
    const double elements = ev->kernel.table / b.blocks;
    struct dl_event part = *ev;
    part.kernel.elements /= b.blocks * b.depth;
    if (ev->pass != DL_BACKWARD) return gather(ev, elements, below, err) ? err->status : dl_emit(below, &part, err);
    return dl_emit(below, &part, err) ? err->status : scatter(ev, elements, below, err);
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    static const struct dl_grid_kernels kernels = {.look_up = look_up, .product = product};
    (void)o;
    return dl_grid_kernel(&kernels, ev, below, err);
}

/* ---- memory ---- */

static enum dl_status alloc_depth(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double bytes = (s->grid[2] - 1) * ev->layer->parameters_inside / s->parts.weights;
    return dl_emit_alloc(below, DL_TENSOR_DEPTH, ev, bytes * dl_precision_bytes(s->precision), err);
}

static bool is_recomputed(const struct dl_event *ev)
{
    return ev->layer->is_block && dl_recompute_of(ev->recomputed, ev->block) == DL_RECOMPUTE_BLOCKS;
}

static enum dl_status memory(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    if (ev->tensor == DL_TENSOR_PARAMETERS && ev->pass == DL_HOLD && !is_recomputed(ev))
        return alloc_depth(ev, below, err);
    if (ev->tensor != DL_TENSOR_RECOMPUTED || !is_recomputed(ev)) return DL_OK;
    return ev->kind == DL_EV_ALLOC ? alloc_depth(ev, below, err) : dl_emit_free(below, DL_TENSOR_DEPTH, ev, err);
}

static enum dl_status layer(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    if (ev->pass != DL_FORWARD || !is_recomputed(ev)) return DL_OK;
    return ev->kind == DL_EV_LAYER ? alloc_depth(ev, below, err) : dl_emit_free(below, DL_TENSOR_DEPTH, ev, err);
}

/* ---- what it takes and leaves ---- */

/* Of a table, whose rows are over x, each rank has found those that it has. */
static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    const struct dl_layout outside = {.cut = {[DL_SAMPLE] = DL_ALONG_Z, [DL_WIDTH] = DL_ALONG_Y}};
    struct dl_layout looking_up = outside;
    looking_up.cut[DL_INNER] = DL_ALONG_X;
    (void)o;
    return (struct dl_operator_layouts){.weights.cut = {[DL_WIDTH] = DL_ALONG_Y | DL_ALONG_Z, [DL_INNER] = DL_ALONG_X},
                                        .others.cut[DL_WIDTH] = DL_ALONG_Y,
                                        .inside.cut = {[DL_SAMPLE] = DL_ALONG_Z, [DL_INNER] = DL_ALONG_X},
                                        .outside = outside,
                                        .used = outside,
                                        .made = outside,
                                        .looked_up = dl_layout_result(&looking_up, DL_ACTIVATION)};
}

static enum dl_status check_kernel(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    const uint32_t x = what->setting->grid[0], y = what->setting->grid[1];
    const bool swapped = k->by.k & DL_BY_INNER;
    if (!((k->by.n | k->by.k) & DL_BY_INNER)) return dl_grid_not_cut(what, k, err);
    if (dl_check_parts(what, "x", x, swapped ? k->k : k->n, "a side of a matrix", err)) return err->status;
    return dl_check_parts(what, "y", y, swapped ? k->n : k->k, "a side of a matrix", err);
}

static enum dl_status check(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err)
{
    (void)o;
    if (dl_check_parts(what, "z", what->setting->grid[2], what->model->samples, "the samples of a micro-batch", err))
        return err->status;
    return dl_grid_check(what, check_kernel, err);
}

const struct dl_operator dl_operator_axonn = {
    .name = "axonn",
    .among = DL_ALONG_TENSOR,
    .layouts = layouts,
    .check = check,
    .kernel = kernel,
    .memory = memory,
    .layer = layer,
};
