/* gpu_product.c - a matrix product is cut into tiles, by the shape (and the split of k) that is fastest; the tiles are
 * done in waves of one tile a unit, so a last wave that is not full costs as much as a full one:
 *
 *     time = ceil(tiles / units) * (tile_s + result + k * longer of (arithmetic, operands from the cache))
 *
 * but no less than the power limit allows (idle units in a bad last wave leave power to the others, so the two limits
 * do not multiply), nor than the memory needs. Every limit grows with each dimension, and so does the least over the
 * shapes of tiles: a larger product is never cheaper. */
#include <math.h>

#include "sim/cost/gpu.h"

struct tile {
    double m, n;
};

/* k is split by powers of two; the largest is a figure of the device, in its range. */
static const double splits[] = {1, 2, 4, 8, 16, 32, 64};

struct product {
    const struct dl_device *device;
    const struct dl_gpu *gpu;
    double batch, m, n, k, flop_per_s, matrix_fraction, operand_bytes, result_bytes;
    double step_s, shared; /* least time of a step of k; units that share the longer operand */
    size_t n_splits;
    double join_s[DL_COUNT(splits)];
};

/* The parts of a split k are written, read and added. */
static void set_joins(struct product *p)
{
    const double part_s = dl_gpu_memory_s(p->device, 2 * p->batch * p->m * p->n * dl_precision_bytes(DL_FP32));
    for (size_t s = 0; s < p->n_splits; s++) p->join_s[s] = s ? p->gpu->ramp_s + splits[s] * part_s : 0;
}

static double best_split_s(const struct product *p, struct tile tile)
{
    const struct dl_gpu *const o = p->gpu;
    const double n_tiles = p->batch * ceil(p->m / tile.m) * ceil(p->n / tile.n);
    const double unit_flop_per_s = p->flop_per_s * p->matrix_fraction / o->units;
    const double arithmetic_s = 2 * tile.m * tile.n / unit_flop_per_s;
    const double operands = fmin(tile.m, tile.n) + fmax(tile.m, tile.n) / p->shared;
    const double operands_s = operands * p->operand_bytes / (o->cache_bytes_per_s / o->units);
    const double result_s =
        o->result_bytes_per_s > 0 ? tile.m * tile.n * p->result_bytes / (o->result_bytes_per_s / o->units) : 0;
    const double all_k_s = p->k * fmax(fmax(arithmetic_s, operands_s), p->step_s);
    double best_s = INFINITY;
    for (size_t s = 0; s < p->n_splits; s++) {
        const double waves = ceil(n_tiles * splits[s] / o->units);
        best_s = fmin(best_s, waves * (o->tile_s + result_s + all_k_s / splits[s]) + p->join_s[s]);
    }
    return best_s;
}

static double best_of_fixed_shapes_s(const struct product *p)
{
    const struct dl_int_list *const sides = &p->gpu->tile_sides;
    double best_s = INFINITY;
    for (size_t i = 0; i < sides->n; i++)
        for (size_t j = 0; j < sides->n; j++) {
            const struct tile tile = {(double)sides->items[i], (double)sides->items[j]};
            if (tile.m * tile.n <= p->gpu->tile_sides_results) best_s = fmin(best_s, best_split_s(p, tile));
        }
    return best_s;
}

static size_t n_splits_up_to(double most)
{
    size_t n = 1;
    while (n < DL_COUNT(splits) && splits[n] <= most) n++;
    return n;
}

/* The library does not know which tile is fastest, but the more are about as fast, the better its choice:
 *
 *     time^-e = mean over tiles of time^-e
 *
 * which grows with each of the times, as their least does, and is that for a large e. */
struct choice {
    double first_s, sum, least_s, n;
};

static void offer(struct choice *c, const struct product *p, struct tile tile)
{
    const double s = best_split_s(p, tile);
    if (c->n++ == 0) c->first_s = c->least_s = s;
    c->least_s = fmin(c->least_s, s);
    c->sum += pow(c->first_s / s, p->gpu->tile_choice_exponent);
}

