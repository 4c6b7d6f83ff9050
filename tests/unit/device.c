/* device.c - prices of kernels: limits, growth, what tiles and waves do, published times. */
#include <math.h>

#include "tests/unit/priced_device.h"

/* The device of the file with "path=JSON" applied to it. */
static const struct dl_device *change_device(const char *assignment)
{
    dl_json_set(doc, assignment, arena, &err);
    check_ok();
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    return &device;
}

/* ---- what holds for every device ---- */

/* Element-wise work in a pipeline: neither launched nor written to memory. */
static bool is_fused(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_MEMORY && strcmp(device.model->name, "dataflow") == 0;
}

/* Data that one kernel leaves to the next in caches or in memory beside the arithmetic, without going to memory. */
static bool keeps_near(void)
{
    return strcmp(device.model->name, "dataflow") == 0 || strcmp(device.model->name, "cpu") == 0;
}

static void check_limits(const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_price price = dl_price(&device, k, precision);
    ck_assert(isfinite(price.seconds) && price.seconds > 0);
    ck_assert_double_eq(price.flop, dl_kernel_flop(k));
    ck_assert_double_ge(price.seconds, price.flop / device.peak_flop_per_s[precision]);
    const double modelled_s = device.model->price(&device, k, precision).seconds;
    if (!is_fused(k)) ck_assert_double_ge(modelled_s, device.launch_s);
    if (!keeps_near()) ck_assert_double_ge(modelled_s, dl_kernel_bytes(k, precision) / device.memory_bytes_per_s);
}

START_TEST(no_kernel_beats_peak_memory_or_launch)
{
    open_device_number(_i);
    static const double sizes[] = {1, 7, 64, 1000, 4096, 50257};
    for (int p = 0; p < DL_N_PRECISIONS; p++) {
        if (!dl_device_supports(&device, (enum dl_precision)p)) continue;
        for (size_t i = 0; i < DL_COUNT(sizes) * DL_COUNT(sizes) * DL_COUNT(sizes); i++) {
            const double a = sizes[i % DL_COUNT(sizes)], b = sizes[i / DL_COUNT(sizes) % DL_COUNT(sizes)];
            const double c = sizes[i / DL_COUNT(sizes) / DL_COUNT(sizes)];
            struct dl_kernel kernels[] = {product(a, b, c), product(a, b, c), attention(a, b, 64, c > b, a > c),
                                          moving(a * b * c)};
            kernels[1].kind = DL_KERNEL_CONV;
            for (size_t k = 0; k < DL_COUNT(kernels); k++) check_limits(&kernels[k], (enum dl_precision)p);
        }
    }
}
END_TEST

/* Times that scatter are not those of the model alone. */
static void open_model_number(int index)
{
    open_device_number(index);
    device.measured = NULL;
}

/* Products whose rows begin alike: one more column may cost much. */
static double alike(void)
{
    return json_object_get(json_object_get(doc.value, "figures"), "unaligned_fraction") ? 8 : 1;
}

START_TEST(products_grow_with_every_dimension)
{
    open_model_number(_i);
    static const double bases[] = {1, 100, 128, 1024, 5000};
    for (size_t i = 0; i < DL_COUNT(bases); i++)
        for (double step = 1; step <= 1024; step *= 4) {
            const double x = alike() * bases[i], more = x + alike() * step;
            ck_assert_double_ge(seconds(product(more, 3000, 2000)), seconds(product(x, 3000, 2000)));
            ck_assert_double_ge(seconds(product(3000, more, 2000)), seconds(product(3000, x, 2000)));
            ck_assert_double_ge(seconds(product(300, 200, more)), seconds(product(300, 200, x)));
            ck_assert_double_ge(seconds(product(3000, 2000, more)), seconds(product(3000, 2000, x)));
            ck_assert_double_ge(seconds(moving(1e4 * more)), seconds(moving(1e4 * x)));
            ck_assert_double_ge(seconds(attention(more, 512, 128, true, false)),
                                seconds(attention(x, 512, 128, true, false)));
            ck_assert_double_ge(seconds(attention(16, more, 128, false, true)),
                                seconds(attention(16, x, 128, false, true)));
        }
}
END_TEST

