/* convnet.c - dlsim's convolutional networks as far as they are a chain of convolutions, pools, fully connected layers
 * and relus. They are trained with cross entropy, whether they list it or not. What the elements may say dlsim has
 * checked. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "validation/mpi/models/models.h"

struct building {
    struct dl_train *t;
    struct dl_image at;  /* what flows */
    size_t n_layers;     /* so far */
    bool has_parameters; /* someone before needs a gradient */
    struct dl_error *err;
};

static size_t number(const json_t *element, const char *key, size_t absent)
{
    const json_t *const value = json_object_get(element, key);
    return value ? (size_t)json_number_value(value) : absent;
}

static bool flag(const json_t *element, const char *key, bool absent)
{
    const json_t *const value = json_object_get(element, key);
    return value ? json_is_true(value) : absent;
}

static bool is(const json_t *element, const char *kind)
{
    return strcmp(json_string_value(json_object_get(element, "kind")), kind) == 0;
}

static struct dl_window *slide(struct building *b, const json_t *element, size_t channels)
{
    struct dl_window *const w = dl_arena_alloc(b->t->arena, sizeof *w);
    const size_t side = number(element, "window", 1), stride = number(element, "stride", 1);
    const size_t pad = number(element, "pad", 0);
    *w = (struct dl_window){.in = b->at, .side = side, .stride = stride, .pad = pad};
    w->out = (struct dl_image){channels, (b->at.height + 2 * pad - side) / stride + 1,
                               (b->at.width + 2 * pad - side) / stride + 1};
    b->at = w->out;
    return w;
}

static void add_conv(struct building *b, struct dl_real_layer *layer, const json_t *element)
{
    const size_t filters = number(element, "filters", 1);
    const size_t windows = b->at.channels * number(element, "window", 1) * number(element, "window", 1);
    const size_t inputs = windows + flag(element, "bias", true);
    struct dl_window *const w = slide(b, element, filters);
    struct dl_unit *const u = dl_add_parameters(layer, &dl_unit_conv, inputs, filters, (struct dl_range){0, inputs},
                                                (struct dl_range){0, filters});
    u->scale = sqrt(2 / (double)windows); /* as dl_add_linear's */
    u->is_first = !b->has_parameters;
    u->more = w;
}

static void add_fc(struct building *b, struct dl_real_layer *layer, const json_t *element)
{
    const size_t inputs = b->at.channels * b->at.height * b->at.width, outputs = number(element, "outputs", 1);
    dl_add_linear(b->t, layer, inputs, outputs, DL_UNIT_WHOLE)->is_first = !b->has_parameters;
    if (flag(element, "bias", true)) dl_add_vector(b->t, layer, &dl_unit_bias, 1, outputs, false);
    b->at = (struct dl_image){outputs, 1, 1};
}

static enum dl_status check(const struct building *b, struct dl_json element)
{
    static const char *const refused[] = {"groups", "batchnorm", "round_up"};
    const json_t *const e = element.value;
    if (!is(e, "conv") && !is(e, "pool") && !is(e, "fc") && !is(e, "relu") && !is(e, "cross_entropy"))
        return dl_fail(b->err, DL_IMPOSSIBLE, element.where,
                       "must be conv, pool, fc, relu or cross_entropy to be trained");
    for (size_t i = 0; i < DL_COUNT(refused); i++)
        if (json_object_get(e, refused[i]))
            return dl_fail(b->err, DL_IMPOSSIBLE, element.where, "'%s' is not trained; leave it out", refused[i]);
    return DL_OK;
}

/* Layers of other stages are made too, since what flows goes through them, and then dropped. */
static enum dl_status add_layer(struct building *b, struct dl_json element)
{
    struct dl_real_layer *const layer = &b->t->layers[b->n_layers];
    const json_t *const e = element.value;
    if (check(b, element)) return b->err->status;
    if (is(e, "conv")) add_conv(b, layer, e);
    if (is(e, "pool")) dl_add_unit(layer, &dl_unit_max_pool)->more = slide(b, e, b->at.channels);
    if (is(e, "fc")) add_fc(b, layer, e);
    if (is(e, "relu") || flag(e, "relu", false)) dl_add_unit(layer, &dl_unit_relu);
    b->has_parameters |= is(e, "conv") || is(e, "fc");
    if (b->n_layers + 1 == b->t->model.n_layers) dl_add_unit(layer, &dl_unit_loss);
    if (!dl_is_here(b->t, b->n_layers)) layer->n_units = 0;
    b->n_layers++;
    return DL_OK;
}

static enum dl_status build(struct dl_train *t, struct dl_error *err)
{
    const json_t *const input = json_object_get(t->workload_doc.value, "input");
    const struct dl_json list = dl_json_member(t->workload_doc, "layers", t->arena);
    struct building b = {.t = t, .err = err};
    size_t *const sizes[] = {&b.at.channels, &b.at.height, &b.at.width};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) *sizes[i] = (size_t)json_integer_value(json_array_get(input, i));
    t->sample_inputs = b.at.channels * b.at.height * b.at.width;
    t->rows_per_sample = 1;
    assert(t->tensor.n == 1); /* or the strategy has been refused */
    for (size_t i = 0; i < json_array_size(list.value); i++)
        if (add_layer(&b, dl_json_element(list, i, t->arena))) return err->status;
    t->n_classes = b.at.channels * b.at.height * b.at.width;
    return DL_OK;
}

const struct dl_model_kind dl_model_convnet = {.name = "convnet", .build = build, .sample = dl_sample_class};