/* One side is a multiple of what matrix units take at once, the other is free as the results fit. */
static double chosen_of_free_shapes_s(const struct product *p)
{
    const struct dl_gpu *const o = p->gpu;
    struct choice c = {0};
    for (double rows = o->tile_rows; rows <= o->tile_most_rows; rows += o->tile_rows)
        for (double other = o->tile_rows; other <= o->tile_longest && rows * other <= o->tile_results;
             other += o->tile_step) {
            offer(&c, p, (struct tile){rows, other});
            if (other != rows) offer(&c, p, (struct tile){other, rows});
        }
    return o->tile_choice_exponent > 0 ? c.first_s / pow(c.sum / c.n, 1 / o->tile_choice_exponent) : c.least_s;
}

static double fraction_of(const struct dl_gpu *o, enum dl_alignment a)
{
    return a == DL_ALIGNED ? 1 : a == DL_HALF_ALIGNED ? o->half_aligned_fraction : o->unaligned_fraction;
}

static double step_s_of(const struct dl_gpu *o, enum dl_alignment a)
{
    return a == DL_ALIGNED ? 0 : a == DL_HALF_ALIGNED ? o->half_aligned_step_s : o->unaligned_step_s;
}

static double sustained_fraction(const struct dl_gpu *o, enum dl_precision precision)
{
    const double own = precision == DL_FP8     ? o->fp8_sustained_fraction
                       : precision == DL_NVFP4 ? o->nvfp4_sustained_fraction
                       : precision == DL_FP32  ? o->fp32_sustained_fraction
                                               : 0;
    return own > 0 ? own : o->sustained_fraction;
}

static double matrix_fraction(const struct dl_gpu *o, enum dl_precision precision)
{
    return precision == DL_FP32 && o->fp32_matrix_fraction > 0 ? o->fp32_matrix_fraction : o->matrix_fraction;
}

/* Sums that the result is added to are read when a tile is done, which nothing hides. */
double dl_gpu_product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    const double operand_bytes = dl_precision_operand_bytes(precision);
    /* Units that compute in fp32 take operands word by word: 50,257 columns have the rate of 50,304 (NeuSight on an
     * H100, topologies/devices/measured/h200-gemm.json). */
    const enum dl_alignment alignment = precision == DL_FP32 ? DL_ALIGNED : dl_kernel_alignment(k, precision);
    const bool has_older_kernels = alignment != DL_ALIGNED && fraction_of(o, alignment) < 1;
    struct product p = {.device = d,
                        .gpu = o,
                        .batch = k->batch,
                        .m = k->m,
                        .n = k->n,
                        .k = ceil(k->k / o->tile_depth) * o->tile_depth,
                        .flop_per_s = d->peak_flop_per_s[precision] * fraction_of(o, alignment),
                        .matrix_fraction = matrix_fraction(o, precision),
                        .operand_bytes = operand_bytes,
                        .result_bytes = dl_precision_bytes(precision),
                        .step_s = step_s_of(o, alignment),
                        .shared = has_older_kernels ? 1 : o->cluster,
                        .n_splits = n_splits_up_to(has_older_kernels ? o->unaligned_split_most : o->split_most)};
    set_joins(&p);
    const double tiling_s =
        o->tile_results > 0 && !has_older_kernels ? chosen_of_free_shapes_s(&p) : best_of_fixed_shapes_s(&p);
    const double power_s = dl_kernel_flop(k) / (p.flop_per_s * sustained_fraction(o, precision));
    const double sums_s = k->accumulates ? dl_gpu_memory_s(d, k->batch * k->m * k->n * dl_precision_bytes(DL_FP32)) : 0;
    return o->ramp_s +
           dl_gpu_longer_s(o, sums_s + fmax(tiling_s, power_s), dl_gpu_memory_s(d, dl_kernel_bytes(k, precision)));
}
