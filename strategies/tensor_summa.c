/* tensor_summa.c - products by panels on a grid (SUMMA; Optimus, Xu et al., arXiv 2104.05343), with copies in depth
 * (2.5-D; Tesseract, Wang et al., arXiv 2105.14500).
 *
 *              A (y z) x (x)       B (y) x (x)        C (y z) x (x)
 *   C  = A B      panel of A along the rows (x), panel of B along the columns (y), then the product of both
 *   dA = dC B^T   panel of B along the columns, the product, its sum along the rows
 *   dB = A^T dC   panel of A along the rows, the product, its sum along the columns; at last the sum over depth (z)
 *
 * A step moves 1/panels of each matrix; with as many panels as rows and columns these are the blocks of one rank. A
 * panel is sent, then used: nothing overlaps, as in both papers. What norms sum along a row, two values a token, and
 * the sums of vectors are left out. */
#include "strategies/tensor_grid.h"

static uint32_t common_divisor(uint32_t a, uint32_t b) { return b ? common_divisor(b, a % b) : a; }

struct summa {
    const struct dl_event *ev;
    struct dl_stack *below;
    double x, y, rows; /* rows of A: over y and z */
    uint32_t panels;
    double shares;      /* of B, among ranks that have some of the experts each */
    double left, right; /* elements of A and of B that one panel brings to a rank */
};

/* The least number of panels of which each is in one column and in one row. */
static struct summa begin(const struct dl_event *ev, struct dl_stack *below)
{
    const struct dl_setting *const setting = dl_stack_setting(below);
    const uint32_t *const grid = setting->grid;
    const uint32_t panels = grid[0] / common_divisor(grid[0], grid[1]) * grid[1];
    return (struct summa){.ev = ev,
                          .below = below,
                          .x = grid[0],
                          .y = grid[1],
                          .rows = (double)grid[1] * grid[2],
                          .panels = panels,
                          .shares = dl_kernel_is_of_experts(&ev->kernel) ? dl_expert_parts(setting) : 1};
}

static enum dl_status along_row(const struct summa *s, enum dl_op op, struct dl_error *err)
{
    return dl_grid_send(s->ev, op, DL_ALONG_X, s->left, s->below, err);
}

static enum dl_status along_column(const struct summa *s, enum dl_op op, struct dl_error *err)
{
    return dl_grid_send(s->ev, op, DL_ALONG_Y, s->right / s->shares, s->below, err);
}

static enum dl_status forward(struct summa *s, struct dl_event piece, struct dl_error *err)
{
    struct dl_kernel *const k = &piece.kernel;
    k->m /= s->rows, k->n /= s->x, k->k /= s->panels;
    s->left = k->batch * k->m * k->k;
    s->right = k->batch * k->k * k->n;
    for (uint32_t i = 0; i < s->panels; i++)
        if (along_row(s, DL_BROADCAST, err) || along_column(s, DL_BROADCAST, err) || dl_emit(s->below, &piece, err))
            return err->status;
    return DL_OK;
}

static enum dl_status input_gradient(struct summa *s, struct dl_event piece, struct dl_error *err)
{
    struct dl_kernel *const k = &piece.kernel;
    k->m /= s->rows, k->n /= s->panels, k->k /= s->x;
    s->left = k->batch * k->m * k->n;
    s->right = k->batch * k->n * k->k;
    for (uint32_t i = 0; i < s->panels; i++)
        if (along_column(s, DL_BROADCAST, err) || dl_emit(s->below, &piece, err) || along_row(s, DL_REDUCE, err))
            return err->status;
    return DL_OK;
}

static enum dl_status sum_over_depth(const struct summa *s, double elements_of_matrix, struct dl_error *err)
{
    return dl_grid_send(s->ev, DL_ALLREDUCE, DL_ALONG_Z, elements_of_matrix / (s->x * s->y * s->shares), s->below, err);
}