/* Two products in one call: never cheaper than one, never dearer than two calls; many as many times as dear. */
START_TEST(batches_cost_between_one_and_all_of_their_products)
{
    open_model_number(_i);
    static const double sizes[] = {64, 100, 512, 2048};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        struct dl_kernel one = product(sizes[i], 512, 256), two = one, many = one, more = one;
        two.batch = 2, many.batch = 4096, more.batch = 8192;
        ck_assert_double_ge(seconds(two), seconds(one));
        if (!keeps_near()) ck_assert_double_le(seconds(two), 2 * seconds(one)); /* else it may leave a cache */
        ck_assert_double_eq_tol(seconds(more) / seconds(many), 2, 0.1);
    }
}
END_TEST

START_TEST(twice_the_work_takes_twice_the_time)
{
    open_device_number(_i);
    const double big = 16384;
    const struct dl_kernel pairs[][2] = {
        {product(big, big, big), product(big, 2 * big, big)},
        {attention(256, 8192, 128, true, false), attention(512, 8192, 128, true, false)},
        {attention(256, 8192, 128, true, true), attention(512, 8192, 128, true, true)},
        {moving(1e10), moving(2e10)},
    };
    for (size_t i = 0; i < DL_COUNT(pairs); i++)
        ck_assert_double_eq_tol(seconds(pairs[i][1]) / seconds(pairs[i][0]), 2, 0.1);
}
END_TEST

/* ---- the models ---- */

