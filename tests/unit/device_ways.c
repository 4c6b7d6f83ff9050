/* device_ways.c - what models of devices make of a kernel: rooflines, arrays, wafers, pipelines and processors. */
#include <math.h>

#include "tests/unit/priced_device.h"

START_TEST(roofline_is_the_longer_of_arithmetic_and_memory)
{
    static const char text[] =
        "{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"roofline\", \"peak_flop_per_s\":"
        " {\"bf16\": 4e14}, \"memory_bytes\": 6e10, \"memory_bytes_per_s\": 1.6e12, \"launch_s\": 4e-6,"
        " \"figures\": {\"compute_fraction\": 0.5, \"bandwidth_fraction\": 0.625}}";
    dl_json_parse(text, sizeof text - 1, "d.json", arena, &doc, &err);
    check_ok();
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    const double flop_per_s = device.peak_flop_per_s[DL_BF16] * figure("compute_fraction");
    const double bytes_per_s = device.memory_bytes_per_s * figure("bandwidth_fraction");
    ck_assert_double_eq_tol(seconds(product(8000, 8000, 8000)) * flop_per_s, 1024e9, 1e3);
    ck_assert_double_eq_tol(seconds(product(8000, 8000, 1)) * bytes_per_s, 2 * 64016000, 1);
    ck_assert_double_eq(seconds(product(1, 1, 1)), device.launch_s);
}
END_TEST

START_TEST(systolic_arrays_are_filled_by_squares)
{
    open_device("tpu-v4");
    const double array = figure("array"), arrays = figure("arrays"), peak = device.peak_flop_per_s[DL_BF16];
    const double cycle_s = 2 * array * array * arrays / peak / figure("matrix_fraction");
    /* 8192 rows through 16 x 64 squares on 8 arrays. */
    ck_assert_double_eq_tol(seconds(product(8192, 2048, 8192)) / cycle_s, 16 * 64 / arrays * 8192 + 2 * array, 1e-6);
    /* A square that is half empty takes as long. */
    ck_assert_double_eq(seconds(product(8192, 2048, 8192 - 64)), seconds(product(8192, 2048, 8192)));
    /* Few rows take as long as loading the weights, unless memory takes longer. */
    const double weights_s = 2.0 * 4096 * 4096 / device.memory_bytes_per_s / figure("bandwidth_fraction");
    ck_assert_double_ge(seconds(product(8, 4096, 4096)), weights_s);
}
END_TEST

/* Of 4 x 4 squares a causal mask hides 6 wholly. One that is as large as all is computed as if there was no mask. */
START_TEST(squares_that_a_mask_hides_in_part_are_computed)
{
    open_device("tpu-v6e");
    struct dl_kernel causal = {.kind = DL_KERNEL_ATTENTION, .batch = 64, .m = 8192, .n = 8192, .k = 128, .kv_share = 1};
    const double all_s = seconds(causal);
    causal.causal = true;
    change_device("figures.attention_rows=2048");
    ck_assert_double_eq_tol(seconds(causal) / all_s, 10.0 / 16, 1e-9);
    change_device("figures.attention_rows=0");
    ck_assert_double_eq_tol(seconds(causal) / all_s, 0.5, 1e-9);
    change_device("figures.attention_rows=20000");
    ck_assert_double_eq_tol(seconds(causal) / all_s, 1, 1e-9);
}
END_TEST

/* Two of five products backward are computed in both passes, if queries have one of their own. On the TPU v5p all five
 * take as long, and arrays longer than vectors. */
START_TEST(a_pass_for_queries_computes_scores_again)
{
    open_device("tpu-v5p");
    const struct dl_kernel backward = {
        .kind = DL_KERNEL_ATTENTION, .backward = true, .batch = 64, .m = 4096, .n = 4096, .k = 128, .kv_share = 1};
    change_device("figures.backward_products=5");
    const double one_pass_s = seconds(backward);
    change_device("figures.backward_products=7");
    ck_assert_double_eq_tol(seconds(backward) / one_pass_s, 7.0 / 5, 1e-3);
}
END_TEST

/* Where vectors take longer than arrays, two passes take them twice as long. */
START_TEST(both_passes_have_exponentials)
{
    open_device("tpu-v6e");
    const struct dl_kernel backward = {
        .kind = DL_KERNEL_ATTENTION, .backward = true, .batch = 64, .m = 4096, .n = 4096, .k = 128, .kv_share = 1};
    change_device("figures.vector_flop_per_score=500");
    change_device("figures.backward_products=5");
    const double one_pass_s = seconds(backward);
    change_device("figures.backward_products=7");
    ck_assert_double_eq_tol(seconds(backward) / one_pass_s, 2, 1e-9);
}
END_TEST

