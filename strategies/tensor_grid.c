#include "strategies/tensor_grid.h"

enum dl_product_of dl_product_of(const struct dl_event *ev)
{
    if (ev->pass != DL_BACKWARD) return DL_PRODUCT_FORWARD;
    return ev->gradient == DL_GRADIENT_WEIGHT ? DL_PRODUCT_WEIGHT : DL_PRODUCT_INPUT;
}

enum dl_status dl_grid_send(const struct dl_event *ev, enum dl_op op, dl_digits along, double elements,
                            struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    if (dl_ranks_count(&s->ranks, along) == 1) return DL_OK;
    struct dl_event collective = *ev;
    collective.kind = DL_EV_COLLECTIVE;
    collective.cause = DL_CAUSE_TENSOR;
    collective.op = op;
    collective.members.digits = along;
    collective.bytes = elements * dl_precision_bytes(s->precision);
    return dl_emit(below, &collective, err);
}

/* ---- what cannot be ---- */

typedef enum dl_status (*check_fn)(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err);

static enum dl_status check_kernels(const struct dl_check *what, check_fn check, struct dl_error *err)
{
    for (size_t l = 0; l < what->model->n_layers; l++) {
        const struct dl_layer *const layer = &what->model->layers[l];
        if (dl_check_heads(what, "x", what->setting->grid[0], layer, err)) return err->status;
        for (size_t i = 0; i < layer->n_forward; i++) {
            const struct dl_work *const work = &layer->forward[i];
            const bool is_product = work->kind == DL_WORK_KERNEL && work->kernel.kind != DL_KERNEL_MEMORY &&
                                    work->kernel.cut != DL_CUT_BATCH; /* those are of heads */
            if (is_product && check(what, &work->kernel, err)) return err->status;
        }
    }
    return DL_OK;
}

static enum dl_status not_cut(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "grid"),
                   "needs every product cut by columns or rows, and %s of %s is not; 1d would do", k->name,
                   what->model->name);
}

/* Columns of A and of B are along x, rows of B along y; the rows of A are too, by samples, and so they are along z. */
static enum dl_status check_summa_kernel(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    const uint32_t x = what->setting->grid[0], y = what->setting->grid[1];
    if (k->cut == DL_CUT_NOTHING) return not_cut(what, k, err);
    if (dl_check_parts(what, "x", x, k->n, "the columns of a matrix", err) ||
        dl_check_parts(what, "x", x, k->k, "the columns of a matrix", err))
        return err->status;
    return dl_check_parts(what, "y", y, k->k, "the rows of a matrix", err);
}

enum dl_status dl_summa_check(const struct dl_check *what, struct dl_error *err)
{
    const uint32_t y = what->setting->grid[1], z = what->setting->grid[2];
    if (dl_check_parts(what, "y", y, what->model->samples, "the samples of a micro-batch", err) ||
        dl_check_parts(what, "z", z, what->model->samples / y, "the samples of a row", err))
        return err->status;
    return check_kernels(what, check_summa_kernel, err);
}

static enum dl_status check_axonn_kernel(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    const uint32_t x = what->setting->grid[0], y = what->setting->grid[1];
    const bool swapped = k->cut == DL_CUT_K;
    if (k->cut != DL_CUT_N && k->cut != DL_CUT_K) return not_cut(what, k, err);
    if (dl_check_parts(what, "x", x, swapped ? k->k : k->n, "a side of a matrix", err)) return err->status;
    return dl_check_parts(what, "y", y, swapped ? k->n : k->k, "a side of a matrix", err);
}

enum dl_status dl_axonn_check(const struct dl_check *what, struct dl_error *err)
{
    if (dl_check_parts(what, "z", what->setting->grid[2], what->model->samples, "the samples of a micro-batch", err))
        return err->status;
    return check_kernels(what, check_axonn_kernel, err);
}
