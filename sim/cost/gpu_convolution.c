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

/* An input gradient is a convolution over the gradient, too: a row for each pixel of the input, which sums what the
 * windows that hold it send back, so that no window is written and added. Where windows do not overlap each pixel gets
 * one row of the product as it stands. */
static struct dl_kernel of_pixels(const struct dl_kernel *k)
{
    struct dl_kernel p = *k;
    if (k->pass != DL_PASS_INPUT_GRADIENT || !(k->window > k->stride && k->stride > 0)) return p;
    const double pixels = k->stride * k->stride, in_window = k->window * k->window;
    p.m *= pixels;
    p.n /= in_window;
    p.k *= in_window / pixels;
    p.pass = DL_PASS_FORWARD; /* of the gradient, of which a pixel is in as many rows as its window has */
    p.stride = 1;
    return p;
}

/* Groups of few channels share a tile (on the H200 kernels of 64 x 64 do nearly all of ResNeXt's), which multiplies
 * those of one with the zeros that stand for the others' weights; or only where they share an instruction, which is 16
 * channels deep: cuDNN's kernels for Ampere issue 4 times as many as groups of 4 channels need, and twice as many for
 * 8, in all passes (validation/measured/grouped_convolutions.json). */
static struct dl_kernel in_bundles(const struct dl_kernel *k, bool by_instruction)
{
    const double least = 64, deep = 16, bundle = fmin(k->batch, fmax(1, floor(least / k->n)));
    struct dl_kernel p = *k;
    p.batch /= bundle;
    p.n *= bundle;
    *(k->pass == DL_PASS_WEIGHT_GRADIENT ? &p.m : &p.k) *=
        by_instruction ? fmin(bundle, fmax(1, floor(deep / k->n))) : bundle;
    return p;
}

/* Such a kernel issues about two instructions for each result, whatever its channels, which take longer than its
 * multiplications (validation/measured/grouped_convolutions.json); a weight gradient, which goes through the same
 * pixels, as many as the forward. The groups that were timed have 4 to 32 channels. */
static double grouped_s(const struct dl_device *d, const struct dl_kernel *k, bool is_regrouped,
                        enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    const double fewest = 4, most = 32; /* channels */
    const double results = k->batch * k->n * (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->k : k->m);
    const bool has_kernels = o->grouped_result_s > 0 && k->n >= fewest && k->n <= most && !is_regrouped &&
                             (precision == DL_FP16 || precision == DL_BF16);
    const struct dl_kernel bundled = in_bundles(k, has_kernels);
    const double product_s = dl_gpu_product_s(d, &bundled, precision);
    if (!has_kernels) return product_s;
    return fmax(product_s, o->ramp_s + dl_gpu_instructions_s(o, o->grouped_result_s * results));
}

/* Four channels, as of CosmoFlow's input, are filled up with zeros to the eight that matrix units load at once (cuDNN's
 * nhwcAddPaddingKernel). Odd numbers of them have kernels of their own. */
static struct dl_kernel padded(const struct dl_kernel *k, enum dl_precision precision)
{
    struct dl_kernel p = *k;
    const double loaded_bytes = 16, whole = loaded_bytes / dl_precision_value_bytes(precision);
    double *const side = k->pass == DL_PASS_WEIGHT_GRADIENT ? &p.m : &p.k;
    if (k->pass == DL_PASS_INPUT_GRADIENT) return p; /* only where windows do not overlap: its sides are no channels */
    if (k->batch > 1 || k->window <= 0 || dl_kernel_alignment(k, precision) != DL_HALF_ALIGNED) return p;
    const double channels = round(*side / (k->window * k->window));
    if (channels > 0 && fmod(channels, 2) == 0) *side *= ceil(channels / whole) * whole / channels;
    return p;
}

/* Of all groups, in the image that the forward makes. */
static double pixels_made(const struct dl_kernel *k)
{
    return k->batch * (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->k : k->m);
}

/* Elements that are laid out anew: both images. */
static double regrouped(const struct dl_kernel *k)
{
    if (!dl_kernel_is_regrouped(k)) return 0;
    return pixels_made(k) * (dl_kernel_filters(k) + k->stride * k->stride * dl_kernel_channels(k));
}

/* One channel and one filter a group, on vector units: no product, but a thread for each result that goes through its
 * window (PyTorch, aten/native/cuda/DepthwiseConv2d.cu, for channels first in other than fp16; channels last are
 * cuDNN's, as steps in TF32 are timed). Seconds of one SM at 1.98 GHz for each pixel of a window, by
 * ten such convolutions of DeepCAM timed in fp32 on an H200: forward and weight gradient by results, the other by the
 * pixels that it is for. */
static const double depthwise_s[] = {
    [DL_PASS_FORWARD] = 0.14e-9, [DL_PASS_INPUT_GRADIENT] = 0.245e-9, [DL_PASS_WEIGHT_GRADIENT] = 0.245e-9};

static double without_product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    const double made = pixels_made(k), given = made * k->stride * k->stride;
    const double pixels = (k->pass == DL_PASS_INPUT_GRADIENT ? given : made) * k->window * k->window;
    return o->ramp_s + fmax(dl_gpu_instructions_s(o, depthwise_s[k->pass] * pixels),
                            dl_gpu_memory_s(d, (made + given) * dl_precision_bytes(precision)));
}

double dl_gpu_convolution_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    if (dl_kernel_is_without_product(k, precision)) return without_product_s(d, k, precision);
    struct dl_device of_library = *d;
    of_library.peak_flop_per_s[precision] *= ((const struct dl_gpu *)d->options)->convolution_fraction;
    struct dl_kernel direct = of_pixels(k);
    direct = padded(&direct, precision);
    if (direct.batch > 1)
        return grouped_s(&of_library, &direct, dl_kernel_is_regrouped(k), precision) +
               ((const struct dl_gpu *)d->options)->regroup_s * regrouped(k);
    double best_s = dl_gpu_product_s(&of_library, &direct, precision);
    if (!has_minimal_filters(k, precision)) return best_s;
    for (size_t i = 0; i < DL_COUNT(tile_sides); i++)
        best_s = fmin(best_s, winograd_s(&of_library, k, tile_sides[i], precision));
    return best_s;
}