/* Forward on the TPU v6e vectors take longer than its arrays, so that twice the operations take twice as long. */
START_TEST(vectors_compute_each_score)
{
    open_device("tpu-v6e");
    const struct dl_kernel forward = {
        .kind = DL_KERNEL_ATTENTION, .batch = 64, .m = 4096, .n = 4096, .k = 128, .kv_share = 1};
    change_device("figures.vector_flop_per_score=20");
    const double some_s = seconds(forward), flop = 64.0 * 4096 * 4096 * 20;
    ck_assert_double_eq_tol(some_s, flop / figure("vector_flop_per_s"), 1e-9);
    change_device("figures.vector_flop_per_score=40");
    ck_assert_double_eq_tol(seconds(forward) / some_s, 2, 1e-9);
}
END_TEST

/* A window of up to 1 + 2048 keys reaches the block of 2048 before: of 4 x 4 blocks seven are gone through, with one
 * more key nine; four, if a query sees itself alone, and ten, all causal ones, if it sees all before it. */
START_TEST(blocks_that_a_window_reaches_are_computed)
{
    const double seq = 8192, rows = 2048;
    struct dl_kernel in_windows = {
        .kind = DL_KERNEL_ATTENTION, .batch = 64, .m = seq, .n = 128, .k = 128, .kv_share = 1};
    struct dl_kernel all = in_windows;
    all.n = seq;
    open_device("tpu-v6e");
    const double all_s = seconds(all);
    in_windows.window = 128;
    ck_assert_double_eq_tol(seconds(in_windows) / all_s, 7.0 / 16, 1e-3);
    in_windows.window = 1 + rows;
    ck_assert_double_eq_tol(seconds(in_windows) / all_s, 7.0 / 16, 1e-3);
    in_windows.window = 2 + rows;
    ck_assert_double_eq_tol(seconds(in_windows) / all_s, 9.0 / 16, 1e-3);
    in_windows.window = 1;
    ck_assert_double_eq_tol(seconds(in_windows) / all_s, 4.0 / 16, 1e-3);
    in_windows.window = seq;
    ck_assert_double_eq_tol(seconds(in_windows) / all_s, 10.0 / 16, 1e-3);
}
END_TEST

/* Where blocks do not divide the sequence, too. */
START_TEST(a_window_never_takes_longer)
{
    struct dl_kernel k = {.kind = DL_KERNEL_ATTENTION, .batch = 64, .k = 128, .kv_share = 1};
    open_device("tpu-v6e");
    for (double seq = 2048; seq <= 8192; seq += 256)
        for (double window = 256; window < seq; window *= 2) {
            k.m = k.n = seq, k.window = 0, k.causal = true;
            const double all_s = seconds(k);
            k.n = window, k.window = window, k.causal = false;
            ck_assert_double_le(seconds(k), all_s);
        }
}
END_TEST

/* 64 experts with 1024 tokens each: 256 tiles of 256 tokens, and 63 of them for two experts. What enters the gradient
 * of weights is as long; experts with places of their own, and one expert alone, share no tile. */
START_TEST(tiles_that_two_experts_share_are_computed_for_both)
{
    const double tile = 256, experts = 64, tokens = 1024, tiles = experts * tokens / tile;
    struct dl_kernel group = {.kind = DL_KERNEL_GEMM, .batch = experts, .m = tokens, .n = 4096, .k = 8192};
    open_device("tpu-v6e");
    change_device("figures.group_rows=0");
    const double alone_s = seconds(group);
    change_device("figures.group_rows=256");
    ck_assert_double_eq(seconds(group), alone_s);
    group.by.batch = DL_BY_EXPERT;
    ck_assert_double_eq_tol(seconds(group) / alone_s, (tiles + experts - 1) / tiles, 1e-2);
    struct dl_kernel of_weights = group;
    of_weights.pass = DL_PASS_WEIGHT_GRADIENT, of_weights.m = group.k, of_weights.k = group.m;
    ck_assert_double_eq_tol(seconds(of_weights) / alone_s, (tiles + experts - 1) / tiles, 1e-2);
    group.has_places = true;
    ck_assert_double_eq(seconds(group), alone_s);
    group.has_places = false, group.batch = 1;
    const double one_s = seconds(group);
    change_device("figures.group_rows=0");
    ck_assert_double_eq(seconds(group), one_s);
}
END_TEST

