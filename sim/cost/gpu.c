/* gpu.c - a GPU from its parts: compute units that each work on one tile of the result at a time, and a memory. */
#include "sim/cost/gpu.h"

#include <math.h>

#include "sim/cost/device_models.h"
#include "sim/cost/operations.h"

#define FIGURE(name, min, max, optional, doc)                                                                          \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_gpu, name), min, max, optional, NULL, doc                                 \
    }

/* What holds for a device whose file does not say it, as if it were an A100: the tiles of CUTLASS's and cuBLAS's
 * kernels for Ampere; FlashAttention-2's blocks of queries and keys (Dao 2023); tails fitted to attention of 8 to 128
 * heads on the A100 and the B200 (SimuMax, configs/system). Tiles of any shape, with tile_results, are those of the
 * H200. */
static int64_t ampere_sides[] = {64, 128, 256};
static const struct dl_gpu defaults = {.clock_hz = 1.98e9,
                                       .cluster = 1,
                                       .tile_sides = {ampere_sides, DL_COUNT(ampere_sides)},
                                       .tile_sides_results = 32768,
                                       .split_most = 16,
                                       .unaligned_split_most = 64,
                                       .tile_rows = 64,
                                       .tile_most_rows = 256,
                                       .tile_longest = 320,
                                       .tile_step = 64,
                                       .tile_depth = 1,
                                       .convolution_fraction = 1,
                                       .half_aligned_fraction = 1,
                                       .unaligned_fraction = 1,
                                       .attention_rows = 128,
                                       .attention_backward_rows = 128,
                                       .attention_head_multiple = 1,
                                       .attention_tail = 0.65,
                                       .attention_backward_tail = 0.3};
static const struct dl_field fields[] = {
    FIGURE(units, 1, 1e6, false, "units that work on one tile each: streaming multiprocessors, compute units"),
    FIGURE(clock_hz, 1e8, 1e10, true,
           "highest clock of a unit (that of the H200 if not given), which counts for kernels that are bound by their "
           "instructions; 1.98e9 if absent"),
    FIGURE(matrix_fraction, 0.01, 1, false, "share of the peak that a GEMM reaches inside a tile"),
    FIGURE(sustained_fraction, 0.01, 1, false, "share of the peak that the power limit allows in the long run"),
    FIGURE(fp8_sustained_fraction, 0.01, 1, true,
           "the same for GEMMs in fp8, without scales of blocks; sustained_fraction if absent"),
    FIGURE(nvfp4_sustained_fraction, 0.01, 1, true, "the same for GEMMs in nvfp4; sustained_fraction if absent"),
    FIGURE(fp32_matrix_fraction, 0.01, 1, true, "matrix_fraction for GEMMs in fp32; matrix_fraction if absent"),
    FIGURE(fp32_sustained_fraction, 0.01, 1, true,
           "sustained_fraction for GEMMs in fp32; sustained_fraction if absent"),
    FIGURE(cache_bytes_per_s, 1, 1e18, false, "bandwidth of operands from the last cache to all units"),
    FIGURE(cluster, 1, 16, true, "units that share what they read of the longer operand; 1 if absent"),
    FIGURE(tile_s, 0, 1, false, "fixed time of a tile, whatever its k: first operands, result"),
    FIGURE(result_bytes_per_s, 1, 1e18, true,
           "bandwidth of results from all units, which nothing hides; no limit if absent"),
    {"tile_sides", DL_INT_LIST, offsetof(struct dl_gpu, tile_sides), 8, 4096, true, NULL,
     "sides of tiles of fixed shape: all pairs of them; [64, 128, 256] if absent"},
    FIGURE(tile_sides_results, 1, 1e6, true, "results of a tile of fixed shape at most; 32768 if absent"),
    FIGURE(split_most, 1, 64, true, "parts of k at most that are computed apart and then summed; 16 if absent"),
    FIGURE(unaligned_split_most, 1, 64, true,
           "the same where rows do not begin at multiples of 16 bytes; 64 if absent"),
    FIGURE(tile_results, 0, 1e6, true, "results of a tile of free shape at most; only fixed shapes if absent"),
    FIGURE(tile_rows, 8, 1024, true, "of free shapes: one side is a multiple of this; 64 if absent"),
    FIGURE(tile_most_rows, 8, 4096, true, "of free shapes: the largest such side; 256 if absent"),
    FIGURE(tile_longest, 8, 4096, true, "of free shapes: the largest other side; 320 if absent"),
    FIGURE(tile_step, 8, 256, true, "of free shapes: step of the other side; 64 if absent"),
    FIGURE(tile_choice_exponent, 1, 1000, true,
           "of free shapes: the larger, the nearer the library's choice is to the fastest tile; always the fastest if "
           "absent"),
    FIGURE(tile_depth, 1, 1024, true, "k is padded to a multiple of this; 1 if absent"),
    FIGURE(
        half_aligned_fraction, 0.01, 1, true,
        "rate of GEMMs whose rows begin at multiples of 4 but not of 16 bytes, over that of aligned ones; 1 if absent"),
    FIGURE(half_aligned_step_s, 0, 1, true, "least time of such a tile for each of k; 0 if absent"),
    FIGURE(unaligned_fraction, 0.01, 1, true,
           "rate of GEMMs whose rows do not begin at multiples of 4 bytes, over that of aligned ones; 1 if absent"),
    FIGURE(unaligned_step_s, 0, 1, true, "least time of such a tile for each of k; 0 if absent"),
    FIGURE(bandwidth_fraction, 0.01, 1, false, "share of the memory bandwidth that large kernels reach"),
    FIGURE(ramp_s, 0, 1, false, "time to fill and drain the device, once per kernel"),
    FIGURE(memory_ramp_s, 0, 1, true, "the same for memory-bound kernels; ramp_s if absent"),
    FIGURE(limits_exponent, 1, 100, true,
           "e: arithmetic of a s and memory of b s together take (a^e + b^e)^(1/e); the longer of them if absent"),
    FIGURE(group_launch_s, 0, 1, true,
           "least time of one GEMM of a group, as libraries launch them one by one; 0 if absent"),
    FIGURE(convolution_fraction, 0.01, 1, true, "rate of convolutions over that of GEMMs; 1 if absent"),
    FIGURE(regroup_s, 0, 1, true,
           "of convolutions in groups whose channels are no power of two: time for each element of both images, which "
           "are copied around them; 0 if absent"),
    FIGURE(grouped_result_s, 0, 1, true,
           "of convolutions in groups of 4 to 32 channels, a power of two, in 16 bits: least time of one unit at 1.98 "
           "GHz for each result, where groups share no more than a matrix instruction (with 0 they share a tile); 0 if "
           "absent"),
    FIGURE(attention_fraction, 0.01, 1, false, "share of the peak that the GEMMs of fused attention reach"),
    FIGURE(attention_backward_fraction, 0.01, 1, false, "the same in the backward"),
    FIGURE(exponentials_per_s, 1, 1e18, false, "of the special function units"),
    FIGURE(attention_rows, 1, 4096, true, "queries that a unit processes at once; 128 if absent"),
    FIGURE(attention_backward_rows, 1, 4096, true, "keys that a unit processes at once in the backward; 128 if absent"),
    FIGURE(attention_head_multiple, 1, 1024, true, "heads are padded to a multiple of this; 1 if absent"),
    FIGURE(attention_block_s, 0, 1, true, "fixed time of a block of queries; 0 if absent"),
    FIGURE(attention_backward_block_s, 0, 1, true, "the same in the backward; 0 if absent"),
    FIGURE(attention_tail, 0, 2, true, "share of the longest row's time that units wait for the last; 0.65 if absent"),
    FIGURE(attention_backward_tail, 0, 2, true, "the same in the backward; 0.3 if absent"),
    FIGURE(attention_randoms_per_s, 1, 1e18, true, "random numbers for dropout in fused attention; no limit if absent"),
    FIGURE(attention_backward_randoms_per_s, 1, 1e18, true,
           "the same in the backward, where they are drawn again; no limit if absent"),
};

