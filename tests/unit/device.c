/* device.c - prices of kernels: limits and growth, on every device; published times. */
#include <math.h>

#include "sim/cost/gpu.h"
#include "tests/timed_rows.h"
#include "tests/unit/priced_device.h"

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

/* Of few channels, with windows that overlap or do not. */
START_TEST(every_convolution_takes_its_time)
{
    static const double counts[] = {1, 2, 3, 4, 6, 8, 64}, windows[] = {1, 2, 3, 4};
    const double pixels = 1000;
    open_device_number(_i);
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        for (size_t i = 0; dl_device_supports(&device, (enum dl_precision)p) && i < DL_COUNT(counts) * DL_COUNT(counts);
             i++)
            for (size_t w = 0; w < DL_COUNT(windows) * DL_COUNT(windows); w++) {
                const double channels = counts[i % DL_COUNT(counts)], filters = counts[i / DL_COUNT(counts)];
                const double window = windows[w % DL_COUNT(windows)], stride = windows[w / DL_COUNT(windows)];
                const double given = channels * window * window;
                struct dl_kernel passes[] = {product(pixels, filters, given), product(pixels, given, filters),
                                             product(given, filters, pixels)};
                for (size_t k = 0; k < DL_COUNT(passes); k++) {
                    passes[k].kind = DL_KERNEL_CONV;
                    passes[k].pass = (enum dl_kernel_pass)k;
                    passes[k].window = window, passes[k].stride = stride;
                    const double seconds = dl_price(&device, &passes[k], (enum dl_precision)p).seconds;
                    ck_assert_msg(seconds > 0 && isfinite(seconds), "%g to %g channels, %g x %g by %g: %g s", channels,
                                  filters, window, window, stride, seconds);
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

/* ---- published times ---- */

struct errors {
    double sum;
    size_t n;
};

static void add_table(const json_t *table, double host_s, struct errors *errors)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        const struct dl_kernel k = timed_kernel(table, row);
        const double predicted_s = host_s + dl_price(&device, &k, timed_precision(table)).seconds;
        errors->sum += fabs(predicted_s / timed_cell(table, row, "seconds", 0) - 1);
        errors->n++;
    }
}

static void add_group(const json_t *group, struct errors *errors)
{
    size_t i;
    json_t *item;
    const double host_s = json_number_value(json_object_get(group, "host_s"));
    open_device(json_string_value(json_object_get(group, "device")));
    json_array_foreach(json_object_get(group, "set"), i, item) change_device(json_string_value(item));
    json_array_foreach(json_object_get(group, "tables"), i, item) add_table(item, host_s, errors);
}

static const struct {
    const char *family;
    double mean_error;
} families[] = {{"a100-products", 0.07},
                {"a100-40-products", 0.06},
                {"a100-attention", 0.1},
                {"a100-gelu", 0.12},
                {"a100-layernorm", 0.12},
                {"a100-softmax", 0.12},
                {"b200-products", 0.1},
                {"b200-groups", 0.1},
                {"b200-attention", 0.12},
                {"mi210-products", 0.1},
                {"mi250x-products", 0.1},
                {"mi300-products", 0.04},
                {"mi300x-library-products", 0.11},
                {"max1550-products", 0.09},
                {"v100-fp32-products", 0.06},
                {"v100-fp16-products", 0.05},
                {"a100-pcie-fp32-products", 0.05},
                {"l4-fp32-products", 0.15},
                {"mi100-fp32-products", 0.06},
                {"mi210-fp32-products", 0.17},
                {"tpu-products", 0.03},
                {"tpu-attention", 0.1},
                {"rtx-3090-products", 0.01}};

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

/* As many instructions on twice the units, or at twice the clock, take half as long; what memory takes longer hides
 * them. How far measured kernels are from the model does not count: no table has pools of volumes. */
START_TEST(units_share_the_instructions_of_a_kernel)
{
    open_device_number(_i);
    if (!is_gpu()) return;
    const enum dl_precision precision = fast_precision();
    struct dl_kernel k = moving(1e6);
    k.operation = "volume_pool";
    const double moved_s = dl_price(&device, &k, precision).seconds, usual_hz = 1.98e9;
    const double clock_hz = ((const struct dl_gpu *)device.options)->clock_hz;
    k.unit_s = 1e-9;
    ck_assert_double_eq(dl_price(&device, &k, precision).seconds, moved_s);
    k.unit_s = 1;
    const double once_s = dl_price(&device, &k, precision).seconds;
    k.unit_s = 2;
    ck_assert_double_eq_tol(dl_price(&device, &k, precision).seconds - once_s, usual_hz / clock_hz / figure("units"),
                            1e-9);
}
END_TEST

/* Two images with channels first in fp32 on an H200 (PyTorch 2.11): us forward, of the input's and the weights'
 * gradient.
 */
START_TEST(depthwise_convolutions_take_what_was_timed)
{
    static const struct {
        double channels, height, width, stride, us[3];
    } timed[] = {{64, 384, 576, 1, {270, 499, 1040}}, {128, 384, 576, 1, {536, 997, 1127}},
                 {128, 384, 576, 2, {150, 896, 300}}, {256, 192, 288, 1, {272, 499, 469}},
                 {256, 192, 288, 2, {79, 454, 119}},  {728, 96, 144, 1, {196, 349, 277}},
                 {728, 96, 144, 2, {57, 317, 76}},    {728, 48, 72, 1, {49, 84, 75}},
                 {1024, 48, 72, 1, {72, 126, 101}},   {1536, 48, 72, 1, {105, 188, 147}}};
    const double window = 3, taps = window * window;
    double sum = 0;
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(timed); i++) {
        const double pixels = 2 * timed[i].height * timed[i].width / timed[i].stride / timed[i].stride;
        struct dl_kernel passes[] = {product(pixels, 1, taps), product(pixels, taps, 1), product(taps, 1, pixels)};
        for (size_t k = 0; k < DL_COUNT(passes); k++) {
            passes[k].kind = DL_KERNEL_CONV;
            passes[k].pass = (enum dl_kernel_pass)k;
            passes[k].window = window, passes[k].stride = timed[i].stride, passes[k].batch = timed[i].channels;
            sum += fabs(dl_price(&device, &passes[k], DL_FP32).seconds / (timed[i].us[k] * 1e-6) - 1);
        }
    }
    ck_assert_double_le(sum / (3 * DL_COUNT(timed)), 0.15);
}
END_TEST

