/* wafer.c - a wafer of small cores with their own memory, as Cerebras' CS machines in weight streaming: activations
 * stay on the wafer, the weights of a layer come in from outside, are used once and forgotten; gradients of weights go
 * out (Lie 2022, Hot Chips 34 and IEEE Micro 43:3; Cerebras, Weight Streaming whitepaper).
 *
 * Every core holds a part of the result and adds to it each weight that passes times its activations; weights that are
 * zero are never sent, so unstructured sparsity saves stream, fabric and arithmetic. The time is the longest of
 *
 *     arithmetic   ceil(results / cores) * k * density at the core's rate
 *     stream       weights, or their gradients, between wafer and outside
 *     fabric       weights and partial sums, each over one row or column of cores
 *     memory       activations from and to the cores' own memories
 *
 * So what goes between wafer and outside is in the prices of products: weights in forward and backward, gradients once.
 * Gradients of several wafers are summed on their way where the network can. */
#include <math.h>

#include "sim/cost/device_models.h"

struct options {
    double cores, compute_fraction, bandwidth_fraction, fabric_bytes_per_s, stream_bytes_per_s, weight_density;
};
static const struct options defaults = {.weight_density = 1};
static const struct dl_field fields[] = {
    {"cores", DL_NUMBER, offsetof(struct options, cores), 1, 1e9, false, NULL, "of the wafer"},
    {"compute_fraction", DL_NUMBER, offsetof(struct options, compute_fraction), 0.001, 1, false, NULL,
     "share of a core's peak that it reaches"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.001, 1, false, NULL,
     "share of the bandwidth of the cores' memories"},
    {"fabric_bytes_per_s", DL_NUMBER, offsetof(struct options, fabric_bytes_per_s), 1, 1e21, false, NULL,
     "between neighbours, all together"},
    {"stream_bytes_per_s", DL_NUMBER, offsetof(struct options, stream_bytes_per_s), 1, 1e18, false, NULL,
     "of weights, between the wafer and what holds them"},
    {"weight_density", DL_NUMBER, offsetof(struct options, weight_density), 0.001, 1, true, NULL,
     "share of the weights that is not zero; 1 if absent"},
};

/* Weights of the kernel, all of them; 0 where both operands are activations. */
static double weights(const struct dl_kernel *k)
{
    if (dl_kernel_is_core_attention(k)) return 0;
    return k->batch * (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->m * k->n : k->n * k->k);
}

static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double density = weights(k) > 0 ? o->weight_density : 1;
    const double value_bytes = dl_precision_operand_bytes(precision), sent = weights(k) * density;
    const double core_flop_per_s = d->peak_flop_per_s[precision] * o->compute_fraction / o->cores;
    const double flop_per_result = dl_kernel_flop(k) / (k->batch * k->m * k->n);
    const double arithmetic_s = ceil(k->batch * k->m * k->n / o->cores) * flop_per_result * density / core_flop_per_s;
    const double hops = sqrt(o->cores);
    const double fabric_s = (sent + k->batch * k->m * k->n) * hops * value_bytes / o->fabric_bytes_per_s;
    const double stream_s = sent * value_bytes / o->stream_bytes_per_s;
    return fmax(arithmetic_s, fmax(fabric_s, stream_s));
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double memory_s = dl_kernel_bytes(k, precision) / (d->memory_bytes_per_s * o->bandwidth_fraction);
    const double busy_s = k->kind == DL_KERNEL_MEMORY ? dl_inner_products_s(d, k, precision) / o->compute_fraction
                                                      : product_s(d, k, precision);
    return (struct dl_price){
        .seconds = fmax(d->launch_s, fmax(busy_s, memory_s)), .flop = dl_kernel_flop(k), .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_wafer = {
    .name = "wafer",
    .doc = "cores that keep activations while weights stream past; fabric; sparse weights",
    .streams_weights = true,
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .price = price,
};
