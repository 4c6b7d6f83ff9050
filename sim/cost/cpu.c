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

#include "sim/cost/device_models.h"

struct options {
    double cores, matrix_fraction, bandwidth_fraction, tile_m, tile_n, k_block;
    double core_cache_bytes, core_cache_bytes_per_s, last_cache_bytes, last_cache_bytes_per_s, tile_bytes_per_s, call_s;
    double tail_fraction, pack_bytes_per_s;
    double direct_multiplications, direct_results, direct_k, direct_fraction;
};
static const struct options defaults = {.tile_bytes_per_s = 1e15, .direct_fraction = 1};
static const struct dl_field fields[] = {
    {"cores", DL_NUMBER, offsetof(struct options, cores), 1, 1e5, false, NULL, "that share a kernel"},
    {"matrix_fraction", DL_NUMBER, offsetof(struct options, matrix_fraction), 0.01, 1, false, NULL,
     "of the peak, while a tile of the result is in registers"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.01, 1, false, NULL,
     "of the memory's bandwidth, that large kernels reach"},
    {"tile_m", DL_NUMBER, offsetof(struct options, tile_m), 1, 1024, false, NULL,
     "results of a row of them in registers: a vector or more"},
    {"tile_n", DL_NUMBER, offsetof(struct options, tile_n), 1, 1024, false, NULL, "rows of results in registers"},
    {"k_block", DL_NUMBER, offsetof(struct options, k_block), 1, 1e5, false, NULL,
     "of k, between visits of the result"},
    {"core_cache_bytes", DL_NUMBER, offsetof(struct options, core_cache_bytes), 1, 1e12, false, NULL, "of one core"},
    {"core_cache_bytes_per_s", DL_NUMBER, offsetof(struct options, core_cache_bytes_per_s), 1, 1e15, false, NULL,
     "of one core"},
    {"last_cache_bytes", DL_NUMBER, offsetof(struct options, last_cache_bytes), 1, 1e12, false, NULL,
     "that all cores share; as core_cache_bytes where there is no other"},
    {"last_cache_bytes_per_s", DL_NUMBER, offsetof(struct options, last_cache_bytes_per_s), 1, 1e15, false, NULL,
     "to all cores"},
    {"tile_bytes_per_s", DL_NUMBER, offsetof(struct options, tile_bytes_per_s), 1, 1e15, true, NULL,
     "of one core, that adds to the result of a product; no limit if absent"},
    {"pack_bytes_per_s", DL_NUMBER, offsetof(struct options, pack_bytes_per_s), 1, 1e15, true, NULL,
     "of one core, that puts operands of products into another order; tile_bytes_per_s if absent"},
    {"tail_fraction", DL_NUMBER, offsetof(struct options, tail_fraction), 0.5, 1, true, NULL,
     "of the time of a tile, by a half of it, a quarter and so on, of which what is left beside whole tiles is made; "
     "absent: it is one more tile"},
    {"direct_multiplications", DL_NUMBER, offsetof(struct options, direct_multiplications), 0, 1e12, true, NULL,
     "m n k up to which the library packs nothing; it always does if absent"},
    {"direct_results", DL_NUMBER, offsetof(struct options, direct_results), 0, 1e12, true, NULL,
     "m n up to which this holds where both operands lie along k"},
    {"direct_k", DL_NUMBER, offsetof(struct options, direct_k), 0, 1e12, true, NULL, "and the least such k"},
    {"direct_fraction", DL_NUMBER, offsetof(struct options, direct_fraction), 0.01, 1, true, NULL,
     "of the peak, without packing; 1 if absent"},
    {"call_s", DL_NUMBER, offsetof(struct options, call_s), 0, 1, false, NULL,
     "of a library function: its checks, the start of its threads"},
};