/* Without a tile no product can be computed. */
static const char *fault(const void *options)
{
    const struct dl_gpu *const o = options;
    bool has_fixed = false;
    for (size_t i = 0; i < o->tile_sides.n; i++) {
        const double side = (double)o->tile_sides.items[i];
        has_fixed |= side * side <= o->tile_sides_results;
    }
    if (!has_fixed) return "tile_sides must have one whose square is at most tile_sides_results";
    const bool has_free = o->tile_rows * o->tile_rows <= o->tile_results && o->tile_rows <= o->tile_most_rows &&
                          o->tile_rows <= o->tile_longest;
    if (o->tile_results > 0 && !has_free)
        return "tile_rows must be at most tile_most_rows and tile_longest, and its square at most tile_results";
    return NULL;
}

double dl_gpu_memory_s(const struct dl_device *d, double bytes)
{
    const struct dl_gpu *const o = d->options;
    return bytes / (d->memory_bytes_per_s * o->bandwidth_fraction);
}

double dl_gpu_longer_s(const struct dl_gpu *o, double a_s, double b_s)
{
    const double longer_s = fmax(a_s, b_s), shorter_s = fmin(a_s, b_s), e = o->limits_exponent;
    return e > 0 && longer_s > 0 ? longer_s * pow(1 + pow(shorter_s / longer_s, e), 1 / e) : longer_s;
}

/* The products of experts are launched one by one, as they differ in length. */
static double group_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    struct dl_kernel one = *k;
    one.batch = fmin(k->batch, 1);
    return k->batch / one.batch * fmax(o->group_launch_s, dl_gpu_product_s(d, &one, precision));
}

/* Software files say what a unit of the H200 takes; units of other generations do as many integer instructions in a
 * clock (CUDA C programming guide, throughput of native arithmetic instructions: 64 for 6.0, 7.x, 8.0 and 9.0). */
double dl_gpu_instructions_s(const struct dl_gpu *o, double unit_s)
{
    return unit_s * defaults.clock_hz / o->clock_hz / o->units;
}

static double clocks_per_s(const void *options)
{
    const struct dl_gpu *const o = options;
    return o->units * o->clock_hz;
}

static void take_kernels(void *options, const void *of)
{
    ((struct dl_gpu *)options)->grouped_result_s = ((const struct dl_gpu *)of)->grouped_result_s;
}

static double body_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    switch (k->kind) {
    case DL_KERNEL_GEMM:
        return dl_kernel_is_of_experts(k) ? group_s(d, k, precision) : dl_gpu_product_s(d, k, precision);
    case DL_KERNEL_CONV: return dl_gpu_convolution_s(d, k, precision);
    case DL_KERNEL_ATTENTION: return dl_gpu_attention_s(d, k, precision);
    case DL_KERNEL_MEMORY: break;
    }
    return (o->memory_ramp_s > 0 ? o->memory_ramp_s : o->ramp_s) +
           fmax(dl_gpu_instructions_s(o, dl_kernel_unit_s(k)), dl_gpu_memory_s(d, dl_kernel_bytes(k, precision)));
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
    .options_size = sizeof(struct dl_gpu),
    .defaults = &defaults,
    .fault = fault,
    .price = price,
    .clocks_per_s = clocks_per_s,
    .take_kernels = take_kernels,
};
