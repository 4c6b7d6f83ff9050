/* convnet_elements.c - what a convolutional network can be made of. */
#include "workloads/convnet.h"

#include <math.h>

#include "workloads/workloads.h"

/* A kernel that is called as its element is, whose name is free: what it does decides what it costs. */
static void pass(struct dl_net *net, const char *name, const char *operation, double forward, double backward)
{
    dl_tape_pass(&net->tape,
                 &(struct dl_tape_pass){name, DL_IMAGE, .forward = forward,
                                        .input_gradient = net->has_weights ? backward : 0, .operation = operation});
}

/* Its backward needs the sign of its result, which is saved where that goes. */
static void add_relu(struct dl_net *net, const char *name)
{
    const double elements = dl_net_elements(net, &net->at);
    pass(net, name, name, 2 * elements, 3 * elements);
    net->at.from_relu = true;
    net->at.parts = 1;
}

/* Its result does not tell what its backward needs: whether what it was given was below 0, or above 6. */
static void add_relu_that_saves(struct dl_net *net, const char *name)
{
    dl_net_save(net);
    add_relu(net, name);
    net->at.from_relu = net->at.is_saved = false;
}

/* For elements whose own backward does not need what they are given. */
static void save_for_relu(struct dl_net *net)
{
    if (net->at.from_relu) dl_net_save(net);
}

/* The same pixels with other channels, made anew. */
static struct dl_tensor pixels_of(const struct dl_tensor *t, double channels)
{
    return dl_tensor_of(channels, t->depth, t->height, t->width);
}

/* Mean and variance first, so both ways read twice; gain and bias of each channel. */
static void add_batchnorm(struct dl_net *net)
{
    const double elements = dl_net_elements(net, &net->at);
    dl_net_save(net);
    net->has_weights = true;
    dl_tape_pass(&net->tape, &(struct dl_tape_pass){"batchnorm", DL_IMAGE, .forward = 3 * elements,
                                                    .input_gradient = 5 * elements, .width = net->at.channels});
    net->tape.layer->parameters_outside += 2 * net->at.channels;
    net->tape.layer->n_tensors += 2;
    net->at = pixels_of(&net->at, net->at.channels);
}

static void add_what_follows(struct dl_net *net, const struct dl_element *e)
{
    if (e->batchnorm) add_batchnorm(net);
    if (e->relu) add_relu(net, "relu");
    if (e->leaky_relu) add_relu_that_saves(net, "relu");
    if (e->relu6) add_relu_that_saves(net, "relu6");
}

static const char *name_of(const struct dl_element *e) { return e->name ? e->name : e->kind; }

static enum dl_status refuse_window(const struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    return dl_fail(err, DL_IMPOSSIBLE, e->where,
                   "a window of %lld with pad %lld and stride %lld does not fit on %g x %g", (long long)e->window,
                   (long long)e->pad, (long long)e->stride, net->at.height, net->at.width);
}

static double windows_on(double size, const struct dl_element *e)
{
    const double steps = (size + 2 * (double)e->pad - (double)e->window) / (double)e->stride;
    return steps < 0 ? 0 : (e->round_up ? ceil(steps) : floor(steps)) + 1;
}

/* Where the window of an element comes to lie. */
static struct dl_tensor slide(const struct dl_net *net, const struct dl_element *e, double channels)
{
    const double depth = net->is_volume ? windows_on(net->at.depth, e) : 1;
    return dl_tensor_of(channels, depth, windows_on(net->at.height, e), windows_on(net->at.width, e));
}

static bool is_empty(const struct dl_tensor *t) { return t->depth < 1 || t->height < 1 || t->width < 1; }

/* Kernels know squares: that with as many pixels as a cube of this side. */
static double as_square(const struct dl_net *net, int64_t side)
{
    return net->is_volume ? (double)side * sqrt((double)side) : (double)side;
}

static double in_window(const struct dl_net *net, const struct dl_element *e)
{
    const double square = (double)(e->window * e->window);
    return net->is_volume ? square * (double)e->window : square;
}

static struct dl_pixels picture_of(const struct dl_net *net, const struct dl_tensor *t)
{
    const struct dl_pixels none = {0}, all = {t->height, t->width};
    return net->is_volume ? none : all;
}

