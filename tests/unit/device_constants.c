/* device_constants.c - tiles, blocks of attention and distances between kernels are figures of device files: every
 * shipped file states them, each of them has an effect, and a file that does not state them gets the documented one. */
#include <math.h>

#include "sim/cost/measured.h"
#include "tests/unit/priced_device.h"

static const char *const of_gpus[] = {
    "tile_sides",     "tile_sides_results",     "split_most", "attention_rows", "attention_backward_rows",
    "attention_tail", "attention_backward_tail"};
static const char *const of_free_tiles[] = {"tile_rows", "tile_most_rows", "tile_longest", "unaligned_split_most"};

static void must_have(const json_t *object, const char *key)
{
    ck_assert_msg(json_object_get(object, key) != NULL, "%s does not state %s", device.name, key);
}

START_TEST(every_shipped_device_states_them)
{
    open_device_number(_i);
    const json_t *const figures = json_object_get(doc.value, "figures");
    const bool has_free_tiles = json_object_get(figures, "tile_results") != NULL;
    for (size_t i = 0; is_gpu() && i < DL_COUNT(of_gpus); i++) must_have(figures, of_gpus[i]);
    for (size_t i = 0; has_free_tiles && i < DL_COUNT(of_free_tiles); i++) must_have(figures, of_free_tiles[i]);
    size_t n_fields;
    const struct dl_field *const fields = dl_interpolation_fields(&n_fields);
    for (size_t i = 0; device.measured && i < n_fields; i++)
        must_have(json_object_get(doc.value, "interpolation"), fields[i].key);
}
END_TEST

#define PRODUCT(m_, n_, k_)                                                                                            \
    {                                                                                                                  \
        .kind = DL_KERNEL_GEMM, .batch = 1, .m = m_, .n = n_, .k = k_                                                  \
    }
#define ATTENTION(backward_)                                                                                           \
    {                                                                                                                  \
        .kind = DL_KERNEL_ATTENTION, .batch = 32, .m = 1000, .n = 1000, .k = 64, .causal = true, .backward = backward_ \
    }