START_TEST(a_wafer_waits_for_its_weights_unless_the_batch_is_large)
{
    open_device("wse-2");
    const double weights = 12288.0 * 12288, stream_s = 2 * weights / figure("stream_bytes_per_s");
    ck_assert_double_eq_tol(seconds(product(2048, 12288, 12288)), stream_s, 1e-9);
    const double tokens = 1e6;
    const double arithmetic_s = 2 * tokens * weights / device.peak_flop_per_s[DL_BF16] / figure("compute_fraction");
    ck_assert_double_eq_tol(seconds(product(tokens, 12288, 12288)) / arithmetic_s, 1, 1e-3);
    change_device("figures.weight_density=0.25");
    ck_assert_double_eq_tol(seconds(product(2048, 12288, 12288)), stream_s / 4, 1e-9);
    struct dl_kernel scores = product(2048, 2048, 128); /* of activations: nothing streams, nothing is sparse */
    scores.module = DL_MODULE_CORE_ATTENTION;
    const double sparse_s = seconds(scores);
    change_device("figures.weight_density=1");
    ck_assert_double_eq(seconds(scores), sparse_s);
}
END_TEST

START_TEST(element_wise_work_is_free_in_a_pipeline)
{
    open_device("sn40l");
    struct dl_kernel work = moving(2e7);
    work.name = "gelu";
    ck_assert_double_eq(seconds(work), figure("stage_s"));
    work.name = "adam";
    ck_assert_double_ge(seconds(work), 4e7 / device.memory_bytes_per_s);
    work = moving(1e9); /* too much for the memory units */
    work.name = "gelu";
    ck_assert_double_ge(seconds(work), 2e9 / device.memory_bytes_per_s);
}
END_TEST

START_TEST(a_processor_loses_small_products_to_packing_and_large_data_to_memory)
{
    open_device("xeon-core");
    device.measured = NULL; /* what the model says */
    double before = 0;
    for (double n = 64; n <= 4096; n *= 4) {
        const double rate = n * n * n / seconds(product(n, n, n));
        ck_assert_double_gt(rate, before);
        before = rate;
    }
    const double short_k = seconds(product(1024, 1024, 16)) / 16, long_k = seconds(product(1024, 1024, 1024)) / 1024;
    ck_assert_double_ge(short_k, 1.3 * long_k);
    ck_assert_double_ge(seconds(moving(1e8)) / 1e8, 2 * seconds(moving(1e5)) / 1e5);
}
END_TEST

/* A row of 15 results is one of 8, one of 4, one of 2 and one of 1; those of the gradient of weights are m long. */
START_TEST(what_is_left_beside_tiles_is_done_in_halves)
{
    open_device("xeon-core");
    struct dl_device slow = *change_device("figures.matrix_fraction=0.01"); /* so that nothing else counts */
    slow.measured = NULL;
    const double part = figure("tail_fraction"), k = 4096;
    static const struct {
        double row, whole, parts;
    } rows[] = {{15, 0, 4}, {16, 1, 0}, {24, 1, 1}, {31, 1, 4}, {1, 0, 1}};
    for (size_t i = 0; i < DL_COUNT(rows); i++) {
        const struct dl_kernel tile = product(512, 16, k), row = product(512, rows[i].row, k);
        struct dl_kernel across = product(rows[i].row, 512, k);
        across.pass = DL_PASS_WEIGHT_GRADIENT;
        const double tile_s = dl_price(&slow, &tile, DL_FP32).seconds, wanted = rows[i].whole + rows[i].parts * part;
        ck_assert_double_eq_tol(dl_price(&slow, &row, DL_FP32).seconds / tile_s, wanted, 0.05 * wanted);
        ck_assert_double_eq_tol(dl_price(&slow, &across, DL_FP32).seconds / tile_s, wanted, 0.05 * wanted);
    }
}
END_TEST

