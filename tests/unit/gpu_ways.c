/* gpu_ways.c - what the model of GPUs makes of a kernel: tiles, waves, shares of the peak and of bandwidth. */
#include <math.h>

#include "tests/unit/priced_device.h"

START_TEST(large_products_reach_the_sustained_fraction)
{
    open_device_number(_i);
    if (!is_gpu()) return;
    const struct dl_kernel k = product(16384, 16384, 16384);
    const double reached = dl_kernel_flop(&k) / seconds(k) / device.peak_flop_per_s[fast_precision()];
    const double stated = figure("sustained_fraction");
    ck_assert_double_le(reached, stated);
    ck_assert_double_ge(reached, 0.95 * stated);
}
END_TEST

/* It holds in fp8 alone: not where blocks are scaled, nor in bf16. */
START_TEST(fp8_may_sustain_another_share)
{
    const struct dl_kernel k = product(16384, 16384, 16384);
    open_device("b200");
    const double stated = figure("fp8_sustained_fraction"), usual = figure("sustained_fraction");
    ck_assert_double_gt(stated, usual);
    const double reached = dl_kernel_flop(&k) / dl_price(&device, &k, DL_FP8).seconds / device.peak_flop_per_s[DL_FP8];
    ck_assert_double_eq_tol(reached, stated, 0.05 * stated);
    const double bf16_s = dl_price(&device, &k, DL_BF16).seconds, mxfp8_s = dl_price(&device, &k, DL_MXFP8).seconds;
    change_device("figures.fp8_sustained_fraction=0.3");
    ck_assert_double_eq(dl_price(&device, &k, DL_BF16).seconds, bf16_s);
    ck_assert_double_eq(dl_price(&device, &k, DL_MXFP8).seconds, mxfp8_s);
    ck_assert_double_ge(dl_price(&device, &k, DL_FP8).seconds,
                        dl_kernel_flop(&k) / 0.3 / device.peak_flop_per_s[DL_FP8]);
}
END_TEST

/* Units of their own, with power of their own: both shares hold in fp32 alone. */
START_TEST(fp32_may_have_shares_of_its_own)
{
    const struct dl_kernel large = product(16384, 16384, 16384), wave = product(1024, 1024, 8192);
    open_device("v100-32-pcie");
    const double stated = figure("fp32_sustained_fraction"), peak = device.peak_flop_per_s[DL_FP32];
    ck_assert_double_gt(stated, figure("sustained_fraction"));
    ck_assert_double_eq_tol(dl_kernel_flop(&large) / dl_price(&device, &large, DL_FP32).seconds / peak, stated,
                            0.05 * stated);
    const double fp16_s = dl_price(&device, &large, DL_FP16).seconds,
                 wave_s = dl_price(&device, &wave, DL_FP32).seconds;
    change_device("figures.fp32_matrix_fraction=0.4");
    ck_assert_double_gt(dl_price(&device, &wave, DL_FP32).seconds, 1.5 * wave_s);
    change_device("figures.fp32_sustained_fraction=0.3");
    ck_assert_double_ge(dl_price(&device, &large, DL_FP32).seconds, dl_kernel_flop(&large) / 0.3 / peak);
    ck_assert_double_eq(dl_price(&device, &large, DL_FP16).seconds, fp16_s);
}
END_TEST

/* A vocabulary of 50,257 costs tensor cores much, and units that compute in fp32 nothing. */
START_TEST(rows_need_not_be_aligned_in_fp32)
{
    const struct dl_kernel even = product(4096, 50304, 1280), odd = product(4096, 50257, 1280);
    open_device("h100");
    ck_assert_double_gt(dl_price(&device, &odd, DL_BF16).seconds, 1.5 * dl_price(&device, &even, DL_BF16).seconds);
    ck_assert_double_le(dl_price(&device, &odd, DL_FP32).seconds, dl_price(&device, &even, DL_FP32).seconds);
}
END_TEST

/* By the share of its own, and rows of 32 values are 16 bytes: scales lie apart. */
START_TEST(nvfp4_sustains_a_share_of_its_own_and_is_aligned_by_values)
{
    const struct dl_kernel k = product(16384, 16384, 16384), row = product(4096, 4096, 32),
                           half = product(4096, 4096, 8);
    open_device("gb300");
    const double stated = figure("nvfp4_sustained_fraction"), peak = device.peak_flop_per_s[DL_NVFP4];
    ck_assert_double_eq_tol(dl_kernel_flop(&k) / dl_price(&device, &k, DL_NVFP4).seconds / peak, stated, 0.05 * stated);
    ck_assert_int_eq(dl_kernel_alignment(&row, DL_NVFP4), DL_ALIGNED);
    ck_assert_int_eq(dl_kernel_alignment(&half, DL_NVFP4), DL_HALF_ALIGNED);
    ck_assert_double_eq(dl_kernel_bytes(&row, DL_NVFP4), 2 * 4096 * 32 * 9 / 16.0 + 4096 * 4096 * 2.0);
    const double mxfp8_s = dl_price(&device, &k, DL_MXFP8).seconds;
    change_device("figures.nvfp4_sustained_fraction=0.1");
    ck_assert_double_eq(dl_price(&device, &k, DL_MXFP8).seconds, mxfp8_s);
    ck_assert_double_ge(dl_price(&device, &k, DL_NVFP4).seconds, dl_kernel_flop(&k) / 0.1 / peak);
}
END_TEST

