/* gpu.c - a GPU from its parts: compute units that each work on one tile of the result at a time.
 *
 * A matrix product is cut into tiles, by the shape (and the split of k) that is fastest; the tiles are done in waves of
 * one tile a unit, so a last wave that is not full costs as much as a full one:
 *
 *     time = ceil(tiles / units) * (tile_s + k * longer of (arithmetic, operands from the cache))
 *
 * but no less than the power limit allows (idle units in a bad last wave leave power to the others, so the two limits
 * do not multiply), nor than the memory needs. Every limit grows with each dimension, and so does the least over the
 * shapes of tiles: a larger product is never cheaper. */
#include <math.h>

#include "sim/cost/device_models.h"

struct options {
    double units, matrix_fraction, sustained_fraction, cache_bytes_per_s, tile_s;
    double bandwidth_fraction, ramp_s;
    double attention_fraction, attention_backward_fraction, exponentials_per_s;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"units", DL_NUMBER, offsetof(struct options, units), 1, 1e6, false, NULL,
     "that work on a tile each: streaming multiprocessors, compute units"},
    {"matrix_fraction", DL_NUMBER, offsetof(struct options, matrix_fraction), 0.01, 1, false, NULL,
     "of the peak, inside a tile"},
    {"sustained_fraction", DL_NUMBER, offsetof(struct options, sustained_fraction), 0.01, 1, false, NULL,
     "of the peak, that the power limit allows in the long run"},
    {"cache_bytes_per_s", DL_NUMBER, offsetof(struct options, cache_bytes_per_s), 1, 1e18, false, NULL,
     "operands from the last cache to all units"},
    {"tile_s", DL_NUMBER, offsetof(struct options, tile_s), 0, 1, false, NULL,
     "of a tile whatever its k: first operands, result"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.01, 1, false, NULL,
     "of the memory's bandwidth, that large kernels reach"},
    {"ramp_s", DL_NUMBER, offsetof(struct options, ramp_s), 0, 1, false, NULL,
     "to fill and drain the device, once a kernel"},
    {"attention_fraction", DL_NUMBER, offsetof(struct options, attention_fraction), 0.01, 1, false, NULL,
     "of the peak, in the products of fused attention"},
    {"attention_backward_fraction", DL_NUMBER, offsetof(struct options, attention_backward_fraction), 0.01, 1, false,
     NULL, "the same backward"},
    {"exponentials_per_s", DL_NUMBER, offsetof(struct options, exponentials_per_s), 1, 1e18, false, NULL,
     "of the special function units"},
};

/* The shapes of CUTLASS's and cuBLAS's kernels for tensor cores. */
static const struct tile {
    double m, n;
} tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128}, {64, 64}};

static const double splits[] = {1, 2, 4, 8, 16};
static const double partial_sum_bytes = 4; /* fp32 */

struct product {
    const struct dl_device *device;
    const struct options *options;
    double batch, m, n, k, flop_per_s, operand_bytes;
};

static double memory_s(const struct dl_device *d, double bytes)
{
    const struct options *const o = d->options;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

static double waves_s(const struct product *p, const struct tile *tile, double split)
{
    const struct options *const o = p->options;
    const double n_tiles = p->batch * split * ceil(p->m / tile->m) * ceil(p->n / tile->n);
    const double unit_flop_per_s = p->flop_per_s * o->matrix_fraction / o->units;
    const double arithmetic_s = 2 * tile->m * tile->n / unit_flop_per_s;
    const double operands_s = (tile->m + tile->n) * p->operand_bytes / (o->cache_bytes_per_s / o->units);
    return ceil(n_tiles / o->units) * (o->tile_s + p->k / split * fmax(arithmetic_s, operands_s));
}

/* The parts of a split k are written, read and added. */
static double join_s(const struct product *p, double split)
{
    if (split == 1) return 0;
    return p->options->ramp_s + memory_s(p->device, 2 * split * p->batch * p->m * p->n * partial_sum_bytes);
}

static double best_tiling_s(const struct product *p)
{
    double best_s = INFINITY;
    for (size_t t = 0; t < DL_COUNT(tiles); t++)
        for (size_t s = 0; s < DL_COUNT(splits); s++)
            best_s = fmin(best_s, waves_s(p, &tiles[t], splits[s]) + join_s(p, splits[s]));
    return best_s;
}

static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const struct product p = {.device = d,
                              .options = o,
                              .batch = k->batch,
                              .m = k->m,
                              .n = k->n,
                              .k = k->k,
                              .flop_per_s = d->peak_flop_per_s[precision],
                              .operand_bytes = dl_precision_operand_bytes(precision)};
    const double power_s = dl_kernel_flop(k) / (p.flop_per_s * o->sustained_fraction);
    return o->ramp_s + fmax(best_tiling_s(&p), fmax(power_s, memory_s(d, dl_kernel_bytes(k, precision))));
}

/* Dao 2023, FlashAttention-2: a unit takes 128 queries and goes through their keys; backward the other way round. */
static const double attention_rows = 128;
/* Units that end early wait for the last: on average for this part of the longest row. Fitted to attention of 8 to 64
 * heads on the A100 (SimuMax, configs/system/a100_pcie.json). */
static const double attention_tail = 0.7;

static double attention_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double rate =
        d->peak_flop_per_s[precision] * (k->backward ? o->attention_backward_fraction : o->attention_fraction);
    const double length = k->backward ? k->n : k->m, blocks = ceil(length / attention_rows);
    const double padding = blocks * attention_rows / length; /* a block that is not full takes as long */
    const double full_scores = padding * k->batch * k->m * k->n;
    const double needed_scores = k->causal ? full_scores / 2 : full_scores;
    const double busy_s = padding * dl_kernel_flop(k) / rate + needed_scores / o->exponentials_per_s;
    const double longest_s = busy_s * o->units / (k->batch * blocks) * full_scores / needed_scores;
    return o->ramp_s + fmax(busy_s + attention_tail * longest_s, memory_s(d, dl_kernel_bytes(k, precision)));
}

static double body_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    switch (k->kind) {
    case DL_KERNEL_GEMM:
    case DL_KERNEL_CONV: return product_s(d, k, precision);
    case DL_KERNEL_ATTENTION: return attention_s(d, k, precision);
    case DL_KERNEL_MEMORY: break;
    }
    return o->ramp_s + memory_s(d, dl_kernel_bytes(k, precision));
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return (struct dl_price){
        .seconds = fmax(d->launch_s, body_s(d, k, precision)), .flop = dl_kernel_flop(k), .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_gpu = {
    .name = "gpu",
    .doc = "tiles and waves over compute units, memory, power limit",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .price = price,
};
