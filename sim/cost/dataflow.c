/* dataflow.c - a reconfigurable dataflow device, as SambaNova's: compute units and memory units on a grid, onto which a
 * section of the model is laid out as one pipeline (Prabhakar et al. 2017, ISCA, Plasticine; Prabhakar et al. 2024,
 * MICRO, SN40L).
 *
 * The kernels of a section run at the same time on different units, and what they pass on stays in memory units. So
 * element-wise work behind a product costs nothing but a stage of the pipeline, and a product reads only its weights
 * from outside if its activations fit the memory units. What cannot join a pipeline goes to memory: the optimizer, the
 * embedding, the loss. A section's start is shared by its products. */
#include <math.h>

#include "sim/cost/device_models.h"
#include "sim/cost/operations.h"

struct options {
    double units, lanes, compute_fraction, bandwidth_fraction, buffer_bytes, buffer_bytes_per_s, section_s,
        products_per_section, stage_s;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"units", DL_NUMBER, offsetof(struct options, units), 1, 1e6, false, NULL, "compute units"},
    {"lanes", DL_NUMBER, offsetof(struct options, lanes), 1, 1e4, false, NULL,
     "of a unit: rows and columns of a result are divided into so many"},
    {"compute_fraction", DL_NUMBER, offsetof(struct options, compute_fraction), 0.001, 1, false, NULL,
     "share of the peak: units that a section leaves idle, or that wait for the slowest stage"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.001, 1, false, NULL,
     "share of the memory bandwidth that large kernels reach"},
    {"buffer_bytes", DL_NUMBER, offsetof(struct options, buffer_bytes), 1, 1e12, false, NULL, "of all memory units"},
    {"buffer_bytes_per_s", DL_NUMBER, offsetof(struct options, buffer_bytes_per_s), 1, 1e18, false, NULL,
     "of all memory units"},
    {"section_s", DL_NUMBER, offsetof(struct options, section_s), 0, 1, false, NULL,
     "time to start a section: units are set up, the pipeline fills"},
    {"products_per_section", DL_NUMBER, offsetof(struct options, products_per_section), 1, 1e6, false, NULL,
     "GEMMs that share the start of a section"},
    {"stage_s", DL_NUMBER, offsetof(struct options, stage_s), 1e-12, 1, false, NULL,
     "time that an element-wise kernel adds to a pipeline"},
};

static double memory_s(const struct dl_device *d, double bytes)
{
    const struct options *const o = d->options;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

static double buffer_s(const struct dl_device *d, double bytes)
{
    const struct options *const o = d->options;
    return bytes / o->buffer_bytes_per_s;
}

static double padded(double x, double to) { return ceil(x / to) * to; }

/* Tiles of lanes x lanes results are dealt to the units. */
static double arithmetic_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double results = k->batch * padded(k->m, o->lanes) * padded(k->n, o->lanes);
    const double flop = padded(results, o->units * o->lanes * o->lanes) * dl_kernel_flop(k) / (k->batch * k->m * k->n);
    return flop / (d->peak_flop_per_s[precision] * o->compute_fraction);
}

/* What a product brings from outside: its weights, and activations that are too many for the memory units. */
static double outside_bytes(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double all = dl_kernel_bytes(k, precision);
    if (all > o->buffer_bytes) return all;
    const double weights = k->batch * (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->m * k->n : k->n * k->k);
    return dl_kernel_is_core_attention(k) ? 0 : fmin(all, weights * dl_precision_operand_bytes(precision));
}

static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double moved_s =
        fmax(memory_s(d, outside_bytes(d, k, precision)), buffer_s(d, dl_kernel_bytes(k, precision)));
    return o->section_s / o->products_per_section + fmax(arithmetic_s(d, k, precision), moved_s);
}

static double seconds(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    if (k->kind != DL_KERNEL_MEMORY) return fmax(d->launch_s, product_s(d, k, precision));
    const double bytes = dl_kernel_bytes(k, precision);
    const double products_s = dl_inner_products_s(d, k, precision) / o->compute_fraction;
    if (!dl_operation_of(k)->stands_apart && bytes <= o->buffer_bytes) return fmax(o->stage_s, products_s);
    return fmax(d->launch_s, fmax(products_s, memory_s(d, bytes)));
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return (struct dl_price){
        .seconds = seconds(d, k, precision), .flop = dl_kernel_flop(k), .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_dataflow = {
    .name = "dataflow",
    .doc = "pipelines of GEMMs with element-wise kernels fused behind them",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .price = price,
};
