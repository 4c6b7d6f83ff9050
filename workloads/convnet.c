/* convnet.c - a convolutional network as a list of elements; each at the top of the list is a layer of the model.
 *
 * {"kind": "convnet", "input": [3, 224, 224], "layers": [{"kind": "conv", "filters": 64, "window": 7, "stride": 2},
 * ...]} "add" and "concat" have branches that get the same input, "repeat" has a list of layers that it repeats;
 * "cross_entropy" is the loss of a classifier and ends the list.
 * Volumes have a depth before the height, and windows that are cubes.
 * Nothing is cut by tensor parallelism. Backward has what each element was given, once; a relu needs nothing of its
 * own. */
#include "workloads/convnet.h"

#include <stddef.h>
#include <string.h>

#include "workloads/workloads.h"

enum { max_elements = 100000 }; /* so that a slip in nested repeats is an error and not all of the memory */

struct options {
    struct dl_int_list input;
    struct dl_json layers;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"input", DL_INT_LIST, offsetof(struct options, input), 1, 1 << 20, false, NULL,
     "channels, height and width; or channels, depth, height and width"},
    {"layers", DL_LIST, offsetof(struct options, layers), 0, 0, false, NULL,
     "conv, deconv, pool, global_pool, fc, batchnorm, relu, lrn, dropout, add, concat, side, repeat, cross_entropy"},
};

#define MAX_SIZE 16777216.0 /* 2^24: no width or length of a network comes near */
#define AT(member) offsetof(struct dl_element, member)

/* Each key with the elements that have it. */
static const struct {
    int elements;
    struct dl_field field;
} keys[] = {
    {DL_ALL_ELEMENTS, {"kind", DL_TEXT, AT(kind), 0, 0, false, NULL, "what the element is"}},
    {DL_ALL_ELEMENTS, {"name", DL_TEXT, AT(name), 0, 0, true, NULL, "its name in reports; its kind if absent"}},
    {DL_CONV | DL_DECONV, {"filters", DL_INT, AT(filters), 1, MAX_SIZE, false, NULL, "channels of the output"}},
    {DL_CONV | DL_DECONV | DL_POOL, {"window", DL_INT, AT(window), 1, MAX_SIZE, false, NULL, "side of the window"}},
    {DL_CONV | DL_DECONV | DL_POOL, {"stride", DL_INT, AT(stride), 1, MAX_SIZE, true, NULL, "step; 1 if absent"}},
    {DL_CONV | DL_DECONV | DL_POOL, {"pad", DL_INT, AT(pad), 0, MAX_SIZE, true, NULL, "zeros on each side"}},
    {DL_POOL, {"round_up", DL_BOOL, AT(round_up), 0, 0, true, NULL, "windows may reach over the edge, as in Caffe"}},
    {DL_POOL, {"mean", DL_BOOL, AT(mean), 0, 0, true, NULL, "of a window, not its largest"}},
    {DL_CONV, {"groups", DL_INT, AT(groups), 1, MAX_SIZE, true, NULL, "parts of the channels that do not mix"}},
    {DL_DECONV, {"output_pad", DL_INT, AT(output_pad), 0, MAX_SIZE, true, NULL, "rows and columns more"}},
    {DL_FC, {"outputs", DL_INT, AT(outputs), 1, MAX_SIZE, false, NULL, "neurons"}},
    {DL_CONV | DL_DECONV | DL_FC, {"bias", DL_BOOL, AT(bias), 0, 0, true, NULL, "has a bias; true if absent"}},
    {DL_CONV | DL_DECONV | DL_FC, {"batchnorm", DL_BOOL, AT(batchnorm), 0, 0, true, NULL, "a batchnorm follows"}},
    {DL_CONV | DL_DECONV | DL_FC | DL_ADD | DL_CONCAT,
     {"relu", DL_BOOL, AT(relu), 0, 0, true, NULL, "a relu follows, after the batchnorm if there is one"}},
    {DL_CONV | DL_DECONV | DL_FC,
     {"leaky_relu", DL_BOOL, AT(leaky_relu), 0, 0, true, NULL,
      "a leaky relu follows, which is not done in place: what it is given is kept for its backward"}},
    {DL_CONV | DL_DECONV | DL_FC,
     {"relu6", DL_BOOL, AT(relu6), 0, 0, true, NULL, "a relu up to 6 follows, which keeps what it is given, too"}},
    {DL_ADD | DL_CONCAT,
     {"branches", DL_LIST, AT(branches), 0, 0, false, NULL, "lists that all get the same; [] passes it on"}},
    {DL_CONCAT,
     {"keeps_parts", DL_BOOL, AT(keeps_parts), 0, 0, true, NULL,
      "its parts stay: gradients are added to each by itself, as where layers get a list of all before them"}},
    {DL_REPEAT, {"times", DL_INT, AT(times), 1, MAX_SIZE, false, NULL, "how often"}},
    {DL_REPEAT | DL_SIDE, {"layers", DL_LIST, AT(layers), 0, 0, false, NULL, "what is repeated or leads away"}},
};

