/* gpu_convolution.c - convolutions as products, or by Winograd's minimal filtering (Lavin and Gray 2016, arXiv
 * 1509.09308): t x t results of a 3 x 3 window come from (t + 2)^2 multiplications instead of 9 t^2.
 *
 *     transform    both tensors are read and written in tiles of (t + 2)^2 for t^2 pixels, or come from such
 *     multiply     (t + 2)^2 products over all tiles, each of channels x filters
 *
 * Libraries have it for t = 2 and 4 in fp32, where vector units multiply; tensor cores are faster without. */
#include <math.h>

#include "sim/cost/gpu.h"

static const double window = 3, halo = 2, tile_sides[] = {2, 4};

/* Windows of one group that move by a pixel, on squares. */
static bool has_minimal_filters(const struct dl_kernel *k, enum dl_precision precision)
{
    const bool is_square = k->made.height > 0 && k->made.height == k->made.width;
    return precision == DL_FP32 && k->window == window && k->stride == 1 && k->batch == 1 && is_square;
}

/* Of the (t + 2)^2 products; the weights' own transform is small. */
static struct dl_kernel product_of(const struct dl_kernel *k, double t)
{
    const double side = k->made.height, across = ceil(side / t), tiles_per_pixel = across * across / (side * side);
    struct dl_kernel p = *k;
    p.kind = DL_KERNEL_GEMM;
    p.batch = (t + halo) * (t + halo);
    switch (k->pass) {
    case DL_PASS_FORWARD: p.m *= tiles_per_pixel, p.k /= window * window; break;
    case DL_PASS_INPUT_GRADIENT: p.m *= tiles_per_pixel, p.n /= window * window; break;
    case DL_PASS_WEIGHT_GRADIENT: p.k *= tiles_per_pixel, p.m /= window * window; break;
    }
    return p;
}

static double winograd_s(const struct dl_device *d, const struct dl_kernel *k, double t, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    const struct dl_kernel p = product_of(k, t);
    const bool of_weights = k->pass == DL_PASS_WEIGHT_GRADIENT;
    const double pixels = of_weights ? k->k : k->m, tiles = of_weights ? p.k : p.m;
    const double channels_and_filters = of_weights ? p.m + p.n : p.k + p.n;
    const double elements = channels_and_filters * (pixels + p.batch * tiles);
    return dl_gpu_product_s(d, &p, precision) + 2 * o->ramp_s +
           dl_gpu_memory_s(d, elements * dl_precision_bytes(precision));
}

double dl_gpu_convolution_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    struct dl_device of_library = *d;
    of_library.peak_flop_per_s[precision] *= ((const struct dl_gpu *)d->options)->convolution_fraction;
    double best_s = dl_gpu_product_s(&of_library, k, precision);
    if (!has_minimal_filters(k, precision)) return best_s;
    for (size_t i = 0; i < DL_COUNT(tile_sides); i++)
        best_s = fmin(best_s, winograd_s(&of_library, k, tile_sides[i], precision));
    return best_s;
}