/* Bytes are moved from where `held` of them fit. */
static double move_s(const struct dl_device *d, double bytes, double held)
{
    const struct options *const o = d->options;
    if (held <= o->core_cache_bytes * o->cores) return bytes / (o->core_cache_bytes_per_s * o->cores);
    if (held <= o->last_cache_bytes) return bytes / o->last_cache_bytes_per_s;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

static double padded(double x, double to) { return ceil(x / to) * to; }

/* In tiles. */
static double tiles_along(const struct options *o, double side, double tile)
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
    const struct options *const o = d->options;
    const bool across = k->pass == DL_PASS_WEIGHT_GRADIENT;
    const double tiles =
        k->batch * tiles_along(o, across ? k->m : k->n, o->tile_m) * tiles_along(o, across ? k->n : k->m, o->tile_n);
    const double dealt = o->cores > 1 ? padded(tiles, o->cores) : tiles;
    return dealt * o->tile_m * o->tile_n * dl_kernel_flop(k) / (k->batch * k->m * k->n) / flop_per_s;
}

/* Tiles are not moved as fast as rows are. */
static double move_tiles_s(const struct dl_device *d, double bytes, double held, double most_bytes_per_s)
{
    const struct options *const o = d->options;
    return fmax(move_s(d, bytes, held), bytes / (most_bytes_per_s * o->cores));
}

/* The result is cleared, then read and written for every block of k. */
static double visits_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct options *const o = d->options;
    const double bytes = k->batch * k->m * k->n * dl_precision_bytes(precision);
    return move_tiles_s(d, (1 + 2 * ceil(k->k / o->k_block)) * bytes, held, o->tile_bytes_per_s);
}

/* Both operands are read and written again in packed form. */
static double packing_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct options *const o = d->options;
    return move_tiles_s(d, 2 * k->batch * (k->m + k->n) * k->k * dl_precision_operand_bytes(precision), held,
                        o->pack_bytes_per_s > 0 ? o->pack_bytes_per_s : o->tile_bytes_per_s);
}

/* Both operands of a forward product lie along k. */
static bool is_direct(const struct options *o, const struct dl_kernel *k)
{
    if (k->m * k->n * k->k > o->direct_multiplications) return false;
    return k->pass != DL_PASS_FORWARD || (k->m * k->n <= o->direct_results && k->k >= o->direct_k);
}

/* Operands are read and the result is written as they lie; the result was cleared before. */
static double direct_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision, double held)
{
    const struct options *const o = d->options;
    const double result_bytes = k->batch * k->m * k->n * dl_precision_bytes(precision);
    return arithmetic_s(d, k, d->peak_flop_per_s[precision] * o->direct_fraction) +
           move_tiles_s(d, held + result_bytes, held, o->tile_bytes_per_s);
}

static double product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double held = dl_kernel_bytes(k, precision);
    if (is_direct(o, k)) return direct_s(d, k, precision, held);
    return packing_s(d, k, precision, held) + arithmetic_s(d, k, d->peak_flop_per_s[precision] * o->matrix_fraction) +
           visits_s(d, k, precision, held);
}

static double seconds(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double bytes = dl_kernel_bytes(k, precision), least_s = move_s(d, bytes, bytes);
    const double flop_per_s = d->peak_flop_per_s[precision] * o->matrix_fraction;
    switch (k->kind) {
    case DL_KERNEL_GEMM: return o->call_s + product_s(d, k, precision);
    case DL_KERNEL_CONV:
    case DL_KERNEL_ATTENTION: return o->call_s + fmax(arithmetic_s(d, k, flop_per_s), least_s);
    case DL_KERNEL_MEMORY: break;
    }
    return o->call_s + least_s;
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return (struct dl_price){.seconds = fmax(d->launch_s, seconds(d, k, precision)),
                             .flop = dl_kernel_flop(k),
                             .ground = DL_GROUND_MODELLED};
}

const struct dl_device_model dl_device_cpu = {
    .name = "cpu",
    .doc = "cores with vector units: packed products, caches by level",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .price = price,
};