/* One way or the other, its windows go with its channels or with its filters. */
static const struct dl_kernel_dimensions of_convolution = {.m = DL_PIXELS, .n = DL_BY_FILTER, .k = DL_BY_CHANNEL};

/* A product has weights: from here on gradients are needed. */
static void add_product(struct dl_net *net, struct dl_product *p)
{
    dl_net_save(net);
    p->is_first = !net->has_weights;
    dl_tape_product(&net->tape, p);
    net->has_weights = true;
}

/* Libraries of convolutions leave it to a kernel of its own; its gradient comes with the product's. */
static void add_bias(struct dl_net *net)
{
    dl_tape_pass(&net->tape, &(struct dl_tape_pass){"bias", DL_IMAGE, .forward = 2 * dl_net_elements(net, &net->at),
                                                    .width = net->at.channels});
}

static enum dl_status add_conv(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    const double groups = (double)e->groups, filters = (double)e->filters;
    const struct dl_tensor out = slide(net, e, filters);
    if (is_empty(&out)) return refuse_window(net, e, err);
    if (fmod(net->at.channels, groups) != 0 || e->filters % e->groups)
        return dl_fail(err, DL_IMPOSSIBLE, e->where, "%lld groups do not divide %g channels and %lld filters",
                       (long long)e->groups, net->at.channels, (long long)e->filters);
    struct dl_product p = {.name = name_of(e),
                           .batch = groups,
                           .m = net->build->samples * out.depth * out.height * out.width,
                           .n = filters / groups,
                           .k = net->at.channels / groups * in_window(net, e),
                           .by = of_convolution,
                           .is_convolution = true,
                           .given = picture_of(net, &net->at),
                           .made = picture_of(net, &out),
                           .window = as_square(net, e->window),
                           .stride = as_square(net, e->stride),
                           .pad = (double)e->pad,
                           .has_bias = e->bias};
    add_product(net, &p);
    net->at = out;
    if (e->bias) add_bias(net);
    add_what_follows(net, e);
    return DL_OK;
}

/* The transpose of a convolution: each pixel becomes a window, and overlaps are added. */
static enum dl_status add_deconv(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    const double filters = (double)e->filters;
    const double grown = (double)(e->window + e->output_pad - 2 * e->pad), stride = (double)e->stride;
    const double depth = net->is_volume ? (net->at.depth - 1) * stride + grown : 1;
    const struct dl_tensor out =
        dl_tensor_of(filters, depth, (net->at.height - 1) * stride + grown, (net->at.width - 1) * stride + grown);
    if (is_empty(&out)) return refuse_window(net, e, err);
    struct dl_product p = {.name = name_of(e),
                           .batch = 1,
                           .m = net->build->samples * net->at.depth * net->at.height * net->at.width,
                           .n = filters * in_window(net, e),
                           .k = net->at.channels,
                           .by = of_convolution,
                           .is_convolution = true};
    add_product(net, &p);
    net->at = out;
    if (e->bias) {
        dl_tape_pass(&net->tape, &(struct dl_tape_pass){"bias", DL_IMAGE, .weight_gradient = dl_net_elements(net, &out),
                                                        .width = filters});
        net->tape.layer->parameters_outside += filters;
        net->tape.layer->n_tensors++;
    }
    add_what_follows(net, e);
    return DL_OK;
}

static enum dl_status add_fc(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)err;
    struct dl_product p = {.name = name_of(e),
                           .batch = 1,
                           .m = net->build->samples,
                           .n = (double)e->outputs,
                           .k = net->at.channels * net->at.depth * net->at.height * net->at.width,
                           .by = {.m = DL_BY_SAMPLE, .n = DL_BY_FILTER, .k = DL_BY_CHANNEL},
                           .has_bias = e->bias};
    add_product(net, &p);
    net->at = dl_tensor_of((double)e->outputs, 1, 1, 1);
    add_what_follows(net, e);
    return DL_OK;
}

/* Those of volumes are other kernels. */
static const char *pool_of(const struct dl_net *net, const struct dl_element *e)
{
    return e->mean ? "mean_pool" : net->is_volume ? "volume_pool" : "pool";
}

