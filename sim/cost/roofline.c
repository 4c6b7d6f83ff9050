/* roofline.c - one efficiency of the peaks of arithmetic and of memory, for devices that nobody has described better
 * (Williams et al. 2009, Roofline). */
#include <math.h>

#include "sim/cost/device_models.h"

struct options {
    double compute_fraction, bandwidth_fraction;
};
static const struct options defaults = {.compute_fraction = 1, .bandwidth_fraction = 1};
static const struct dl_field fields[] = {
    {"compute_fraction", DL_NUMBER, offsetof(struct options, compute_fraction), 0.001, 1, false, NULL,
     "share of the peak that large kernels reach"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.001, 1, false, NULL,
     "share of the memory bandwidth that large kernels reach"},
};

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double flop = dl_kernel_flop(k);
    const double products_s = k->kind == DL_KERNEL_MEMORY ? dl_inner_products_s(d, k, precision) : 0;
    const double compute_s = fmax(flop / d->peak_flop_per_s[precision], products_s) / o->compute_fraction;
    const double memory_s = dl_kernel_bytes(k, precision) / (d->memory_bytes_per_s * o->bandwidth_fraction);
    return (struct dl_price){
        .seconds = fmax(d->launch_s, fmax(compute_s, memory_s)), .flop = flop, .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_roofline = {
    .name = "roofline",
    .doc = "the longer of arithmetic and memory, each at a fixed fraction of its peak",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .price = price,
};
