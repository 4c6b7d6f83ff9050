/* mlp.c - fully connected layers with a relu between them, and a loss if it says so.
 *
 * Tensor parallelism cuts them in pairs, the first by columns and the second by rows, so a pair is a layer of the
 * model; one that is left over is not cut. What they end in is whole, and so is the loss. */
#include <stddef.h>
#include <string.h>

#include "workloads/tape.h"
#include "workloads/workloads.h"

enum loss { NO_LOSS, CROSS_ENTROPY };
static const char *const losses[] = {[NO_LOSS] = "none", [CROSS_ENTROPY] = "cross_entropy", NULL};

struct options {
    struct dl_int_list widths;
    int64_t loss;
    bool bias;
};
static const struct options defaults = {.bias = true};
static const struct dl_field fields[] = {
    {"widths", DL_INT_LIST, offsetof(struct options, widths), 1, 1 << 24, false, NULL, "of input, layers and output"},
    {"bias", DL_BOOL, offsetof(struct options, bias), 0, 0, true, NULL, "layers have biases; true if absent"},
    {"loss", DL_CHOICE, offsetof(struct options, loss), 0, 0, true, losses,
     "of the output, a number for each class; none if absent"},
};

struct net {
    const struct options *o;
    struct dl_tape tape;
    double samples;
};

static void add_fc(struct net *net, size_t i, struct dl_kernel_dimensions by)
{
    const double inputs = (double)net->o->widths.items[i], outputs = (double)net->o->widths.items[i + 1];
    dl_tape_product(&net->tape, &(struct dl_product){"fc", 1, net->samples, outputs, inputs, by,
                                                     .has_bias = net->o->bias, .is_first = i == 0});
}

static void add_relu(struct net *net, size_t i, dl_dimensions by)
{
    const double elements = net->samples * (double)net->o->widths.items[i + 1];
    dl_tape_pass(&net->tape,
                 &(struct dl_tape_pass){"relu", by, .forward = 2 * elements, .input_gradient = 3 * elements});
}

/* Layers i and i + 1, or only i if it is the last; the result of the first is what the second is given. */
static void build_pair(struct net *net, size_t i, struct dl_layer *layer, struct dl_arena *arena)
{
    const int64_t *const widths = net->o->widths.items;
    const size_t n = net->o->widths.n - 1;
    const bool is_pair = i + 1 < n;
    dl_tape_begin(&net->tape, layer, "fc");
    layer->is_block = true;
    layer->saved.input_bytes = DL_ACTIVATION_BYTES * net->samples * (double)widths[i];
    layer->saved.outside_bytes = layer->saved.input_bytes;
    if (is_pair) {
        add_fc(net, i, dl_first_of_pair);
        add_relu(net, i, DL_INSIDE);
        layer->saved.inside_bytes = DL_ACTIVATION_BYTES * net->samples * (double)widths[i + 1];
        add_fc(net, i + 1, dl_second_of_pair);
    } else {
        add_fc(net, i, (struct dl_kernel_dimensions){0});
    }
    const size_t last = is_pair ? i + 1 : i;
    if (last + 1 < n) add_relu(net, last, DL_ACTIVATION);
    layer->output_elements = net->samples * (double)widths[last + 1];
    dl_tape_end(&net->tape, arena);
}

static void build_loss(struct net *net, struct dl_layer *layer, struct dl_arena *arena)
{
    const double logits = net->samples * (double)net->o->widths.items[net->o->widths.n - 1];
    dl_tape_begin(&net->tape, layer, losses[net->o->loss]);
    layer->saved.input_bytes = DL_ACTIVATION_BYTES * logits;
    dl_tape_cross_entropy(&net->tape, logits, DL_ACTIVATION);
    layer->output_elements = net->samples; /* a loss for each */
    dl_tape_end(&net->tape, arena);
}

static enum dl_status build(const void *options, const struct dl_build *build, struct dl_model *out,
                            struct dl_error *err)
{
    const struct options *const o = options;
    if (o->widths.n < 2) return dl_refuse(build, "widths", err, "must be at least that of the input and of the output");
    struct net net = {.o = o, .samples = build->samples};
    const size_t n_pairs = o->widths.n / 2; /* of the n - 1 layers, rounded up */
    out->n_layers = n_pairs + (o->loss != NO_LOSS);
    out->layers = dl_arena_alloc(build->arena, out->n_layers * sizeof *out->layers);
    for (size_t i = 0; i < n_pairs; i++) build_pair(&net, 2 * i, &out->layers[i], build->arena);
    if (o->loss != NO_LOSS) build_loss(&net, &out->layers[n_pairs], build->arena);
    dl_model_set_flop(out);
    return DL_OK;
}

const struct dl_workload_kind dl_workload_mlp = {
    .name = "mlp",
    .doc = "fully connected layers with a relu between them",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
