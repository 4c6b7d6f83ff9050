/* device_groups.c - what a GPU makes of convolutions, whose windows overlap, and of products in groups. */
#include <math.h>

#include "sim/cost/gpu.h"
#include "tests/unit/priced_device.h"

START_TEST(products_of_a_group_are_launched_one_by_one)
{
    open_device("b200");
    struct dl_kernel short_ones = product(16, 1024, 1024), long_ones = product(4096, 4096, 4096);
    const double long_s = seconds(long_ones);
    short_ones.by.batch = long_ones.by.batch = DL_BY_EXPERT;
    short_ones.batch = long_ones.batch = 64;
    ck_assert_double_eq_tol(seconds(short_ones), 64 * figure("group_launch_s"), 1e-12);
    ck_assert_double_eq_tol(seconds(long_ones), 64 * long_s, 1e-9);
    short_ones.batch = 0.5; /* fewer experts than devices */
    ck_assert_double_eq_tol(seconds(short_ones), figure("group_launch_s"), 1e-12);
}
END_TEST

/* Of 3 x 3 windows on 64 images of side x side, forward, of the input's gradient and of the weights'. */
static struct dl_kernel convolution(enum dl_kernel_pass pass, double side, double channels, double filters)
{
    const double pixels = 64 * side * side, window = 9;
    struct dl_kernel k = {
        .kind = DL_KERNEL_CONV, .pass = pass, .batch = 1, .made = {side, side}, .window = 3, .stride = 1};
    k.m = pass == DL_PASS_WEIGHT_GRADIENT ? window * channels : pixels;
    k.n = pass == DL_PASS_INPUT_GRADIENT ? window * channels : filters;
    k.k = pass == DL_PASS_FORWARD ? window * channels : pass == DL_PASS_INPUT_GRADIENT ? filters : pixels;
    return k;
}

/* Counted tensor by tensor: in whichever pass, two are read and one is written. */
START_TEST(convolutions_move_every_tensor_once)
{
    const double side = 28, channels = 64, filters = 256, window = 9;
    for (int pass = DL_PASS_FORWARD; pass <= DL_PASS_WEIGHT_GRADIENT; pass++)
        for (double stride = 1; stride <= 2; stride++) {
            struct dl_kernel k = convolution((enum dl_kernel_pass)pass, side, channels, filters);
            k.stride = stride;
            const double results = 64 * side * side * filters, weights = window * channels * filters;
            const double inputs = 64 * stride * side * stride * side * channels;
            ck_assert_double_eq_tol(dl_kernel_bytes(&k, DL_BF16), 2 * (inputs + weights + results), 1e-3);
            k.window = k.stride = 0; /* not known, and the more bytes */
            ck_assert_double_gt(dl_kernel_bytes(&k, DL_BF16), 2 * (inputs + weights + results));
        }
}
END_TEST

static double plain_s(struct dl_kernel k, enum dl_precision precision)
{
    k.made.height = 2 * k.made.width;
    return dl_price(&device, &k, precision).seconds;
}

static double grouped_s(double channels)
{
    const double groups = 6, pixels = 25088, window = 3;
    const struct dl_kernel conv = {.kind = DL_KERNEL_CONV,
                                   .batch = groups,
                                   .m = pixels,
                                   .n = channels,
                                   .k = channels * window * window,
                                   .window = window,
                                   .stride = 1};
    return seconds(conv);
}

/* Of 120 channels cuDNN copies both images, of 128 none. */
START_TEST(groups_of_powers_of_two_are_not_copied)
{
    open_device("h200");
    ck_assert_double_ge(grouped_s(120), 4 * grouped_s(128));
    ck_assert_double_ge(grouped_s(48), 4 * grouped_s(64));
}
END_TEST

/* Of 64 channels in groups, forward or of the weights' gradient. */
static struct dl_kernel few_channels(enum dl_kernel_pass pass, double channels)
{
    struct dl_kernel k = convolution(pass, 56, channels, channels);
    k.batch = 64 / channels;
    return k;
}

/* By the instructions that a profile counts on an H200 (validation/measured/grouped_convolutions.json), where nothing
 * but multiplications takes time; in TF32, where none were counted, groups share a tile. */
