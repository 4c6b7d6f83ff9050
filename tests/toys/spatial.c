/* spatial.c - convolutions cut in space: each rank has some rows of every image, and gets from its neighbours the rows
 * beyond its own that windows reach. */
#include "tests/toys/toys.h"

struct options {
    int64_t ways;
};
static const struct options defaults = {.ways = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "ranks that share an image"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->ways[DL_AXIS_CONTEXT] = (uint32_t)((const struct options *)options)->ways;
    return DL_OK;
}

static bool is_product(const struct dl_kernel *k) { return k->kind != DL_KERNEL_MEMORY && k->kind != DL_KERNEL_CONV; }
static bool is_convolution(const struct dl_kernel *k) { return k->kind == DL_KERNEL_CONV; }

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const uint32_t ways = (uint32_t)((const struct options *)options)->ways;
    const struct dl_kernel *const conv = dl_check_find(what, is_convolution);
    if (!conv || dl_check_find(what, is_product))
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "cuts networks of convolutions alone");
    return dl_check_ways(what, ways, conv->side, "the rows of an image", err);
}

/* Rows from both neighbours: of the input forward, of the gradient of the result backward. */
static enum dl_status exchange_rows(const struct dl_event *ev, double channels, struct dl_stack *below,
                                    struct dl_error *err)
{
    const struct dl_kernel *const k = &ev->kernel;
    const double samples = k->m / (k->side * k->side), rows = (k->window - 1) / 2;
    const double value_bytes = dl_precision_bytes(dl_stack_setting(below)->precision);
    const struct dl_event halo = {.kind = DL_EV_COLLECTIVE,
                                  .pass = ev->pass,
                                  .cause = DL_CAUSE_CONTEXT,
                                  .layer = ev->layer,
                                  .op = DL_SENDRECV,
                                  .members.digits = DL_ALONG_CONTEXT,
                                  .bytes = samples * rows * k->side * channels * value_bytes};
    return halo.bytes > 0 && (dl_emit(below, &halo, err) || dl_emit(below, &halo, err)) ? err->status : DL_OK;
}

static enum dl_status compute(const struct dl_event *ev, double ways, struct dl_stack *below, struct dl_error *err)
{
    struct dl_event mine = *ev;
    struct dl_kernel *const k = &mine.kernel;
    const bool is_conv = k->kind == DL_KERNEL_CONV, of_weights = k->pass == DL_PASS_WEIGHT_GRADIENT;
    const double channels = ev->pass == DL_BACKWARD ? k->k : k->k / (k->window * k->window);
    if (is_conv && !of_weights && exchange_rows(ev, channels, below, err)) return err->status;
    *(!is_conv ? &k->elements : of_weights ? &k->k : &k->m) /= ways;
    k->side = 0; /* its height and width are no longer alike */
    return dl_emit(below, &mine, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (ev->kind == DL_EV_COMPUTE && ev->pass != DL_OPTIMIZER && o->ways > 1)
        return compute(ev, (double)o->ways, below, err);
    return dl_emit(below, ev, err);
}

const struct dl_strategy dl_toy_spatial = {
    .name = "spatial",
    .doc = "images cut into rows over `ways` ranks",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
};
