/* systolic.c - a device of systolic arrays, as Google's TPUs: square arrays of multipliers through which rows flow
 * while one operand stays (Jouppi et al. 2017, ISCA; Jouppi et al. 2020, CACM 63:7; Norrie et al. 2021, IEEE Micro
 * 41:2).
 *
 * One operand is cut into squares of the array's size. While the rows of the other flow through, one a cycle, the next
 * square is loaded; so fewer rows than the array has take as long as that (SCALE-Sim, Samajdar et al. 2020, without
 * its gap between two squares). The compiler lets the operand stay for which that is faster:
 *
 *     cycles = ceil(squares / arrays) * larger of (rows, array) + fill and drain, 2 * array
 *
 * Vectors (norms, exponentials) go to units of their own that work at the same time. */
#include <math.h>

#include "sim/cost/device_models.h"

struct options {
    double array, arrays, matrix_fraction, bandwidth_fraction, buffer_bytes, vector_flop_per_s, attention_rows,
        group_rows, backward_products, vector_flop_per_score;
};
/* A score: the exponential, as a polynomial, with maximum and sum; an estimate. */
static const struct options defaults = {.backward_products = 5, .vector_flop_per_score = 12};
static const struct dl_field fields[] = {
    {"array", DL_NUMBER, offsetof(struct options, array), 4, 4096, false, NULL, "rows and columns of an array"},
    {"arrays", DL_NUMBER, offsetof(struct options, arrays), 1, 1e6, false, NULL, "arrays of the device"},
    {"matrix_fraction", DL_NUMBER, offsetof(struct options, matrix_fraction), 0.01, 1, false, NULL,
     "share of the cycles in which the arrays get their operands"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct options, bandwidth_fraction), 0.01, 1, false, NULL,
     "share of the memory bandwidth that large kernels reach"},
    {"buffer_bytes", DL_NUMBER, offsetof(struct options, buffer_bytes), 1024, 1e12, false, NULL,
     "memory beside the arrays that holds blocks of the operands"},
    {"vector_flop_per_s", DL_NUMBER, offsetof(struct options, vector_flop_per_s), 1, 1e18, false, NULL,
     "of the vector units"},
    {"attention_rows", DL_NUMBER, offsetof(struct options, attention_rows), 0, 1e6, true, NULL,
     "queries and keys that an attention kernel goes through together, all of them where a causal mask or a "
     "window hides a part; 0 if absent"},
    {"group_rows", DL_NUMBER, offsetof(struct options, group_rows), 0, 1e6, true, NULL,
     "tokens that a grouped product of experts goes through together: where two experts share such a tile, it is "
     "computed for each; of cores that have all experts, those of all cores; 0 if absent"},
    {"backward_products", DL_NUMBER, offsetof(struct options, backward_products), 5, 7, true, NULL,
     "products of an attention kernel backward: 5 in one pass, 7 where one pass is for queries and another for keys "
     "and values, both of which compute scores and their gradients; 5 if absent"},
    {"vector_flop_per_score", DL_NUMBER, offsetof(struct options, vector_flop_per_score), 1, 1000, true, NULL,
     "operations of the vector units for a score of attention: its exponential, maximum, sum; 12 if absent"},
};

/* A vector register has 8 rows (Norrie et al. 2021), so that many rows flow together. */
static const double rows_at_once = 8;
/* An estimate of what a vector unit does: a few operations for an element of a norm or an activation. */
static const double vector_flop_per_element = 4;

/* Products of attention backward. */
static const double in_one_pass = 5, in_two_passes = 7;

static double padded(double x, double to) { return ceil(x / to) * to; }

/* The squares of `stays` x k stay, `flows` rows go through each. */
static double cycles(const struct options *o, double batch, double flows, double stays, double k)
{
    const double squares = batch * ceil(stays / o->array) * ceil(k / o->array);
    return ceil(squares / o->arrays) * fmax(padded(flows, rows_at_once), o->array) + 2 * o->array;
}

static double product_s(const struct dl_device *d, double batch, double m, double n, double k, double flop_per_s)
{
    const struct options *const o = d->options;
    const double flop_per_cycle = 2 * o->array * o->array * o->arrays;
    const double least = fmin(cycles(o, batch, m, n, k), cycles(o, batch, n, m, k));
    return least * flop_per_cycle / (flop_per_s * o->matrix_fraction);
}

/* Experts get any number of tokens, so that the first of one lies anywhere in a tile of tokens, which is computed for
 * both: as many visits as tiles and, less one, experts (JAX, experimental/pallas/ops/tpu/megablox,
 * make_group_metadata). */
static struct dl_kernel whole_tiles(const struct options *o, const struct dl_kernel *k)
{
    struct dl_kernel whole = *k;
    double *const tokens = k->pass == DL_PASS_WEIGHT_GRADIENT ? &whole.k : &whole.m;
    if (dl_kernel_is_of_experts(k) && !k->has_places && k->batch > 1) *tokens += o->group_rows * (1 - 1 / k->batch);
    return whole;
}