START_TEST(a_last_wave_that_is_not_full_costs)
{
    open_device("a100-80");
    ck_assert_double_eq(figure("units"), 9 * 12); /* one tile of 256 x 128 for each */
    const double full_s = seconds(product(9 * 256, 12 * 128, 8192));
    const double spilled_s = seconds(product(10 * 256, 12 * 128, 8192)); /* a ninth more work */
    ck_assert_double_ge(spilled_s, 1.3 * full_s);
    ck_assert_double_le(spilled_s, 2 * full_s);
}
END_TEST

START_TEST(a_small_result_with_long_k_is_split)
{
    open_device("a100-80");
    const double n = 128, k = 65536;
    const double one_unit_s = 2 * n * n * k / (device.peak_flop_per_s[DL_BF16] / figure("units"));
    ck_assert_double_le(seconds(product(n, n, k)), one_unit_s / 4);
}
END_TEST

START_TEST(short_k_reaches_less_of_the_peak)
{
    open_device("a100-80");
    double before = 0;
    for (double k = 64; k <= 8192; k *= 2) {
        const double rate = k / seconds(product(8192, 8192, k));
        ck_assert_double_gt(rate, before);
        before = rate;
    }
}
END_TEST

START_TEST(small_kernels_reach_less_bandwidth)
{
    open_device("a100-80");
    double before = 0;
    for (double elements = 1024; elements <= 1e10; elements *= 4) {
        const double rate = elements / seconds(moving(elements));
        ck_assert_double_ge(rate, before);
        before = rate;
    }
    const double limit = device.memory_bytes_per_s * figure("bandwidth_fraction");
    ck_assert_double_eq_tol(before * dl_precision_bytes(DL_BF16) / limit, 1, 0.01);
}
END_TEST

START_TEST(causal_attention_costs_half_and_backward_more_than_twice)
{
    open_device("a100-80");
    const double full_s = seconds(attention(512, 8192, 128, false, false));
    ck_assert_double_eq_tol(seconds(attention(512, 8192, 128, true, false)) / full_s, 0.5, 0.02);
    ck_assert_double_ge(seconds(attention(512, 8192, 128, false, true)), 2 * full_s);
}
END_TEST

/* Long rows of many heads: only the scores count, and each takes its random number longer. */
START_TEST(dropout_of_scores_takes_their_random_numbers)
{
    static const char *const figures[] = {"attention_randoms_per_s", "attention_backward_randoms_per_s"};
    open_device("h200");
    device.measured = NULL;
    for (int backward = 0; backward < 2; backward++) {
        const double batch = 64 * figure("units"), length = 4096, scores = batch * length * length;
        struct dl_kernel k = attention(batch, length, 64, false, backward);
        const double without_s = seconds(k);
        k.drops = true;
        ck_assert_double_eq_tol((seconds(k) - without_s) * figure(figures[backward]) / scores, 1, 1e-9);
    }
    open_device("a100-80"); /* which does not tell */
    struct dl_kernel k = attention(512, 4096, 64, true, false);
    const double without_s = seconds(k);
    k.drops = true;
    ck_assert_double_eq(seconds(k), without_s);
}
END_TEST

START_TEST(sums_in_fp32_are_read_and_written)
{
    open_device_number(_i);
    struct dl_kernel k = product(16384, 16384, 1);
    const enum dl_precision precision = fast_precision();
    const double plain_s = seconds(k), plain_bytes = dl_kernel_bytes(&k, precision);
    k.accumulates = true;
    ck_assert_double_eq(dl_kernel_bytes(&k, precision) - plain_bytes,
                        16384.0 * 16384 * (8 - dl_precision_bytes(precision)));
    ck_assert_double_ge(seconds(k), plain_s);
}
END_TEST

START_TEST(rows_that_cannot_be_read_at_once_cost_more)
{
    open_device("h200");
    device.measured = NULL;
    struct dl_kernel even = product(8192, 4096, 4096), half = product(8192, 4094, 4096),
                     odd = product(8192, 4095, 4096);
    ck_assert_double_gt(seconds(half), 2 * seconds(even));
    ck_assert_double_gt(seconds(odd), 1.3 * seconds(half));
    even.pass = odd.pass = DL_PASS_WEIGHT_GRADIENT; /* which reads across: k is free */
    odd.n = 4096, odd.k = 4095;
    ck_assert_double_eq_tol(seconds(odd) / seconds(even), 1, 1e-3);
    open_device("a100-80");
    ck_assert_double_eq_tol(seconds(product(8192, 4095, 4096)) / seconds(product(8192, 4096, 4096)), 1, 1e-3);
}
END_TEST

