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
    double attention_fraction, attention_backward_fraction, exponentials_per_s, attention_rows, group_launch_s;
    double half_aligned_fraction, unaligned_fraction;
};
/* Dao 2023, FlashAttention-2: a unit takes 128 queries and goes through their keys; backward 128 keys likewise. */
static const struct options defaults = {.attention_rows = 128, .half_aligned_fraction = 1, .unaligned_fraction = 1};
static const double attention_columns = 128;
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
    {"attention_rows", DL_NUMBER, offsetof(struct options, attention_rows), 1, 4096, true, NULL,
     "queries that a unit takes at once; 128 if absent"},
    {"group_launch_s", DL_NUMBER, offsetof(struct options, group_launch_s), 0, 1, true, NULL,
     "least time of one of the products of a group, as libraries launch them one by one; 0 if absent"},
    {"half_aligned_fraction", DL_NUMBER, offsetof(struct options, half_aligned_fraction), 0.01, 1, true, NULL,
     "of the rate of products, where rows begin at multiples of 8 bytes but not of 16; 1 if absent"},
    {"unaligned_fraction", DL_NUMBER, offsetof(struct options, unaligned_fraction), 0.01, 1, true, NULL,
     "the same, where rows do not begin at multiples of 8 bytes either"},
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

/* Libraries have their fastest kernels only for rows that can be read 16 bytes at a time. Rows of operands and results
 * are n and k long, but for the gradient of weights, which reads its operands across: m and n. */
static double alignment_fraction(const struct options *o, const struct dl_kernel *k, double operand_bytes)
{
    const double whole = 16, half = 8;
    const double n = k->n * operand_bytes;
    const double other = (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->m : k->k) * operand_bytes;
    if (fmod(n, whole) == 0 && fmod(other, whole) == 0) return 1;
    return fmod(n, half) == 0 && fmod(other, half) == 0 ? o->half_aligned_fraction : o->unaligned_fraction;
}

/* Sums that the result is added to are read when a tile is done, which nothing hides. */
static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double operand_bytes = dl_precision_operand_bytes(precision);
    const struct product p = {.device = d,
                              .options = o,
                              .batch = k->batch,
                              .m = k->m,
                              .n = k->n,
                              .k = k->k,
                              .flop_per_s = d->peak_flop_per_s[precision] * alignment_fraction(o, k, operand_bytes),
                              .operand_bytes = operand_bytes};
    const double power_s = dl_kernel_flop(k) / (p.flop_per_s * o->sustained_fraction);
    const double sums_s = k->accumulates ? memory_s(d, k->batch * k->m * k->n * partial_sum_bytes) : 0;
    return o->ramp_s + fmax(sums_s + fmax(best_tiling_s(&p), power_s), memory_s(d, dl_kernel_bytes(k, precision)));
}

/* Units that end early wait for the last: for this part of the longest row. Fitted to attention of 8 to 128 heads on
 * the A100 and the B200 (SimuMax, configs/system). */
static const double tail_forward = 0.65, tail_backward = 0.3;

/* A block that is not full takes as long as a full one; a causal row is half as long on average. */
static double attention_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double fraction = k->backward ? o->attention_backward_fraction : o->attention_fraction;
    const double block = k->backward ? attention_columns : o->attention_rows, needed = k->causal ? 0.5 : 1;
    const double length = k->backward ? k->n : k->m, row = k->backward ? k->m : k->n;
    const double flop_per_score = dl_kernel_flop(k) / (k->batch * k->m * k->n * needed);
    const double score_s = flop_per_score / (d->peak_flop_per_s[precision] * fraction) + 1 / o->exponentials_per_s;
    const double busy_s = k->batch * ceil(length / block) * block * row * needed * score_s;
    const double longest_s = block * row * score_s * o->units;
    const double tail_s = (k->backward ? tail_backward : tail_forward) * longest_s;
    return o->ramp_s + fmax(fmax(busy_s + tail_s, longest_s), memory_s(d, dl_kernel_bytes(k, precision)));
}

/* The products of experts are launched one by one, as they differ in length. */
static double group_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    struct dl_kernel one = *k;
    one.batch = fmin(k->batch, 1);
    return k->batch / one.batch * fmax(o->group_launch_s, product_s(d, &one, precision));
}

static double body_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    switch (k->kind) {
    case DL_KERNEL_GEMM: return k->among_experts ? group_s(d, k, precision) : product_s(d, k, precision);
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