START_TEST(roofline_is_the_longer_of_arithmetic_and_memory)
{
    open_device("max1550-tile");
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
    scores.attention_core = true;
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

START_TEST(products_of_a_group_are_launched_one_by_one)
{
    open_device("b200");
    struct dl_kernel short_ones = product(16, 1024, 1024), long_ones = product(4096, 4096, 4096);
    const double long_s = seconds(long_ones);
    short_ones.among_experts = long_ones.among_experts = true;
    short_ones.batch = long_ones.batch = 64;
    ck_assert_double_eq_tol(seconds(short_ones), 64 * figure("group_launch_s"), 1e-12);
    ck_assert_double_eq_tol(seconds(long_ones), 64 * long_s, 1e-9);
    short_ones.batch = 0.5; /* fewer experts than devices */
    ck_assert_double_eq_tol(seconds(short_ones), figure("group_launch_s"), 1e-12);
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

/* A convolution of 3 x 3 reads its input once, not nine times. */
START_TEST(convolutions_move_the_elements_that_they_are_given)
{
    open_device("a100-80");
    struct dl_kernel k = product(1e6, 64, 9 * 16);
    k.kind = DL_KERNEL_CONV;
    const double as_product_s = seconds(k);
    k.elements = 1e6 * (16 + 64) + 64 * 9 * 16;
    ck_assert_double_eq(dl_kernel_bytes(&k, DL_BF16), 2 * k.elements);
    ck_assert_double_lt(seconds(k), as_product_s);
}
END_TEST

/* ---- published times ---- */

static struct dl_kernel published_kernel(const json_t *row)
{
    const char *const name = json_string_value(json_object_get(row, "kernel"));
    const double batch = json_number_value(json_object_get(row, "batch"));
    const double m = json_number_value(json_object_get(row, "m")), n = json_number_value(json_object_get(row, "n"));
    const double k = json_number_value(json_object_get(row, "k"));
    if (strncmp(name, "attention", strlen("attention")) == 0)
        return attention(batch, m, k, true, strcmp(name, "attention_backward") == 0);
    const bool is_group = strcmp(name, "grouped_gemm") == 0;
    if (strcmp(name, "gemm") && !is_group) return moving(json_number_value(json_object_get(row, "elements")));
    struct dl_kernel gemm = product(m, n, k);
    gemm.batch = batch;
    gemm.among_experts = is_group;
    gemm.accumulates = json_is_true(json_object_get(row, "accumulates"));
    return gemm;
}

struct errors {
    double sum;
    size_t n;
};

static void add_group(const json_t *group, struct errors *errors)
{
    size_t i;
    json_t *item;
    const double host_s = json_number_value(json_object_get(group, "host_s"));
    open_device(json_string_value(json_object_get(group, "device")));
    json_array_foreach(json_object_get(group, "set"), i, item) change_device(json_string_value(item));
    json_array_foreach(json_object_get(group, "rows"), i, item)
    {
        const double measured_s = json_number_value(json_object_get(item, "time_s"));
        errors->sum += fabs((host_s + seconds(published_kernel(item))) / measured_s - 1);
        errors->n++;
    }
}

static const struct {
    const char *family;
    double mean_error;
} families[] = {{"a100-products", 0.07},  {"a100-attention", 0.1}, {"a100-gelu", 0.12},        {"a100-layernorm", 0.12},
                {"a100-softmax", 0.12},   {"b200-products", 0.12}, {"b200-accumulated", 0.12}, {"b200-groups", 0.12},
                {"b200-attention", 0.12}, {"mi210-products", 0.1}};

START_TEST(published_kernels_are_met_on_average)
{
    load("validation/published", "kernels");
    json_t *const published = json_incref(doc.value), *group;
    struct errors errors = {0};
    size_t i;
    json_array_foreach(json_object_get(published, "groups"), i, group)
    {
        if (strcmp(json_string_value(json_object_get(group, "family")), families[_i].family) == 0)
            add_group(group, &errors);
    }
    json_decref(published);
    ck_assert_uint_gt(errors.n, 0);
    const double mean = errors.sum / (double)errors.n;
    ck_assert_msg(mean <= families[_i].mean_error, "%s: mean error %.1f %%", families[_i].family, 100 * mean);
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

/* By hand: one wave of tiles of 320 x 128 keeps all units busy for as long as one of them takes. */
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
    ck_assert_double_le(seconds(wave), 1.05 * (figure("ramp_s") + tiling_s)); /* memory beside it */
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

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, no_kernel_beats_peak_memory_or_launch, 0, n_devices);
    tcase_add_loop_test(tests, products_grow_with_every_dimension, 0, n_devices);
    tcase_add_loop_test(tests, twice_the_work_takes_twice_the_time, 0, n_devices);
    tcase_add_loop_test(tests, batches_cost_between_one_and_all_of_their_products, 0, n_devices);
    tcase_add_test(tests, systolic_arrays_are_filled_by_squares);
    tcase_add_test(tests, a_wafer_waits_for_its_weights_unless_the_batch_is_large);
    tcase_add_test(tests, element_wise_work_is_free_in_a_pipeline);
    tcase_add_test(tests, a_processor_loses_small_products_to_packing_and_large_data_to_memory);
    tcase_add_test(tests, what_is_left_beside_tiles_is_done_in_halves);
    tcase_add_test(tests, small_products_are_not_packed_where_the_library_can);
    tcase_add_test(tests, roofline_is_the_longer_of_arithmetic_and_memory);
    tcase_add_loop_test(tests, large_products_reach_the_sustained_fraction, 0, n_devices);
    tcase_add_test(tests, a_last_wave_that_is_not_full_costs);
    tcase_add_test(tests, a_wave_of_large_tiles_takes_as_long_as_one);
    tcase_add_test(tests, rows_that_cannot_be_read_at_once_cost_more);
    tcase_add_test(tests, heads_are_filled_up_and_short_blocks_cost);
    tcase_add_test(tests, a_small_result_with_long_k_is_split);
    tcase_add_test(tests, short_k_reaches_less_of_the_peak);
    tcase_add_test(tests, small_kernels_reach_less_bandwidth);
    tcase_add_test(tests, causal_attention_costs_half_and_backward_more_than_twice);
    tcase_add_test(tests, products_of_a_group_are_launched_one_by_one);
    tcase_add_loop_test(tests, sums_in_fp32_are_read_and_written, 0, n_devices);
    tcase_add_test(tests, convolutions_move_the_elements_that_they_are_given);
    tcase_add_loop_test(tests, published_kernels_are_met_on_average, 0, (int)DL_COUNT(families));
}

int main(void) { return run_devices("device", add); }