static void shrink(struct dl_net *net, const struct dl_element *e, double windows, struct dl_tensor out)
{
    const double in = dl_net_elements(net, &net->at), left = dl_net_elements(net, &out);
    dl_net_save(net);
    dl_tape_pass(&net->tape, &(struct dl_tape_pass){name_of(e), DL_IMAGE, .forward = in + left,
                                                    .input_gradient = net->has_weights ? 2 * in + left : 0,
                                                    .operation = pool_of(net, e), .width = windows});
    net->at = out;
}

static enum dl_status add_pool(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    const struct dl_tensor out = slide(net, e, net->at.channels);
    if (is_empty(&out)) return refuse_window(net, e, err);
    const double windows_each_way = as_square(net, e->window) / as_square(net, e->stride); /* that hold an input */
    shrink(net, e, windows_each_way * windows_each_way, out);
    if (!e->mean) net->tape.layer->saved.pooled_elements += dl_net_elements(net, &out);
    return DL_OK;
}

/* A mean over all pixels. */
static enum dl_status add_global_pool(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)err;
    const struct dl_tensor out = dl_tensor_of(net->at.channels, 1, 1, 1);
    const double moved = dl_net_elements(net, &net->at) + dl_net_elements(net, &out);
    save_for_relu(net);
    pass(net, name_of(e), e->kind, moved, moved);
    net->at = out;
    return DL_OK;
}

static enum dl_status add_batchnorm_alone(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)e, (void)err;
    add_batchnorm(net);
    return DL_OK;
}

static enum dl_status add_relu_alone(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)e, (void)err;
    add_relu(net, "relu");
    return DL_OK;
}

/* Local response normalisation (Krizhevsky et al. 2012, section 3.3) keeps the sums that it divided by. */
static enum dl_status add_lrn(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)err;
    const double elements = dl_net_elements(net, &net->at);
    dl_net_save(net);
    pass(net, name_of(e), e->kind, 3 * elements, 5 * elements);
    net->tape.layer->saved.outside_bytes += DL_ACTIVATION_BYTES * elements;
    net->at = pixels_of(&net->at, net->at.channels);
    return DL_OK;
}

static enum dl_status add_dropout(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)err;
    const double elements = dl_net_elements(net, &net->at);
    const double moved = (2 + DL_MASK_BYTES / DL_ACTIVATION_BYTES) * elements;
    save_for_relu(net);
    pass(net, name_of(e), e->kind, moved, moved);
    net->tape.layer->saved.outside_bytes += DL_MASK_BYTES * elements;
    net->at = pixels_of(&net->at, net->at.channels);
    return DL_OK;
}

/* Where ways part, the gradients that come back on them are added; those of joined parts are slices of what came back,
 * whose pixels are apart from each other. */
static enum dl_status add_parting(struct dl_net *net, const struct dl_element *e, size_t n_ways, struct dl_error *err)
{
    const struct dl_tape_pass sum = {"add", DL_IMAGE,
                                     .input_gradient = 3 * dl_net_elements(net, &net->at) / net->at.parts,
                                     .operation = net->at.parts > 1 ? "add_slices" : NULL};
    const size_t n_sums = net->has_weights ? (n_ways - 1) * (size_t)net->at.parts : 0;
    if (dl_net_count(net, n_sums, e->where, err)) return err->status;
    for (size_t i = 0; i < n_sums; i++) dl_tape_pass(&net->tape, &sum);
    return DL_OK;
}

/* Take what a branch ended with into what they become together. */
static enum dl_status join(struct dl_net *net, bool adds, struct dl_tensor *out, struct dl_json branch,
                           struct dl_error *err)
{
    const struct dl_tensor *const end = &net->at;
    if (end->depth != out->depth || end->height != out->height || end->width != out->width ||
        (adds && end->channels != out->channels))
        return dl_fail(err, DL_IMPOSSIBLE, branch.where, "ends with %g x %g x %g, the first branch with %g x %g x %g",
                       end->channels, end->height, end->width, out->channels, out->height, out->width);
    if (!adds) out->channels += end->channels;
    out->parts += end->parts;
    return DL_OK;
}

