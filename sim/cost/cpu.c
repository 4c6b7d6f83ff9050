/* cpu.c - a processor of cores with vector units and caches.
 *
 * A matrix product is done as Goto and van de Geijn 2008 (ACM TOMS 34:3) do it: a panel of one operand is packed for
 * the last cache, a block of the other for the second, and tiles of the result stay in registers while k goes by in
 * blocks:
 *
 *     time = call + packing of both operands + padded flop at the micro-kernel's rate + the result for each block of k
 *
 * so small products and short k lose to packing and to the result, unless the library has kernels that do small ones
 * directly from the operands as they lie. What is left beside whole tiles may be done in halves, quarters and so on,
 * each in almost the time of a tile. What is moved comes from the smallest cache that holds all of it; cores share a
 * product by tiles. */
#include <math.h>

#include "sim/cost/cpu.h"
#include "sim/cost/device_models.h"

static const struct dl_cpu defaults = {.tile_bytes_per_s = 1e15, .direct_in_flight = 1, .direct_bytes_per_s = 1e15};
static const struct dl_field fields[] = {
    {"cores", DL_NUMBER, offsetof(struct dl_cpu, cores), 1, 1e5, false, NULL, "cores that share a kernel"},
    {"matrix_fraction", DL_NUMBER, offsetof(struct dl_cpu, matrix_fraction), 0.01, 1, false, NULL,
     "share of the peak while a tile of the result is in registers"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct dl_cpu, bandwidth_fraction), 0.01, 1, false, NULL,
     "share of the memory bandwidth that large kernels reach"},
    {"tile_m", DL_NUMBER, offsetof(struct dl_cpu, tile_m), 1, 1024, false, NULL,
     "results of a row that are in registers: a vector or more"},
    {"tile_n", DL_NUMBER, offsetof(struct dl_cpu, tile_n), 1, 1024, false, NULL,
     "rows of results that are in registers"},
    {"k_block", DL_NUMBER, offsetof(struct dl_cpu, k_block), 1, 1e5, false, NULL,
     "part of k between visits of the result"},
    {"core_cache_bytes", DL_NUMBER, offsetof(struct dl_cpu, core_cache_bytes), 1, 1e12, false, NULL,
     "cache of one core"},
    {"core_cache_bytes_per_s", DL_NUMBER, offsetof(struct dl_cpu, core_cache_bytes_per_s), 1, 1e15, false, NULL,
     "its bandwidth"},
    {"last_cache_bytes", DL_NUMBER, offsetof(struct dl_cpu, last_cache_bytes), 1, 1e12, false, NULL,
     "cache that all cores share; as core_cache_bytes where there is no other"},
    {"last_cache_bytes_per_s", DL_NUMBER, offsetof(struct dl_cpu, last_cache_bytes_per_s), 1, 1e15, false, NULL,
     "its bandwidth to all cores"},
    {"tile_bytes_per_s", DL_NUMBER, offsetof(struct dl_cpu, tile_bytes_per_s), 1, 1e15, true, NULL,
     "rate at which a core adds to the result of a GEMM; no limit if absent"},
    {"pack_bytes_per_s", DL_NUMBER, offsetof(struct dl_cpu, pack_bytes_per_s), 1, 1e15, true, NULL,
     "rate at which a core packs operands of GEMMs; tile_bytes_per_s if absent"},
    {"tail_fraction", DL_NUMBER, offsetof(struct dl_cpu, tail_fraction), 0.5, 1, true, NULL,
     "time of half a tile over that of a whole one, of a quarter over that of a half, ..., for what is left beside "
     "whole tiles; one more tile if absent"},
    {"direct_multiplications", DL_NUMBER, offsetof(struct dl_cpu, direct_multiplications), 0, 1e12, true, NULL,
     "m n k up to which the library packs nothing; 0 if absent"},
    {"direct_results", DL_NUMBER, offsetof(struct dl_cpu, direct_results), 0, 1e12, true, NULL,
     "m n up to which this holds where both operands lie along k; 0 if absent"},
    {"direct_k", DL_NUMBER, offsetof(struct dl_cpu, direct_k), 0, 1e12, true, NULL, "the least such k; 0 if absent"},
    {"direct_in_flight", DL_NUMBER, offsetof(struct dl_cpu, direct_in_flight), 1, 1024, true, NULL,
     "vector multiplications that a core must have begun to be busy: those of a cycle times the cycles of one; 1 if "
     "absent"},
    {"direct_bytes_per_s", DL_NUMBER, offsetof(struct dl_cpu, direct_bytes_per_s), 1, 1e15, true, NULL,
     "rate at which a core reads unpacked operands, beside its arithmetic; no limit if absent"},
    {"call_s", DL_NUMBER, offsetof(struct dl_cpu, call_s), 0, 1, false, NULL,
     "fixed time of a library call: its checks, the start of its threads"},
};