/* Of whatever model a device is, the arithmetic inside of scans is no gift: many products take longer than what is
 * moved, and no less than at the peak. */
START_TEST(products_inside_of_scans_take_time)
{
    static const char *const names[] = {"h200", "tpu-v5p", "wse-1", "sn40l", "a64fx"};
    struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "chunk_scan", .elements = 1e8, .products_per_element = 1};
    const struct dl_device *const d = open_device(names[_i]);
    const enum dl_precision precision = dl_device_supports(d, DL_BF16) ? DL_BF16 : DL_FP32;
    const double few_s = dl_price(d, &k, precision).seconds;
    k.products_per_element = 1e6;
    const double many_s = dl_price(d, &k, precision).seconds, least_s = dl_inner_products_s(d, &k, precision);
    ck_assert_msg(many_s > 10 * few_s && many_s >= least_s, "%s: %g s, then %g s", names[_i], few_s, many_s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, no_kernel_beats_peak_memory_or_launch, 0, n_devices);
    tcase_add_loop_test(tests, every_convolution_takes_its_time, 0, n_devices);
    tcase_add_loop_test(tests, products_grow_with_every_dimension, 0, n_devices);
    tcase_add_loop_test(tests, twice_the_work_takes_twice_the_time, 0, n_devices);
    tcase_add_loop_test(tests, batches_cost_between_one_and_all_of_their_products, 0, n_devices);
    tcase_add_loop_test(tests, units_share_the_instructions_of_a_kernel, 0, n_devices);
    tcase_add_loop_test(tests, products_inside_of_scans_take_time, 0, 5);
    tcase_add_test(tests, depthwise_convolutions_take_what_was_timed);
    tcase_add_loop_test(tests, published_kernels_are_met_on_average, 0, (int)DL_COUNT(families));
}

int main(void) { return run_devices("device", add); }