START_TEST(few_channels_share_an_instruction)
{
    static const struct {
        double channels, times, wide_times; /* what multiplies over what has to */
    } cases[] = {{4, 4, 16}, {8, 2, 8}, {16, 1, 4}, {32, 1, 2}};
    static const enum dl_kernel_pass passes[] = {DL_PASS_FORWARD, DL_PASS_INPUT_GRADIENT, DL_PASS_WEIGHT_GRADIENT};
    static const char *const free_of_charge[] = {
        "memory_bytes_per_s=1e18",         "launch_s=0",       "figures.cache_bytes_per_s=1e18",
        "figures.sustained_fraction=0.01", "figures.tile_s=0", "figures.ramp_s=0",
        "figures.grouped_result_s=1e-18",
    };
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(free_of_charge); i++) change_device(free_of_charge[i]);
    device.measured = NULL;
    const struct dl_kernel whole = convolution(DL_PASS_FORWARD, 56, 64, 64);
    const double bf16_s = dl_price(&device, &whole, DL_BF16).seconds / dl_kernel_flop(&whole);
    const double tf32_s = dl_price(&device, &whole, DL_TF32).seconds / dl_kernel_flop(&whole);
    for (size_t i = 0; i < DL_COUNT(cases) * DL_COUNT(passes); i++) {
        const struct dl_kernel k = few_channels(passes[i % DL_COUNT(passes)], cases[i / DL_COUNT(passes)].channels);
        const double flop = dl_kernel_flop(&k), times = cases[i / DL_COUNT(passes)].times;
        ck_assert_double_eq_tol(dl_price(&device, &k, DL_BF16).seconds / bf16_s / flop, times, 0.01 * times);
        const double wide_times = cases[i / DL_COUNT(passes)].wide_times;
        ck_assert_double_eq_tol(dl_price(&device, &k, DL_TF32).seconds / tf32_s / flop, wide_times, 0.01 * wide_times);
    }
}
END_TEST

/* Or by all others that go with these, where those take longer: the same for each result, whatever the groups. */
START_TEST(few_channels_take_their_instructions)
{
    open_device("a100-80");
    change_device("figures.grouped_result_s=1e-6");
    device.measured = NULL;
    const double results = 64.0 * 56 * 56 * 64, usual_hz = 1.98e9;
    const double clock_hz = ((const struct dl_gpu *)device.options)->clock_hz;
    const double expected_s = 1e-6 * results * usual_hz / clock_hz / figure("units");
    for (double channels = 4; channels <= 32; channels *= 2) {
        const struct dl_kernel forward = few_channels(DL_PASS_FORWARD, channels);
        const struct dl_kernel weights = few_channels(DL_PASS_WEIGHT_GRADIENT, channels);
        ck_assert_double_eq_tol(dl_price(&device, &forward, DL_BF16).seconds, expected_s, 1e-4 * expected_s);
        ck_assert_double_eq_tol(dl_price(&device, &weights, DL_FP16).seconds, expected_s, 1e-4 * expected_s);
    }
}
END_TEST

/* A timed device that has no such figure tells how far libraries are from these kernels, not from others: in all they
 * take as many clocks of all units as there. */
START_TEST(few_channels_take_as_many_clocks_as_where_they_were_timed)
{
    const double usual_hz = 1.98e9;
    struct dl_kernel k = few_channels(DL_PASS_FORWARD, 4); /* as ResNeXt-101 32x4d has it */
    k.batch = 32, k.m *= 2;
    open_device("h200");
    const double there_s = dl_price(&device, &k, DL_BF16).seconds, there_units = figure("units");
    struct dl_json timed = dl_json_shared(doc);
    open_device("a100-80");
    ck_assert(!dl_device_take_convolutions(&device, timed, arena, &err));
    const double clock_hz = ((const struct dl_gpu *)device.options)->clock_hz;
    const double expected_s = there_s * there_units * usual_hz / figure("units") / clock_hz;
    ck_assert_double_eq_tol(dl_price(&device, &k, DL_BF16).seconds, expected_s, 0.02 * expected_s);
    json_decref(timed.value);
}
END_TEST

