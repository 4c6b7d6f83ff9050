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

enum dl_status dl_grid_kernel(const struct dl_grid_kernels *kernels, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    if (ev->kernel.table > 0) return kernels->look_up(ev, below, err);
    if (ev->kernel.kind == DL_KERNEL_GEMM && !(ev->kernel.by.batch & DL_BY_INNER))
        return kernels->product(ev, below, err);
    struct dl_event mine = *ev;
    dl_operator_cut(&mine.kernel, dl_stack_setting(below));
    return dl_emit(below, &mine, err);
}

/* ---- what cannot be ---- */

enum dl_status dl_grid_check(const struct dl_check *what, dl_grid_check_fn check, struct dl_error *err)
{
    for (size_t l = 0; l < what->model->n_layers; l++) {
        const struct dl_layer *const layer = &what->model->layers[l];
        if (dl_check_heads(what, "x", what->setting->grid[0], layer, err)) return err->status;
        for (size_t i = 0; i < layer->n_forward; i++) {
            const struct dl_work *const work = &layer->forward[i];
            const bool is_product = work->kernel.kind != DL_KERNEL_MEMORY &&
                                    !(work->kernel.by.batch & DL_BY_INNER); /* those are of heads */
            if (is_product && check(what, &work->kernel, err)) return err->status;
        }
    }
    return DL_OK;
}

enum dl_status dl_grid_not_cut(const struct dl_check *what, const struct dl_kernel *k, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "grid"),
                   "needs every product cut by columns or rows, and %s of %s is not; 1d would do", k->name,
                   what->model->name);
}
