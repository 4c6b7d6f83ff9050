/* gpu.h - the figures of a GPU and the parts of its model: GEMMs, attention. */
#ifndef DL_COST_GPU_H
#define DL_COST_GPU_H

#include "sim/cost/device.h"

struct dl_gpu {
    double units, clock_hz, matrix_fraction, sustained_fraction, fp8_sustained_fraction, nvfp4_sustained_fraction,
        fp32_matrix_fraction, fp32_sustained_fraction, cache_bytes_per_s, cluster, tile_s, result_bytes_per_s;
    struct dl_int_list tile_sides; /* of kernels whose tiles have fixed shapes */
    double tile_sides_results, split_most, unaligned_split_most;
    double tile_rows, tile_most_rows, tile_longest, tile_results, tile_step, tile_choice_exponent, tile_depth,
        half_aligned_fraction, half_aligned_step_s, unaligned_fraction, unaligned_step_s;
    double bandwidth_fraction, ramp_s, memory_ramp_s, limits_exponent, group_launch_s, convolution_fraction, regroup_s;
    double grouped_result_s;
    double attention_fraction, attention_backward_fraction, exponentials_per_s, attention_rows, attention_backward_rows,
        attention_head_multiple;
    double attention_block_s, attention_backward_block_s, attention_tail, attention_backward_tail;
    double attention_randoms_per_s, attention_backward_randoms_per_s;
};

double dl_gpu_memory_s(const struct dl_device *d, double bytes);
/* Of what one unit of the H200 would take so long for. */
double dl_gpu_instructions_s(const struct dl_gpu *o, double unit_s);

/* Of two things that go on at the same time: the longer one if there is no limits_exponent. */
double dl_gpu_longer_s(const struct dl_gpu *o, double a_s, double b_s);

double dl_gpu_product_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);
/* As a product, or by fewer multiplications where that is faster: see gpu_convolution.c. */
double dl_gpu_convolution_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);
double dl_gpu_attention_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);

#endif
