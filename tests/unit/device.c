/* device.c - prices of kernels: limits, growth, what tiles and waves do, the shipped device files, published times. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/cost/device.h"

static struct dl_arena *arena;
static struct dl_error err;
static struct dl_json doc;
static struct dl_device device;

static void set_up(void)
{
    arena = dl_arena_new();
    err = (struct dl_error){0};
    doc = (struct dl_json){0};
}

static void close_document(void)
{
    json_decref(doc.value);
    doc.value = NULL;
}

static void tear_down(void)
{
    close_document();
    dl_arena_free(arena);
}

static void check_ok(void) { ck_assert_msg(err.status == DL_OK, "%s", err.text); }

static void load(const char *folder, const char *name)
{
    close_document();
    const char *path;
    (void)(dl_find_file(folder, "file", name, arena, &path, &err) || dl_json_load(path, arena, &doc, &err));
    check_ok();
}

static const struct dl_device *open_device(const char *name)
{
    load("topologies/devices", name);
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    return &device;
}

/* The device of the file with "path=JSON" applied to it. */
static const struct dl_device *change_device(const char *assignment)
{
    dl_json_set(doc, assignment, arena, &err);
    check_ok();
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    return &device;
}

static const char **device_names;
static int n_devices;

static const struct dl_device *open_device_number(int index) { return open_device(device_names[index]); }

static double figure(const char *key)
{
    const json_t *const value = json_object_get(json_object_get(doc.value, "figures"), key);
    ck_assert_msg(json_is_number(value), "%s has no %s", device.name, key);
    return json_number_value(value);
}

static bool is_gpu(void) { return strcmp(device.model->name, "gpu") == 0; }

/* The one that training would use. */
static enum dl_precision fast_precision(void)
{
    static const enum dl_precision order[] = {DL_BF16, DL_FP16, DL_FP32};
    for (size_t i = 0; i < DL_COUNT(order); i++)
        if (dl_device_supports(&device, order[i])) return order[i];
    ck_abort_msg("%s has none of bf16, fp16, fp32", device.name);
}

static struct dl_kernel product(double m, double n, double k)
{
    return (struct dl_kernel){.kind = DL_KERNEL_GEMM, .batch = 1, .m = m, .n = n, .k = k};
}

static struct dl_kernel attention(double heads, double tokens, double head_size, bool causal, bool backward)
{
    return (struct dl_kernel){.kind = DL_KERNEL_ATTENTION,
                              .batch = heads,
                              .m = tokens,
                              .n = tokens,
                              .k = head_size,
                              .causal = causal,
                              .backward = backward};
}

static struct dl_kernel moving(double elements)
{
    return (struct dl_kernel){.kind = DL_KERNEL_MEMORY, .elements = elements};
}

static double seconds(struct dl_kernel k) { return dl_price(&device, &k, fast_precision()).seconds; }

/* ---- the files ---- */

static void must_be_stated(void *user, const struct dl_fact *fact)
{
    (void)user;
    ck_assert_msg(fact->stated, "%s has no grade", fact->where);
}

START_TEST(every_figure_of_a_shipped_device_has_a_grade)
{
    open_device_number(_i);
    ck_assert_str_eq(device.name, device_names[_i]);
    dl_json_facts(doc, arena, must_be_stated, NULL);
}
END_TEST

START_TEST(every_device_that_a_system_names_is_shipped)
{
    const char **systems;
    const size_t n = dl_list_folder("topologies/systems", arena, &systems);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        load("topologies/systems", systems[i]);
        const json_t *const name = json_object_get(json_object_get(doc.value, "node"), "device");
        ck_assert_msg(json_is_string(name), "%s names no device", systems[i]);
        open_device(dl_arena_string(arena, json_string_value(name)));
    }
}
END_TEST

#define ROOFLINE(peaks, figures)                                                                                       \
    "{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"roofline\", \"peak_flop_per_s\": " peaks      \
    ", \"memory_bytes\": 1e9, \"memory_bytes_per_s\": 1e10, \"launch_s\": 1e-6, \"figures\": " figures "}"

static const struct {
    const char *text, *message;
} bad[] = {
    {ROOFLINE("{}", "{\"compute_fraction\": 1, \"bandwidth_fraction\": 1}"),
     "d.json:/peak_flop_per_s: needs the peak of at least one precision"},
    {ROOFLINE("{\"fp33\": 1e12}", "{\"compute_fraction\": 1, \"bandwidth_fraction\": 1}"),
     "d.json:/peak_flop_per_s/fp33: unknown key, did you mean 'fp32'?"},
    {ROOFLINE("{\"fp32\": 1e12}", "{\"compute_fraction\": 1}"), "d.json:/figures: needs the key 'bandwidth_fraction'"},
    {ROOFLINE("{\"fp32\": 1e12}", "{\"compute_fraction\": 1.5, \"bandwidth_fraction\": 1}"),
     "d.json:/figures/compute_fraction: must be in [0.001, 1], got 1.5"},
    {"{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"abacus\"}",
     "d.json:/model: must be one of gpu, roofline, got 'abacus'"},
};

START_TEST(bad_files_are_refused_by_place)
{
    dl_json_parse(bad[_i].text, strlen(bad[_i].text), "d.json", arena, &doc, &err);
    check_ok();
    ck_assert_int_ne(dl_device_read(doc, arena, &device, &err), DL_OK);
    ck_assert_str_eq(err.text, bad[_i].message);
}
END_TEST