static const struct {
    const char *device, *assignment;
    struct dl_kernel kernel;
} effects[] = {
    {"a100-80", "figures.tile_sides=[64]", PRODUCT(8192, 8192, 8192)},
    {"a100-80", "figures.tile_sides_results=4096", PRODUCT(8192, 8192, 8192)},
    {"a100-80", "figures.split_most=2", PRODUCT(128, 128, 65536)},
    {"a100-80", "figures.attention_rows=64", ATTENTION(false)},
    {"a100-80", "figures.attention_backward_rows=64", ATTENTION(true)},
    {"a100-80", "figures.attention_tail=0.8", ATTENTION(false)},
    {"a100-80", "figures.attention_backward_tail=0.8", ATTENTION(true)},
    {"h100", "figures.tile_rows=128", PRODUCT(1024, 1024, 4096)},
    {"h100", "figures.tile_most_rows=64", PRODUCT(1024, 2048, 512)},
    {"h100", "figures.tile_longest=64", PRODUCT(1024, 2048, 512)},
    {"h100", "figures.unaligned_split_most=2", PRODUCT(128, 129, 65536)},
    {"h200", "interpolation.reach=1", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.least_noise=0.5", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.spread_left=1", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.other_pass_distance=0", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.other_kind_distance=0", ATTENTION(false)},
    {"h200", "interpolation.other_alignment_distance=0", PRODUCT(3000, 3001, 3000)},
    {"h200", "interpolation.grain_distance=0", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.grain_bytes=2", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.other_pass_weight=1", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.other_alignment_weight=1", PRODUCT(3000, 3000, 3000)},
    {"h200", "interpolation.neighbours=1", PRODUCT(3000, 3000, 3000)},
};

START_TEST(each_of_them_has_an_effect)
{
    open_device(effects[_i].device);
    const double before_s = seconds(effects[_i].kernel);
    change_device(effects[_i].assignment);
    const double after_s = seconds(effects[_i].kernel);
    ck_assert_msg(fabs(after_s / before_s - 1) > 1e-6, "%s: %g s as before", effects[_i].assignment, before_s);
}
END_TEST

START_TEST(how_near_a_point_must_be_to_count_is_a_constant)
{
    const struct dl_kernel far = PRODUCT(400000, 16384, 16384);
    open_device("h200");
    ck_assert_int_eq(dl_price(&device, &far, DL_BF16).ground, DL_GROUND_MODELLED);
    change_device("interpolation.known_within_factor=1000");
    ck_assert_int_eq(dl_price(&device, &far, DL_BF16).ground, DL_GROUND_INTERPOLATED);
}
END_TEST

/* By hand, in units of one tile: waves of `units` tiles, each as long as its arithmetic. */
START_TEST(a_product_of_one_tile_shape_takes_its_waves)
{
    const double m = 4096, n = 4096, k = 4096, side = 64;
    open_device("a100-80");
    change_device("figures.tile_sides=[64]");
    change_device("figures.split_most=1");
    const double unit_flop_per_s = device.peak_flop_per_s[DL_BF16] * figure("matrix_fraction") / figure("units");
    const double operands_s = 2 * side * 2 / (figure("cache_bytes_per_s") / figure("units"));
    const double step_s = fmax(2 * side * side / unit_flop_per_s, operands_s);
    const double waves = ceil(m / side * n / side / figure("units"));
    ck_assert_double_eq_tol(seconds(product(m, n, k)), figure("ramp_s") + waves * (figure("tile_s") + k * step_s),
                            1e-12);
}
END_TEST

/* A block goes through all that its rows see: a window, and as much more as the block is long, in either direction. */
START_TEST(attention_in_windows_goes_beyond_their_edges)
{
    const double seq = 8192, window = 256, rows = 128, seen = window + rows - 1;
    open_device("a100-80");
    for (int backward = 0; backward < 2; backward++) {
        const struct dl_kernel in_windows = {.kind = DL_KERNEL_ATTENTION,
                                             .batch = 32,
                                             .m = seq,
                                             .n = window,
                                             .k = 128,
                                             .window = window,
                                             .backward = backward};
        struct dl_kernel all = in_windows;
        all.window = 0, all.m = backward ? seen : seq, all.n = backward ? seq : seen;
        ck_assert_double_eq_tol(seconds(in_windows), seconds(all), 1e-12);
    }
}
END_TEST

static double sum_of_prices(void)
{
    static const struct dl_kernel kernels[] = {PRODUCT(8192, 8192, 8192), PRODUCT(128, 129, 65536), ATTENTION(false),
                                               ATTENTION(true), PRODUCT(3000, 3000, 3000)};
    double sum = 0;
    for (size_t i = 0; i < DL_COUNT(kernels); i++) sum += seconds(kernels[i]);
    return sum;
}

static void remove_key(const char *object, const char *key)
{
    json_t *const from = json_object_get(doc.value, object);
    json_object_del(from, key);
    json_object_del(json_object_get(from, "facts"), key);
}

/* The A100 and the H200 state the defaults, but for the tails of the H200. */
START_TEST(a_file_that_does_not_state_them_gets_the_defaults)
{
    open_device("a100-80");
    const double stated_s = sum_of_prices();
    for (size_t i = 0; i < DL_COUNT(of_gpus); i++) remove_key("figures", of_gpus[i]);
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    ck_assert_double_eq(sum_of_prices(), stated_s);

    open_device("h200");
    const double of_h200_s = sum_of_prices();
    for (size_t i = 0; i < DL_COUNT(of_free_tiles); i++) remove_key("figures", of_free_tiles[i]);
    json_object_del(doc.value, "interpolation");
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    ck_assert_double_eq(sum_of_prices(), of_h200_s);
}
END_TEST

static const struct {
    const char *device, *assignment, *message;
} refusals[] = {
    {"a100-80", "figures.tile_sides=[]",
     "a100-80.json:/figures: tile_sides must have one whose square is at most tile_sides_results"},
    {"a100-80", "figures.tile_sides_results=4000",
     "a100-80.json:/figures: tile_sides must have one whose square is at most tile_sides_results"},
    {"h100", "figures.tile_results=4000",
     "h100.json:/figures: tile_rows must be at most tile_most_rows and tile_longest, and its square at most "
     "tile_results"},
    {"a100-80", "interpolation={}", "a100-80.json:/interpolation: is of use only beside 'measured'"},
    {"h200", "interpolation.neighbours=65", "h200.json:/interpolation/neighbours: must be in [1, 64], got 65"},
};

START_TEST(what_leaves_no_tile_or_means_nothing_is_refused)
{
    open_device(refusals[_i].device);
    dl_json_set(doc, refusals[_i].assignment, arena, &err);
    check_ok();
    ck_assert_int_ne(dl_device_read(doc, arena, &device, &err), DL_OK);
    const char *const message = strstr(err.text, refusals[_i].device);
    ck_assert_str_eq(message ? message : err.text, refusals[_i].message);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, every_shipped_device_states_them, 0, n_devices);
    tcase_add_loop_test(tests, each_of_them_has_an_effect, 0, (int)DL_COUNT(effects));
    tcase_add_test(tests, how_near_a_point_must_be_to_count_is_a_constant);
    tcase_add_test(tests, a_product_of_one_tile_shape_takes_its_waves);
    tcase_add_test(tests, attention_in_windows_goes_beyond_their_edges);
    tcase_add_test(tests, a_file_that_does_not_state_them_gets_the_defaults);
    tcase_add_loop_test(tests, what_leaves_no_tile_or_means_nothing_is_refused, 0, (int)DL_COUNT(refusals));
}

int main(void) { return run_devices("device_constants", add); }
