/* spatial.c - convolutions cut in space: each rank has some rows of every image, and gets from its neighbours the rows
 * beyond its own that windows reach. */
#include <math.h>

#include "strategies/operators.h"
#include "tests/toys/toys.h"

struct options {
    int64_t ways;
};
static const struct options defaults = {.ways = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "ranks that share an image"},
};

static const struct dl_brought axes[] = {{.name = "rows", .ways = offsetof(struct options, ways)}};

static bool is_product(const struct dl_kernel *k) { return k->kind != DL_KERNEL_MEMORY && k->kind != DL_KERNEL_CONV; }
static bool is_convolution(const struct dl_kernel *k) { return k->kind == DL_KERNEL_CONV; }

/* Each rank must begin and end with whole windows' steps. */
static enum dl_status check_convolution(const struct dl_check *what, const struct dl_kernel *k, uint32_t ways,
                                        struct dl_error *err)
{
    if (k->given.height != k->stride * k->made.height)
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "%s makes %g rows of %g", k->name, k->made.height,
                       k->given.height);
    return dl_check_ways(what, ways, k->made.height, "the rows of an image", err);
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const uint32_t ways = (uint32_t)((const struct options *)options)->ways;
    if (!dl_model_find(what->model, is_convolution) || dl_model_find(what->model, is_product))
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "cuts networks of convolutions alone");
    for (size_t l = 0; l < what->model->n_layers; l++) {
        const struct dl_layer *const layer = &what->model->layers[l];
        for (size_t i = 0; i < layer->n_forward; i++)
            if (is_convolution(&layer->forward[i].kernel) &&
                check_convolution(what, &layer->forward[i].kernel, ways, err))
                return err->status;
    }
    return DL_OK;
}

/* Windows begin `pad` rows above what a rank has and end as many below as remain beyond a step: rows of the input
 * forward, of the gradient of the result backward, where windows are mirrored and pixels are steps apart. What is above
 * comes from the rank before, which sends it on; beyond the image there is nothing. */
static enum dl_status exchange_rows(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_kernel *const k = &ev->kernel;
    const bool backward = ev->pass == DL_BACKWARD;
    const double samples = k->m / (k->made.height * k->made.width), reach = fmax(k->window - k->stride - k->pad, 0);
    const double above = backward ? ceil(reach / k->stride) : k->pad,
                 under = backward ? ceil(k->pad / k->stride) : reach;
    const double channels = backward ? k->k : k->k / (k->window * k->window);
    const double row = samples * channels * (backward ? k->made.width : k->given.width);
    const dl_digits rows = dl_along_own(s, &axes[0]);
    const struct dl_event halo = {.kind = DL_EV_COLLECTIVE,
                                  .pass = ev->pass,
                                  .cause = DL_CAUSE_CONTEXT,
                                  .layer = ev->layer,
                                  .op = DL_HALO,
                                  .members.digits = rows,
                                  .bytes = dl_ranks_count(&s->ranks, rows) * (above + under) * row *
                                           dl_precision_bytes(s->precision),
                                  .back_fraction = under / (above + under)};
    return above + under > 0 ? dl_emit(below, &halo, err) : DL_OK;
}

static enum dl_status compute(const struct dl_event *ev, double ways, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event mine = *ev;
    struct dl_kernel *const k = &mine.kernel;
    const bool is_conv = is_convolution(k), of_weights = k->pass == DL_PASS_WEIGHT_GRADIENT;
    if (is_conv && !of_weights && exchange_rows(ev, below, err)) return err->status;
    dl_kernel_cut(k, NULL, &(struct dl_layout){.cut[DL_HEIGHT] = dl_along_own(s, &axes[0])}, &s->ranks);
    k->given.height /= ways;
    k->made.height /= ways;
    return dl_emit(below, &mine, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const double ways = (double)((const struct options *)options)->ways;
    if (ev->kind == DL_EV_COMPUTE && ev->pass != DL_OPTIMIZER && ways > 1) return compute(ev, ways, below, err);
    struct dl_event mine = *ev;
    mine.inside_bytes /= ways;
    mine.outside_bytes /= ways;
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_toy_spatial = {
    .name = "spatial",
    .doc = "images cut into rows over `ways` ranks",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .axes = axes,
    .n_axes = DL_COUNT(axes),
    .check = check,
    .rewrite = rewrite,
};