static double gemm_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_kernel whole = whole_tiles(d->options, k);
    return product_s(d, whole.batch, whole.m, whole.n, whole.k, d->peak_flop_per_s[precision]);
}

static double memory_s(const struct dl_device *d, double bytes)
{
    const struct options *const o = d->options;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

/* Blocks of both operands that are twice in the buffers, so that one is filled while the other is used: an operand is
 * read once for each block of the other. */
static double blocked_bytes(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double operand_bytes = dl_precision_operand_bytes(precision), in_buffers = 4;
    const double side = fmax(o->array, sqrt(o->buffer_bytes / in_buffers / operand_bytes));
    const double again = k->m * k->k * (ceil(k->n / side) - 1) + k->n * k->k * (ceil(k->m / side) - 1);
    return dl_kernel_bytes(k, precision) + k->batch * again * operand_bytes;
}

/* Of the scores, those in squares that a causal mask does not hide all of: n (n + 1) / 2 of n x n squares. */
static double computed_share(const struct options *o, const struct dl_kernel *k)
{
    return k->causal ? fmin(1, 0.5 * (1 + o->attention_rows / k->n)) : 1;
}

/* As without a window, which never takes less. */
static struct dl_kernel without_window(const struct dl_kernel *k)
{
    struct dl_kernel all = *k;
    all.n = k->m, all.window = 0, all.causal = true;
    return all;
}

static bool in_windows(const struct options *o, const struct dl_kernel *k)
{
    return k->window > 0 && o->attention_rows > 0;
}

/* Keys that queries go through in the mean. In windows these are all of the block that they are in and of those before
 * that a window of its first query reaches. */
static double keys_of(const struct options *o, const struct dl_kernel *k)
{
    if (!in_windows(o, k)) return k->n;
    const double rows = fmin(o->attention_rows, k->m), blocks = ceil(k->m / rows);
    const double before = fmin(ceil((k->window - 1) / rows), blocks - 1);
    const double visited = blocks * (before + 1) - before * (before + 1) / 2;
    return fmax(k->n, rows * visited / blocks);
}

/* Backward: the scores again and their gradients, from which those of queries, keys and values come. A pass of its own
 * for queries computes the first two once more. */
static double backward_s(const struct options *o, double scores_s, double context_s)
{
    return (o->backward_products - 3) * scores_s + 3 * context_s;
}

/* Scores, context. The scores stay in the buffers. */
static double blocks_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    const double flop_per_s = d->peak_flop_per_s[precision], keys = keys_of(o, k);
    const double scores_s = product_s(d, k->batch, k->m, keys, k->k, flop_per_s);
    const double context_s = product_s(d, k->batch, k->m, k->k, keys, flop_per_s);
    const double matrix_s = k->backward ? backward_s(o, scores_s, context_s) : scores_s + context_s;
    const double passes = k->backward && o->backward_products == in_two_passes ? 2 : 1;
    const double vector_s = passes * k->batch * k->m * keys * o->vector_flop_per_score / o->vector_flop_per_s;
    return fmax(computed_share(o, k) * fmax(matrix_s, vector_s), memory_s(d, dl_kernel_bytes(k, precision)));
}

static double attention_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    if (!in_windows(o, k)) return blocks_s(d, k, precision);
    const struct dl_kernel all = without_window(k);
    return fmin(blocks_s(d, k, precision), blocks_s(d, &all, precision));
}

static double body_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct options *const o = d->options;
    switch (k->kind) {
    case DL_KERNEL_GEMM: return fmax(gemm_s(d, k, precision), memory_s(d, blocked_bytes(d, k, precision)));
    case DL_KERNEL_CONV:
        return fmax(product_s(d, k->batch, k->m, k->n, k->k, d->peak_flop_per_s[precision]),
                    memory_s(d, dl_kernel_bytes(k, precision)));
    case DL_KERNEL_ATTENTION: return attention_s(d, k, precision);
    case DL_KERNEL_MEMORY: break;
    }
    return fmax(
        fmax(memory_s(d, dl_kernel_bytes(k, precision)), dl_inner_products_s(d, k, precision) / o->matrix_fraction),
        k->elements * vector_flop_per_element / o->vector_flop_per_s);
}

static struct dl_price price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return (struct dl_price){
        .seconds = fmax(d->launch_s, body_s(d, k, precision)), .flop = dl_kernel_flop(k), .ground = DL_GROUND_MODELLED};
}

static const char *fault(const void *options)
{
    const double products = ((const struct options *)options)->backward_products;
    const bool is_known = products == in_one_pass || products == in_two_passes;
    return is_known ? NULL : "backward_products must be 5, in one pass, or 7, in two";
}

const struct dl_device_model dl_device_systolic = {
    .name = "systolic",
    .doc = "square arrays through which rows flow, vector units, memory",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .fault = fault,
    .price = price,
};