struct dl_tensor dl_tensor_of(double channels, double depth, double height, double width)
{
    return (struct dl_tensor){.channels = channels, .depth = depth, .height = height, .width = width, .parts = 1};
}

double dl_net_elements(const struct dl_net *net, const struct dl_tensor *t)
{
    return net->build->samples * t->channels * t->depth * t->height * t->width;
}

void dl_net_save(struct dl_net *net)
{
    if (net->at.is_saved) return;
    net->tape.layer->saved.outside_bytes += DL_ACTIVATION_BYTES * dl_net_elements(net, &net->at);
    net->at.is_saved = true;
}

enum dl_status dl_net_count(struct dl_net *net, size_t n, const char *where, struct dl_error *err)
{
    net->n_elements += n;
    if (net->n_elements <= max_elements) return DL_OK;
    return dl_fail(err, DL_RANGE, where, "with all repeats there are more than %d elements", max_elements);
}

static enum dl_status find_kind(struct dl_json from, const struct dl_element_kind **kind, struct dl_arena *arena,
                                struct dl_error *err)
{
    const struct dl_json name = dl_json_member(from, "kind", arena);
    if (!json_is_object(from.value)) return dl_fail(err, DL_TYPE, from.where, "must be an object with a \"kind\"");
    if (!json_is_string(name.value)) return dl_fail(err, DL_KEY, from.where, "needs the key 'kind'");
    const char **const names = dl_arena_alloc(arena, dl_n_element_kinds * sizeof *names);
    for (size_t i = 0; i < dl_n_element_kinds; i++) {
        names[i] = dl_element_kinds[i].name;
        if (strcmp(names[i], json_string_value(name.value))) continue;
        *kind = &dl_element_kinds[i];
        return DL_OK;
    }
    char nearest[DL_HINT];
    return dl_fail(err, DL_RANGE, name.where, "unknown element '%.60s'%s", json_string_value(name.value),
                   dl_suggestion(json_string_value(name.value), names, dl_n_element_kinds, nearest));
}

static enum dl_status read_element(struct dl_net *net, struct dl_json from, struct dl_element *e,
                                   const struct dl_element_kind **kind, struct dl_error *err)
{
    *e = (struct dl_element){.where = from.where, .stride = 1, .groups = 1, .bias = true};
    if (dl_net_count(net, 1, from.where, err) || find_kind(from, kind, net->build->arena, err)) return err->status;
    struct dl_field of_kind[DL_COUNT(keys)];
    size_t n = 0;
    for (size_t i = 0; i < DL_COUNT(keys); i++)
        if (keys[i].elements & (int)(*kind)->bit) of_kind[n++] = keys[i].field;
    if (dl_read(from, of_kind, n, e, net->build->arena, err)) return err->status;
    if (e->times && !json_array_size(e->layers.value)) /* nothing would ever reach the limit above */
        return dl_fail(err, DL_RANGE, from.where, "has nothing to repeat in 'layers'; name at least one element");
    if (e->relu + e->leaky_relu + e->relu6 > 1)
        return dl_fail(err, DL_RANGE, from.where, "has both '%s' and '%s'; one of them can follow",
                       e->relu ? "relu" : "leaky_relu", e->relu6 ? "relu6" : "leaky_relu");
    return DL_OK;
}