/* Where nothing but multiplications takes time: 36 in place of 144 for 4 x 4 results, and 16 x 16 for 14 x 14. */
START_TEST(winograd_saves_multiplications)
{
    static const struct {
        double side, left; /* of the multiplications, of which tiles of 4 x 4 leave the least */
    } cases[] = {{16, 36.0 / 144}, {14, 36.0 / 144 * 256 / 196}, {6, 36.0 / 144 * 64 / 36}};
    static const char *const free_of_charge[] = {
        "memory_bytes_per_s=1e18",
        "launch_s=0",
        "figures.cache_bytes_per_s=1e18",
        "figures.sustained_fraction=0.01",
        "figures.tile_s=0",
        "figures.matrix_fraction=1",
        "figures.ramp_s=0",
        "figures.units=1",
    };
    open_device("p100");
    for (size_t i = 0; i < DL_COUNT(free_of_charge); i++) change_device(free_of_charge[i]);
    for (int pass = DL_PASS_FORWARD; pass <= DL_PASS_WEIGHT_GRADIENT; pass++)
        for (size_t i = 0; i < DL_COUNT(cases); i++) {
            const struct dl_kernel k = convolution((enum dl_kernel_pass)pass, cases[i].side, 256, 512);
            ck_assert_double_eq_tol(dl_price(&device, &k, DL_FP32).seconds / plain_s(k, DL_FP32), cases[i].left, 1e-3);
        }
}
END_TEST

/* On every GPU it is a choice: never slower than the product, nor faster than a quarter of it at the peak; and of fp32
 * only. */
START_TEST(winograd_is_chosen_where_it_helps)
{
    static const double sides[] = {7, 14, 28, 56, 112}, channels[] = {3, 64, 512};
    open_device_number(_i);
    device.measured = NULL;
    for (size_t i = 0; is_gpu() && i < DL_COUNT(sides) * DL_COUNT(channels) * 3; i++) {
        const struct dl_kernel k = convolution((enum dl_kernel_pass)(i % 3), sides[i / 3 % DL_COUNT(sides)],
                                               channels[i / 3 / DL_COUNT(sides)], 256);
        const double least_s = dl_kernel_flop(&k) / 4 / device.peak_flop_per_s[DL_FP32];
        ck_assert_double_le(dl_price(&device, &k, DL_FP32).seconds, plain_s(k, DL_FP32));
        ck_assert_double_ge(dl_price(&device, &k, DL_FP32).seconds, least_s);
        if (fast_precision() != DL_FP32) ck_assert_double_eq(seconds(k), plain_s(k, fast_precision()));
    }
}
END_TEST

/* A row of a convolution in six groups of so many channels. */
#define ROW(channels, in_windows, seconds) "[6, 25088, " channels ", " in_windows ", 3, 1, " seconds "]"
#define TABLE(rows)                                                                                                    \
    "measured=[{\"kernel\": \"conv\", \"precision\": \"bf16\", \"library\": \"none\","                                 \
    " \"columns\": [\"batch\", \"m\", \"n\", \"k\", \"window\", \"stride\", \"seconds\"], \"rows\": [" rows "]}]"

/* Those that are copied are computed by other kernels, which tell nothing of groups of powers of two; where none was
 * timed these are all that is known. */
START_TEST(groups_that_are_copied_have_times_of_their_own)
{
    static const char *const tables[] = {TABLE(ROW("128", "1152", "1e-3")),
                                         TABLE(ROW("128", "1152", "1e-3") ", " ROW("120", "1080", "9e-3"))};
    double whole_s[DL_COUNT(tables)], copied_s[DL_COUNT(tables)];
    open_device("h200");
    device.measured = NULL;
    const double model_s = grouped_s(112);
    for (size_t i = 0; i < DL_COUNT(tables); i++) {
        change_device(tables[i]);
        whole_s[i] = grouped_s(64);
        copied_s[i] = grouped_s(112);
    }
    ck_assert_double_eq(whole_s[1], whole_s[0]);
    ck_assert_double_gt(copied_s[1], 1.2 * copied_s[0]);
    ck_assert_double_gt(copied_s[0], 1.1 * model_s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, products_of_a_group_are_launched_one_by_one);
    tcase_add_test(tests, convolutions_move_every_tensor_once);
    tcase_add_test(tests, groups_of_powers_of_two_are_not_copied);
    tcase_add_test(tests, few_channels_share_an_instruction);
    tcase_add_test(tests, few_channels_take_their_instructions);
    tcase_add_test(tests, few_channels_take_as_many_clocks_as_where_they_were_timed);
    tcase_add_test(tests, winograd_saves_multiplications);
    tcase_add_loop_test(tests, winograd_is_chosen_where_it_helps, 0, n_devices);
    tcase_add_test(tests, groups_that_are_copied_have_times_of_their_own);
}

int main(void) { return run_devices("device_groups", add); }