/* By hand: one wave of tiles of 320 x 128 keeps all units busy for as long as one of them takes; if none of the other
 * shapes were as fast, the library's choice would be the mean of one and of times without end. */
START_TEST(a_wave_of_large_tiles_takes_as_long_as_one)
{
    open_device("h200");
    device.measured = NULL;
    const double tile = figure("tile_results"), k = 8192, peak = device.peak_flop_per_s[DL_BF16];
    const double step_s = 2 * tile * figure("units") / (peak * figure("matrix_fraction"));
    const double result_s = 2 * tile * figure("units") / figure("result_bytes_per_s");
    const double tiling_s = figure("tile_s") + result_s + k * step_s;
    ck_assert_double_eq(figure("units"), 11 * 12);
    const struct dl_kernel wave = product(11 * 320, 12 * 128, k);
    ck_assert_double_ge(seconds(wave), figure("ramp_s") + tiling_s);
    const double shapes = 51, longest = pow(shapes, 1 / figure("tile_choice_exponent"));
    ck_assert_double_le(seconds(wave), 1.05 * (figure("ramp_s") + longest * tiling_s)); /* memory beside it */
}
END_TEST

START_TEST(heads_are_filled_up_and_short_blocks_cost)
{
    open_device("h200");
    device.measured = NULL;
    ck_assert_double_eq(seconds(attention(64, 4096, 80, true, false)), seconds(attention(64, 4096, 128, true, false)));
    const double wave = figure("units"); /* of one block each: two take twice as long, one more than two thrice */
    const double one_s = seconds(attention(wave, 128, 64, false, false)) - figure("ramp_s");
    ck_assert_double_ge(one_s, figure("attention_block_s"));
    ck_assert_double_eq_tol(seconds(attention(2 * wave, 128, 64, false, false)) - figure("ramp_s"), 2 * one_s, 1e-12);
    ck_assert_double_eq_tol(seconds(attention(2 * wave + 1, 128, 64, false, false)) - figure("ramp_s"), 3 * one_s,
                            1e-12);
}
END_TEST

/* No more units work than there are heads, and one head more than units takes a wave of its own. */
START_TEST(whole_heads_go_in_waves)
{
    open_device("max1550-tile");
    const double wave = figure("units");
    struct dl_kernel k = attention(1, 4096, 128, true, true);
    k.by_whole_heads = true;
    const double one_s = seconds(k) - figure("ramp_s");
    for (int heads = 8; heads <= 2 * wave; heads += 8) {
        k.batch = heads;
        ck_assert_double_eq_tol((seconds(k) - figure("ramp_s")) / one_s, heads <= wave ? 1 : 2, 1e-9);
    }
    k.by_whole_heads = false, k.batch = 1; /* its blocks on as many units */
    ck_assert_double_lt(seconds(k), one_s / 8);
}
END_TEST

/* Attention that was timed goes by blocks. */
START_TEST(whole_heads_take_no_measured_times)
{
    open_device("h200");
    struct dl_kernel k = attention(8, 4096, 128, true, true);
    k.by_whole_heads = true;
    const double with_tables_s = seconds(k);
    device.measured = NULL;
    ck_assert_double_eq(with_tables_s, seconds(k));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, large_products_reach_the_sustained_fraction, 0, n_devices);
    tcase_add_test(tests, fp8_may_sustain_another_share);
    tcase_add_test(tests, fp32_may_have_shares_of_its_own);
    tcase_add_test(tests, rows_need_not_be_aligned_in_fp32);
    tcase_add_test(tests, nvfp4_sustains_a_share_of_its_own_and_is_aligned_by_values);
    tcase_add_test(tests, a_last_wave_that_is_not_full_costs);
    tcase_add_test(tests, a_wave_of_large_tiles_takes_as_long_as_one);
    tcase_add_test(tests, rows_that_cannot_be_read_at_once_cost_more);
    tcase_add_test(tests, heads_are_filled_up_and_short_blocks_cost);
    tcase_add_test(tests, whole_heads_go_in_waves);
    tcase_add_test(tests, whole_heads_take_no_measured_times);
    tcase_add_test(tests, a_small_result_with_long_k_is_split);
    tcase_add_test(tests, short_k_reaches_less_of_the_peak);
    tcase_add_test(tests, small_kernels_reach_less_bandwidth);
    tcase_add_test(tests, causal_attention_costs_half_and_backward_more_than_twice);
    tcase_add_test(tests, dropout_of_scores_takes_their_random_numbers);
    tcase_add_loop_test(tests, sums_in_fp32_are_read_and_written, 0, n_devices);
}

int main(void) { return run_devices("gpu_ways", add); }