static struct dl_tensor joined_from(const struct dl_tensor *first)
{
    struct dl_tensor out = pixels_of(first, first->channels);
    out.parts = first->parts;
    return out;
}

static enum dl_status add_branches(struct dl_net *net, struct dl_json branches, bool adds, struct dl_tensor *out,
                                   struct dl_error *err)
{
    const struct dl_tensor input = net->at;
    for (size_t i = 0; i < json_array_size(branches.value); i++) {
        const struct dl_json branch = dl_json_element(branches, i, net->build->arena);
        net->at = input;
        if (dl_net_add_list(net, branch, err)) return err->status;
        if (net->at.is_loss)
            return dl_fail(err, DL_IMPOSSIBLE, branch.where, "ends in a loss; what leads to one is a \"side\"");
        save_for_relu(net);
        if (i > 0 && join(net, adds, out, branch, err)) return err->status;
        if (i == 0) *out = joined_from(&net->at);
    }
    return DL_OK;
}

/* A sum has no work backward, what was joined is cut again. */
static enum dl_status join_branches(struct dl_net *net, const struct dl_element *e, bool adds, struct dl_error *err)
{
    const size_t n = json_array_size(e->branches.value);
    if (n < 2) return dl_fail(err, DL_RANGE, e->branches.where, "must be at least two lists of elements");
    dl_net_save(net);
    struct dl_tensor out;
    if (add_parting(net, e, n, err) || add_branches(net, e->branches, adds, &out, err)) return err->status;
    if (!e->keeps_parts) out.parts = 1;
    net->at = out;
    const double elements = dl_net_elements(net, &out);
    dl_tape_pass(&net->tape, &(struct dl_tape_pass){name_of(e), DL_IMAGE, .operation = adds ? "add" : "concat",
                                                    .forward = (adds ? (double)n + 1 : 2) * elements,
                                                    .input_gradient = adds || !net->has_weights ? 0 : 2 * elements});
    add_what_follows(net, e);
    return DL_OK;
}

static enum dl_status add_add(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    return join_branches(net, e, true, err);
}

static enum dl_status add_concat(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    return join_branches(net, e, false, err);
}

static enum dl_status add_repeat(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    for (int64_t i = 0; i < e->times; i++)
        if (dl_net_add_list(net, e->layers, err)) return err->status;
    return DL_OK;
}

/* Beside the main way: what it ends in goes nowhere but into a loss of its own. */
static enum dl_status add_side(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    dl_net_save(net);
    const struct dl_tensor main_way = net->at;
    if (add_parting(net, e, 2, err) || dl_net_add_list(net, e->layers, err)) return err->status;
    net->at = main_way;
    return DL_OK;
}

/* Of each pixel, whose channels are the classes. */
static enum dl_status add_cross_entropy(struct dl_net *net, const struct dl_element *e, struct dl_error *err)
{
    (void)e, (void)err;
    save_for_relu(net);
    dl_tape_cross_entropy(&net->tape, dl_net_elements(net, &net->at), DL_IMAGE);
    net->at = pixels_of(&net->at, 1);
    net->at.is_loss = true;
    return DL_OK;
}

/* The only list; a new element is a function, a line here, and its bit at the keys that it has. */
const struct dl_element_kind dl_element_kinds[] = {
    {"conv", DL_CONV, add_conv},
    {"deconv", DL_DECONV, add_deconv},
    {"pool", DL_POOL, add_pool},
    {"global_pool", DL_GLOBAL_POOL, add_global_pool},
    {"fc", DL_FC, add_fc},
    {"batchnorm", DL_BATCHNORM, add_batchnorm_alone},
    {"relu", DL_RELU_ALONE, add_relu_alone},
    {"lrn", DL_LRN, add_lrn},
    {"dropout", DL_DROPOUT, add_dropout},
    {"add", DL_ADD, add_add},
    {"concat", DL_CONCAT, add_concat},
    {"side", DL_SIDE, add_side},
    {"repeat", DL_REPEAT, add_repeat},
    {"cross_entropy", DL_CROSS_ENTROPY, add_cross_entropy},
};
const size_t dl_n_element_kinds = DL_COUNT(dl_element_kinds);
