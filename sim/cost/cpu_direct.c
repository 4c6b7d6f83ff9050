/* cpu_direct.c - small products, which OpenBLAS computes without packing
 * (kernel/x86_64/sgemm_small_kernel_*_skylakex.c).
 *
 * The result is cut into blocks of vectors x columns that stay in registers; for each of k, every vector of a block is
 * multiplied by every column. A vector unit starts one multiplication after the other but each waits for the sum before
 * it, so a step of k takes as long as
 *
 *     max(vectors x columns, multiplications in flight)
 *
 * of them, and blocks beside the largest ones, which hold few sums, cost almost as much. A vector holds results that
 * lie side by side; or, where both operands lie along k, parts of the sum of one result, which are added up at the end.
 */
#include <math.h>

#include "sim/cost/cpu.h"

/* The sides of blocks, the largest first; what is left over is cut into the next ones. */
enum { n_sides = 4 };
static const double vectors_of[n_sides] = {4, 2, 1, 1}, columns_of[n_sides] = {4, 2, 1, 1},
                    columns_across[n_sides] = {8, 4, 2, 1};

/* Vectors that are not half full are better filled along k, if it is long enough to pay for the sums. */
static const double least_share = 0.5;

/* How many blocks of each side. */
static void cut(double side, const double *sides, double *n_blocks)
{
    for (int i = 0; i < n_sides; i++) {
        n_blocks[i] = floor(side / sides[i]);
        side -= n_blocks[i] * sides[i];
    }
}

/* For each of k. */
static double multiplications(const struct dl_cpu *o, double vectors, double columns, const double *column_sides)
{
    double n_vectors[n_sides], n_columns[n_sides], sum = 0;
    cut(vectors, vectors_of, n_vectors);
    cut(columns, column_sides, n_columns);
    for (int i = 0; i < n_sides; i++)
        for (int j = 0; j < n_sides; j++)
            sum += n_vectors[i] * n_columns[j] * fmax(vectors_of[i] * column_sides[j], o->direct_in_flight);
    return sum;
}

/* Of vectors along a row; what is left of it is a vector of its own. */
static double along_row(const struct dl_cpu *o, double row, double columns, const double *column_sides)
{
    const double whole = floor(row / o->tile_m), left = ceil(row / o->tile_m) - whole;
    return multiplications(o, whole, columns, column_sides) + multiplications(o, left, columns, column_sides);
}

/* Of vectors along k. */
static double along_k(const struct dl_cpu *o, double rows, double columns, double k)
{
    return multiplications(o, rows, columns, columns_of) * ceil(k / o->tile_m);
}

static double of_input_gradient(const struct dl_cpu *o, const struct dl_kernel *k)
{
    const double left = fmod(k->n, o->tile_m);
    if (left > least_share * o->tile_m || k->k < o->direct_k) return along_row(o, k->n, k->m, columns_of) * k->k;
    return along_row(o, k->n - left, k->m, columns_of) * k->k + along_k(o, left, k->m, k->k);
}

static double all_multiplications(const struct dl_cpu *o, const struct dl_kernel *k)
{
    switch (k->pass) {
    case DL_PASS_FORWARD: return along_k(o, k->n, k->m, k->k);
    case DL_PASS_INPUT_GRADIENT: return of_input_gradient(o, k);
    case DL_PASS_WEIGHT_GRADIENT: break;
    }
    return along_row(o, k->m, k->n, columns_across) * k->k;
}

bool dl_cpu_is_direct(const struct dl_cpu *o, const struct dl_kernel *k)
{
    if (k->m * k->n * k->k > o->direct_multiplications) return false;
    return k->pass != DL_PASS_FORWARD || (k->m * k->n <= o->direct_results && k->k >= o->direct_k);
}

double dl_cpu_direct_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_cpu *const o = d->options;
    const double flop_of_vector = 2 * o->tile_m;
    return k->batch * all_multiplications(o, k) * flop_of_vector / (d->peak_flop_per_s[precision] * o->cores);
}