START_TEST(precisions_have_the_names_and_bytes_of_their_formats)
{
    static const struct {
        const char *name;
        double activation_bytes, operand_bytes;
    } wanted[DL_N_PRECISIONS] = {{"fp32", 4, 4}, {"tf32", 4, 4}, {"fp16", 2, 2}, {"bf16", 2, 2}, {"fp8", 2, 1}};
    for (int p = 0; p < DL_N_PRECISIONS; p++) {
        ck_assert_str_eq(dl_precision_name((enum dl_precision)p), wanted[p].name);
        ck_assert_double_eq(dl_precision_bytes((enum dl_precision)p), wanted[p].activation_bytes);
        ck_assert_double_eq(dl_precision_operand_bytes((enum dl_precision)p), wanted[p].operand_bytes);
    }
    open_device("v100-32");
    ck_assert(dl_device_supports(&device, DL_FP16) && !dl_device_supports(&device, DL_BF16));
}
END_TEST

/* ---- what holds for every device ---- */

static void check_limits(const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_price price = dl_price(&device, k, precision);
    ck_assert(isfinite(price.seconds));
    ck_assert_double_eq(price.flop, dl_kernel_flop(k));
    ck_assert_double_ge(price.seconds, device.launch_s);
    ck_assert_double_ge(price.seconds, price.flop / device.peak_flop_per_s[precision]);
    ck_assert_double_ge(price.seconds, dl_kernel_bytes(k, precision) / device.memory_bytes_per_s);
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

START_TEST(products_grow_with_every_dimension)
{
    open_device_number(_i);
    static const double bases[] = {1, 100, 128, 1024, 5000};
    for (size_t i = 0; i < DL_COUNT(bases); i++)
        for (double step = 1; step <= 1024; step *= 4) {
            const double x = bases[i], more = x + step;
            ck_assert_double_ge(seconds(product(more, 3000, 2000)), seconds(product(x, 3000, 2000)));
            ck_assert_double_ge(seconds(product(3000, more, 2000)), seconds(product(3000, x, 2000)));
            ck_assert_double_ge(seconds(product(300, 200, more)), seconds(product(300, 200, x)));
            ck_assert_double_ge(seconds(product(3000, 2000, more)), seconds(product(3000, 2000, x)));
        }
}
END_TEST

START_TEST(twice_the_work_takes_twice_the_time)
{
    open_device_number(_i);
    const double big = 16384;
    const struct dl_kernel pairs[][2] = {
        {product(big, big, big), product(2 * big, big, big)},
        {attention(256, 8192, 128, true, false), attention(512, 8192, 128, true, false)},
        {attention(256, 8192, 128, true, true), attention(512, 8192, 128, true, true)},
        {moving(1e10), moving(2e10)},
    };
    for (size_t i = 0; i < DL_COUNT(pairs); i++)
        ck_assert_double_eq_tol(seconds(pairs[i][1]) / seconds(pairs[i][0]), 2, 0.1);
}
END_TEST

/* ---- the two models ---- */

START_TEST(roofline_is_the_longer_of_arithmetic_and_memory)
{
    open_device("xeon-core");
    const double flop_per_s = device.peak_flop_per_s[DL_FP32] * figure("compute_fraction");
    const double bytes_per_s = device.memory_bytes_per_s * figure("bandwidth_fraction");
    ck_assert_double_eq_tol(seconds(product(1000, 1000, 1000)) * flop_per_s, 2e9, 1);
    ck_assert_double_eq_tol(seconds(product(1000, 1000, 1)) * bytes_per_s, 4 * 1002000, 1e-3);
    ck_assert_double_eq(seconds(product(1, 1, 1)), device.launch_s);
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
    if (strcmp(name, "gemm")) return moving(json_number_value(json_object_get(row, "elements")));
    struct dl_kernel gemm = product(m, n, k);
    gemm.batch = batch;
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
} families[] = {{"a100-products", 0.07}, {"a100-attention", 0.15}, {"a100-memory", 0.2}, {"b200-products", 0.15}};

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

int main(void)
{
    struct dl_arena *const names_arena = dl_arena_new();
    n_devices = (int)dl_list_folder("topologies/devices", names_arena, &device_names);
    TCase *const tests = tcase_create("device");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, every_figure_of_a_shipped_device_has_a_grade, 0, n_devices);
    tcase_add_test(tests, every_device_that_a_system_names_is_shipped);
    tcase_add_loop_test(tests, bad_files_are_refused_by_place, 0, (int)DL_COUNT(bad));
    tcase_add_test(tests, precisions_have_the_names_and_bytes_of_their_formats);
    tcase_add_loop_test(tests, no_kernel_beats_peak_memory_or_launch, 0, n_devices);
    tcase_add_loop_test(tests, products_grow_with_every_dimension, 0, n_devices);
    tcase_add_loop_test(tests, twice_the_work_takes_twice_the_time, 0, n_devices);
    tcase_add_test(tests, roofline_is_the_longer_of_arithmetic_and_memory);
    tcase_add_loop_test(tests, large_products_reach_the_sustained_fraction, 0, n_devices);
    tcase_add_test(tests, a_last_wave_that_is_not_full_costs);
    tcase_add_test(tests, a_small_result_with_long_k_is_split);
    tcase_add_test(tests, short_k_reaches_less_of_the_peak);
    tcase_add_test(tests, small_kernels_reach_less_bandwidth);
    tcase_add_test(tests, causal_attention_costs_half_and_backward_more_than_twice);
    tcase_add_test(tests, convolutions_move_the_elements_that_they_are_given);
    tcase_add_loop_test(tests, published_kernels_are_met_on_average, 0, (int)DL_COUNT(families));
    Suite *const suite = suite_create("device");
    suite_add_tcase(suite, tests);
    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    dl_arena_free(names_arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