START_TEST(small_products_are_not_packed_where_the_library_can)
{
    open_device("xeon-core");
    struct dl_kernel backward = product(100, 100, 100), larger = product(100, 100, 101);
    const struct dl_kernel across = product(30, 40, 64), too_wide = product(100, 100, 100);
    backward.pass = larger.pass = DL_PASS_INPUT_GRADIENT;
    const struct dl_kernel direct[] = {backward, across}, packed[] = {larger, too_wide};
    for (size_t i = 0; i < DL_COUNT(direct); i++) {
        struct dl_device changed = *change_device("figures.pack_bytes_per_s=15e9");
        const double direct_s = changed.model->price(&changed, &direct[i], DL_FP32).seconds;
        const double packed_s = changed.model->price(&changed, &packed[i], DL_FP32).seconds;
        changed = *change_device("figures.pack_bytes_per_s=5e9");
        ck_assert_double_eq(changed.model->price(&changed, &direct[i], DL_FP32).seconds, direct_s);
        ck_assert_double_gt(changed.model->price(&changed, &packed[i], DL_FP32).seconds, packed_s);
    }
}
END_TEST

/* Blocks of 4 vectors x 4 columns are what is multiplied; smaller ones wait for 8 multiplications. A vector holds 16 of
 * a row, or of k where both operands lie along it and for the last 8 or fewer of a row. */
START_TEST(small_products_are_done_in_blocks)
{
    static const struct {
        enum dl_kernel_pass pass;
        double m, n, k, multiplications;
    } products[] = {
        {DL_PASS_INPUT_GRADIENT, 4, 64, 1600, 16 * 1600.0}, /* one block */
        {DL_PASS_INPUT_GRADIENT, 1, 16, 1600, 8 * 1600.0},  /* of one multiplication */
        {DL_PASS_INPUT_GRADIENT, 5, 128, 960, 2 * (16 + 8) * 960.0},
        {DL_PASS_INPUT_GRADIENT, 4, 48 + 9, 960, (8 + 8 + 8) * 960.0}, /* two vectors, one, and one for 9 */
        {DL_PASS_INPUT_GRADIENT, 4, 48 + 8, 960, (8 + 8) * 960.0 + 2 * 16 * 60.0},
        {DL_PASS_INPUT_GRADIENT, 32, 48 + 8, 31, 8 * (8 + 8 + 8) * 31.0}, /* k is too short for that */
        {DL_PASS_WEIGHT_GRADIENT, 16, 8, 1600, 8 * 1600.0},
        {DL_PASS_WEIGHT_GRADIENT, 64, 16, 800, 2 * 32 * 800.0},
        {DL_PASS_FORWARD, 8, 32, 1600, 2 * 8 * 16 * 100.0},
    };
    open_device("xeon-core");
    change_device("figures.direct_bytes_per_s=1e15");
    change_device("figures.core_cache_bytes_per_s=1e15");
    const struct dl_device *const d = change_device("figures.call_s=0");
    ck_assert_double_eq(figure("direct_in_flight"), 8);
    for (size_t i = 0; i < DL_COUNT(products); i++) {
        struct dl_kernel k = product(products[i].m, products[i].n, products[i].k);
        k.pass = products[i].pass;
        const double wanted_s = products[i].multiplications * 2 * figure("tile_m") / d->peak_flop_per_s[DL_FP32];
        ck_assert_double_gt(wanted_s, d->launch_s);
        ck_assert_double_eq_tol(d->model->price(d, &k, DL_FP32).seconds, wanted_s, 1e-3 * wanted_s);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, systolic_arrays_are_filled_by_squares);
    tcase_add_test(tests, squares_that_a_mask_hides_in_part_are_computed);
    tcase_add_test(tests, a_pass_for_queries_computes_scores_again);
    tcase_add_test(tests, both_passes_have_exponentials);
    tcase_add_test(tests, vectors_compute_each_score);
    tcase_add_test(tests, a_window_never_takes_longer);
    tcase_add_test(tests, blocks_that_a_window_reaches_are_computed);
    tcase_add_test(tests, tiles_that_two_experts_share_are_computed_for_both);
    tcase_add_test(tests, a_wafer_waits_for_its_weights_unless_the_batch_is_large);
    tcase_add_test(tests, element_wise_work_is_free_in_a_pipeline);
    tcase_add_test(tests, a_processor_loses_small_products_to_packing_and_large_data_to_memory);
    tcase_add_test(tests, what_is_left_beside_tiles_is_done_in_halves);
    tcase_add_test(tests, small_products_are_not_packed_where_the_library_can);
    tcase_add_test(tests, small_products_are_done_in_blocks);
    tcase_add_test(tests, roofline_is_the_longer_of_arithmetic_and_memory);
}

int main(void) { return run_devices("device_ways", add); }