static enum dl_status add_element(struct dl_net *net, const struct dl_element *e, const struct dl_element_kind *kind,
                                  struct dl_error *err)
{
    if (net->at.is_loss) return dl_fail(err, DL_IMPOSSIBLE, e->where, "comes after the loss; nothing can follow it");
    if (kind->add(net, e, err)) return err->status;
    if (net->at.channels > MAX_SIZE || net->at.depth > MAX_SIZE || net->at.height > MAX_SIZE ||
        net->at.width > MAX_SIZE)
        return dl_fail(err, DL_RANGE, e->where, "makes %g x %g x %g, which is more than %g in one direction",
                       net->at.channels, net->at.height, net->at.width, MAX_SIZE);
    return DL_OK;
}

enum dl_status dl_net_add_list(struct dl_net *net, struct dl_json list, struct dl_error *err)
{
    if (!json_is_array(list.value)) return dl_fail(err, DL_TYPE, list.where, "must be a list of elements");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct dl_json from = dl_json_element(list, i, net->build->arena);
        struct dl_element e;
        const struct dl_element_kind *kind;
        if (read_element(net, from, &e, &kind, err) || add_element(net, &e, kind, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status add_layer(struct dl_net *net, const struct dl_element *e, const struct dl_element_kind *kind,
                                struct dl_error *err)
{
    DL_GROW(net->layers, net->n_layers, net->capacity);
    struct dl_layer *const layer = &net->layers[net->n_layers++];
    dl_tape_begin(&net->tape, layer, e->name ? e->name : e->kind);
    layer->saved.input_bytes = DL_ACTIVATION_BYTES * dl_net_elements(net, &net->at);
    layer->is_block = kind->bit != DL_CROSS_ENTROPY;
    const enum dl_status status = add_element(net, e, kind, err);
    layer->output_elements = dl_net_elements(net, &net->at);
    dl_tape_end(&net->tape, net->build->arena);
    return status;
}

/* Repeats at the top of the list become layers of their own. */
static enum dl_status add_layers(struct dl_net *net, struct dl_json list, struct dl_error *err)
{
    if (!json_is_array(list.value)) return dl_fail(err, DL_TYPE, list.where, "must be a list of elements");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct dl_json from = dl_json_element(list, i, net->build->arena);
        struct dl_element e;
        const struct dl_element_kind *kind;
        if (read_element(net, from, &e, &kind, err)) return err->status;
        if (!e.times && add_layer(net, &e, kind, err)) return err->status;
        for (int64_t n = 0; n < e.times; n++)
            if (add_layers(net, e.layers, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status build(const void *options, const struct dl_build *build, struct dl_model *out,
                            struct dl_error *err)
{
    const struct options *const o = options;
    const size_t n = o->input.n;
    if (n != 3 && n != 4)
        return dl_refuse(build, "input", err, "must be [channels, height, width] or [channels, depth, height, width]");
    const int64_t *const input = o->input.items;
    struct dl_net net = {.build = build, .is_volume = n == 4};
    net.at = dl_tensor_of((double)input[0], n == 4 ? (double)input[1] : 1, (double)input[n - 2], (double)input[n - 1]);
    if (add_layers(&net, o->layers, err)) goto out;
    if (!net.has_weights) {
        dl_refuse(build, "layers", err, "has no conv or fc, so there is nothing to train");
        goto out;
    }
    out->n_layers = net.n_layers;
    out->layers = dl_arena_alloc(build->arena, net.n_layers * sizeof *out->layers);
    memcpy(out->layers, net.layers, net.n_layers * sizeof *out->layers);
    dl_model_set_flop(out);
out:
    dl_free(net.layers);
    return err->status;
}

const struct dl_workload_kind dl_workload_convnet = {
    .name = "convnet",
    .doc = "a convolutional network as a list of layers",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