/* Bytes are moved from where `held` of them fit. */
static double move_s(const struct dl_device *d, double bytes, double held)
{
    const struct dl_cpu *const o = d->options;
    if (held <= o->core_cache_bytes * o->cores) return bytes / (o->core_cache_bytes_per_s * o->cores);
    if (held <= o->last_cache_bytes) return bytes / o->last_cache_bytes_per_s;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

static double padded(double x, double to) { return ceil(x / to) * to; }

/* In tiles. */
static double tiles_along(const struct dl_cpu *o, double side, double tile)
{
    if (!o->tail_fraction) return ceil(side / tile);
    double tiles = floor(side / tile), left = side - tiles * tile;
    for (double part = tile / 2; left > 0; part /= 2) {
        if (left < part && part > 1) continue;
        left -= part;
        tiles += o->tail_fraction;
    }
    return tiles;
}

/* Rows of results are n long, but m for the gradient of weights, which is stored across. Cores are dealt tiles. */
static double arithmetic_s(const struct dl_device *d, const struct dl_kernel *k, double flop_per_s)
{
    const struct dl_cpu *const o = d->options;
    const bool across = k->pass == DL_PASS_WEIGHT_GRADIENT;
    const double tiles =
        k->batch * tiles_along(o, across ? k->m : k->n, o->tile_m) * tiles_along(o, across ? k->n : k->m, o->tile_n);
    const double dealt = o->cores > 1 ? padded(tiles, o->cores) : tiles;
    return dealt * o->tile_m * o->tile_n * dl_kernel_flop(k) / (k->batch * k->m * k->n) / flop_per_s;
}

/* Tiles are not moved as fast as rows are. */
static double move_tiles_s(const struct dl_device *d, double bytes, double held, double most_bytes_per_s)
{
    const struct dl_cpu *const o = d->options;
    return fmax(move_s(d, bytes, held), bytes / (most_bytes_per_s * o->cores));
}

/* The result is cleared, then read and written for every block of k. */
static double visits_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct dl_cpu *const o = d->options;
    const double bytes = k->batch * k->m * k->n * dl_precision_bytes(precision);
    return move_tiles_s(d, (1 + 2 * ceil(k->k / o->k_block)) * bytes, held, o->tile_bytes_per_s);
}

/* Both operands are read and written again in packed form. */
static double packing_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct dl_cpu *const o = d->options;
    return move_tiles_s(d, 2 * k->batch * (k->m + k->n) * k->k * dl_precision_operand_bytes(precision), held,
                        o->pack_bytes_per_s > 0 ? o->pack_bytes_per_s : o->tile_bytes_per_s);
}

/* Operands come from where they lie when they are needed first; the result goes there once. */
static double direct_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct dl_cpu *const o = d->options;
    return dl_cpu_direct_s(d, k, precision) + move_tiles_s(d, held, held, o->direct_bytes_per_s);
}

static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_cpu *const o = d->options;
    const double held = dl_kernel_bytes(k, precision);
    if (dl_cpu_is_direct(o, k)) return direct_s(d, k, precision, held);
    return packing_s(d, k, precision, held) + arithmetic_s(d, k, d->peak_flop_per_s[precision] * o->matrix_fraction) +
           visits_s(d, k, precision, held);
}

static double seconds(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_cpu *const o = d->options;
    const double bytes = dl_kernel_bytes(k, precision), least_s = move_s(d, bytes, bytes);
    const double flop_per_s = d->peak_flop_per_s[precision] * o->matrix_fraction;
    switch (k->kind) {
    case DL_KERNEL_GEMM: return o->call_s + product_s(d, k, precision);
    case DL_KERNEL_CONV:
    case DL_KERNEL_ATTENTION: return o->call_s + fmax(arithmetic_s(d, k, flop_per_s), least_s);
    case DL_KERNEL_MEMORY: break;
    }
    return o->call_s + fmax(least_s, dl_inner_products_s(d, k, precision) / o->matrix_fraction);
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return (struct dl_price){.seconds = fmax(d->launch_s, seconds(d, k, precision)),
                             .flop = dl_kernel_flop(k),
                             .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_cpu = {
    .name = "cpu",
    .doc = "cores with vector units: packed GEMMs, caches by level",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct dl_cpu),
    .defaults = &defaults,
    .price = price,
};