static enum dl_status weight_gradient(struct summa *s, struct dl_event piece, struct dl_error *err)
{
    struct dl_kernel *const k = &piece.kernel;
    k->m /= s->panels, k->n /= s->x, k->k /= s->rows;
    s->left = k->batch * k->k * k->m;
    s->right = k->batch * k->m * k->n;
    for (uint32_t i = 0; i < s->panels; i++)
        if (along_row(s, DL_BROADCAST, err) || dl_emit(s->below, &piece, err) || along_column(s, DL_REDUCE, err))
            return err->status;
    const struct dl_kernel *const whole = &s->ev->kernel;
    return sum_over_depth(s, whole->batch * whole->m * whole->n, err);
}

static enum dl_status product(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    struct summa s = begin(ev, below);
    switch (dl_product_of(ev)) {
    case DL_PRODUCT_FORWARD: return forward(&s, *ev, err);
    case DL_PRODUCT_INPUT: return input_gradient(&s, *ev, err);
    case DL_PRODUCT_WEIGHT: break;
    }
    return weight_gradient(&s, *ev, err);
}

/* The table is B. */
static enum dl_status look_up(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    struct summa s = begin(ev, below);
    struct dl_event part = *ev;
    part.kernel.elements /= s.x * s.rows;
    s.right = ev->kernel.table / s.x / s.panels;
    const bool is_gradient = ev->pass == DL_BACKWARD;
    if (is_gradient && dl_emit(below, &part, err)) return err->status;
    for (uint32_t i = 0; i < s.panels; i++)
        if (along_column(&s, is_gradient ? DL_REDUCE : DL_BROADCAST, err)) return err->status;
    return is_gradient ? sum_over_depth(&s, ev->kernel.table, err) : dl_emit(below, &part, err);
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    static const struct dl_grid_kernels kernels = {.look_up = look_up, .product = product};
    (void)o;
    return dl_grid_kernel(&kernels, ev, below, err);
}

/* ---- what it takes and leaves ---- */

static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    const dl_digits rows = DL_ALONG_Y | DL_ALONG_Z;
    const struct dl_layout outside = {.cut = {[DL_SAMPLE] = rows, [DL_WIDTH] = DL_ALONG_X}};
    (void)o;
    return (struct dl_operator_layouts){.weights.cut = {[DL_WIDTH] = DL_ALONG_Y, [DL_INNER] = DL_ALONG_X},
                                        .others.cut[DL_WIDTH] = DL_ALONG_X | DL_ALONG_Y,
                                        .inside.cut = {[DL_SAMPLE] = rows, [DL_INNER] = DL_ALONG_X},
                                        .outside = outside,
                                        .used = outside,
                                        .made = outside,
                                        .looked_up = outside};
}

/* Columns of A and of B are along x, rows of B along y; the rows of A are too, by samples, and so they are along z. */
static enum dl_status check_kernel(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    const uint32_t x = what->setting->grid[0], y = what->setting->grid[1];
    if (!(dl_kernel_all_dimensions(k) & (DL_BY_WIDTH | DL_BY_INNER))) return dl_grid_not_cut(what, k, err);
    if (dl_check_parts(what, "x", x, k->n, "the columns of a matrix", err) ||
        dl_check_parts(what, "x", x, k->k, "the columns of a matrix", err))
        return err->status;
    return dl_check_parts(what, "y", y, k->k, "the rows of a matrix", err);
}

static enum dl_status check(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err)
{
    (void)o;
    const uint32_t y = what->setting->grid[1], z = what->setting->grid[2];
    if (dl_check_parts(what, "y", y, what->model->samples, "the samples of a micro-batch", err) ||
        dl_check_parts(what, "z", z, what->model->samples / y, "the samples of a row", err))
        return err->status;
    return dl_grid_check(what, check_kernel, err);
}

const struct dl_operator dl_operator_summa = {
    .name = "summa",
    .among = DL_ALONG_TENSOR,
    .layouts = layouts,
    .check = check,
    .kernel = kernel,
};
