/* measured_device.c - tables of measured times: what was timed is told, the rest follows the model where it must. */
#include <math.h>

#include "sim/cost/measured.h"

#include "tests/unit/priced_device.h"

#define DEVICE(tables)                                                                                                 \
    "{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"roofline\","                                  \
    " \"peak_flop_per_s\": {\"fp32\": 1e12, \"fp16\": 1e14, \"bf16\": 1e14}, \"memory_bytes\": 1e9,"                   \
    " \"memory_bytes_per_s\": 1e12, \"launch_s\": 1e-6, \"figures\": {\"compute_fraction\": 1,"                        \
    " \"bandwidth_fraction\": 1}, \"measured\": [" tables "]}"
#define TABLE(kernel, columns, rows)                                                                                   \
    "{\"kernel\": \"" kernel "\", \"precision\": \"bf16\", \"library\": \"none\", \"columns\": " columns               \
    ", \"rows\": " rows "}"
#define SHAPE "[\"m\", \"n\", \"k\", \"seconds\"]"

static void read_text(const char *text)
{
    close_document();
    err = (struct dl_error){0};
    dl_json_parse(text, strlen(text), "d.json", arena, &doc, &err);
    check_ok();
    dl_device_read(doc, arena, &device, &err);
}

static struct dl_price price_of(struct dl_kernel k) { return dl_price(&device, &k, DL_BF16); }

static double model_s(struct dl_kernel k) { return device.model->price(&device, &k, DL_BF16).seconds; }

START_TEST(what_was_timed_costs_what_was_measured)
{
    read_text(DEVICE(TABLE("gemm", SHAPE, "[[1024, 2048, 512, 1e-3], [1024, 2048, 1024, 3e-3]]") "," TABLE(
        "softmax", "[\"elements\", \"seconds\", \"spread\"]", "[[1e6, 1e-5, 0.1], [1e8, 1e-3, 0]]")));
    check_ok();
    ck_assert_str_eq(dl_device_libraries(&device), "none"); /* each once */
    ck_assert_double_eq(price_of(product(1024, 2048, 512)).seconds, 1e-3);
    ck_assert_int_eq(price_of(product(1024, 2048, 512)).ground, DL_GROUND_MEASURED);
    struct dl_kernel k = product(1024, 2048, 512);
    ck_assert_double_eq(dl_price(&device, &k, DL_FP16).seconds, 1e-3); /* as fast as bf16 */
    ck_assert_int_eq(dl_price(&device, &k, DL_FP32).ground, DL_GROUND_MODELLED);
    k.batch = 2, k.m /= 2;
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_INTERPOLATED);
    k = moving(1e6);
    k.name = "softmax";
    ck_assert_double_eq_tol(price_of(k).seconds, 1e-5, 1e-12);
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_MEASURED);
    ck_assert_double_eq(
        dl_price(&device, &(struct dl_kernel){.kind = DL_KERNEL_MEMORY, .name = "softmax", .elements = 5e5}, DL_FP32)
            .seconds,
        price_of(k).seconds); /* as many bytes */
    k.name = "rotary";        /* not timed: as wrong as what was */
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_MODELLED);
    ck_assert_double_eq_tol(price_of(k).seconds, 1e-5, 1e-12);
}
END_TEST

static struct dl_kernel of_resnet(void)
{
    return (struct dl_kernel){
        .kind = DL_KERNEL_CONV, .batch = 1, .m = 100352, .n = 64, .k = 576, .window = 3, .stride = 1};
}

/* Another device's convolutions are as far from the model as there; its products are its own. */
START_TEST(convolutions_may_be_as_those_of_another_device)
{
    const struct dl_kernel conv = of_resnet(), gemm = product(4096, 4096, 4096);
    open_device("h200");
    const double ratio = price_of(conv).seconds / device.model->price(&device, &conv, DL_BF16).seconds;
    struct dl_json timed = dl_json_shared(doc);
    open_device("a100-80");
    ck_assert_str_eq(device.convolutions_as, "h200");
    const double alone_s = price_of(conv).seconds, gemm_s = price_of(gemm).seconds;
    ck_assert(!dl_device_take_convolutions(&device, timed, arena, &err));
    ck_assert_double_eq_tol(price_of(conv).seconds, alone_s * ratio, 1e-12);
    ck_assert_double_gt(fabs(ratio - 1), 0.01);
    ck_assert_double_eq(price_of(gemm).seconds, gemm_s);
    ck_assert_int_eq(price_of(conv).ground, DL_GROUND_MODELLED);
    const double on_vectors_s = device.model->price(&device, &conv, DL_FP32).seconds;
    ck_assert_double_eq(dl_price(&device, &conv, DL_FP32).seconds, on_vectors_s);
    device.peak_flop_per_s[DL_FP32] = device.convolutions->peak_flop_per_s[DL_FP32];
    ck_assert_double_gt(dl_price(&device, &conv, DL_FP32).seconds,
                        1.05 * device.model->price(&device, &conv, DL_FP32).seconds);
    json_decref(timed.value);
}
END_TEST

/* Of the tables only those that are used are read, each at its place, and only they are left to be told by. */
START_TEST(the_chip_of_another_device_has_attention_but_no_products)
{
    static const char *const timed_texts[] = {
        DEVICE(TABLE("gemm", SHAPE, "0") "," TABLE("attention", SHAPE, "[[2048, 2048, 64, 1e-3]]")),
        DEVICE(TABLE("gemm", SHAPE, "[[1, 1, 1, 0]]") "," TABLE("attention", SHAPE, "[[2048, 2048, 64, 0]]"))};
    static const char *const messages[] = {"", "d.json:/measured/1/rows/0/3: seconds must be in [1e-09, 1e+06]"};
    struct dl_kernel attention = product(2048, 2048, 64);
    attention.kind = DL_KERNEL_ATTENTION;
    for (size_t i = 0; i < DL_COUNT(timed_texts); i++) {
        struct dl_json timed;
        read_text(DEVICE(""));
        check_ok();
        dl_json_parse(timed_texts[i], strlen(timed_texts[i]), "d.json", arena, &timed, &err);
        dl_device_take_chip(&device, timed, arena, &err);
        ck_assert_str_eq(err.text, messages[i]);
        if (!err.status) ck_assert_double_eq(price_of(attention).seconds, 1e-3);
        if (!err.status) ck_assert_uint_eq(json_array_size(json_object_get(timed.value, "measured")), 1);
        json_decref(timed.value);
    }
}
END_TEST

START_TEST(a_shape_that_was_timed_twice_costs_the_mean)
{
    read_text(DEVICE(TABLE("gemm", SHAPE, "[[1024, 2048, 512, 1e-3], [64, 64, 64, 1e-5], [1024, 2048, 512, 3e-3]]")));
    check_ok();
    ck_assert_double_eq_tol(price_of(product(1024, 2048, 512)).seconds, 2e-3, 1e-15);
    ck_assert_int_eq(price_of(product(1024, 2048, 512)).ground, DL_GROUND_MEASURED);
    ck_assert_double_eq(price_of(product(64, 64, 64)).seconds, 1e-5);
    ck_assert(isfinite(price_of(product(1000, 2000, 500)).seconds)); /* whatever two points in one place do to a fit */
}
END_TEST

START_TEST(a_model_that_is_wrong_by_a_factor_is_put_right_everywhere)
{
    read_text(DEVICE(TABLE("gemm", SHAPE, "[[1024, 1024, 1024, 1]]"))); /* for the model's own time */
    char text[2048];
    const double factor = 1.7;
    snprintf(text, sizeof text, DEVICE(TABLE("gemm", SHAPE, "[[4096, 4096, 4096, %.17g], [8192, 4096, 2048, %.17g]]")),
             factor * model_s(product(4096, 4096, 4096)), factor * model_s(product(8192, 4096, 2048)));
    read_text(text);
    check_ok();
    static const double sizes[] = {512, 3000, 4100, 100000};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const struct dl_kernel k = product(sizes[i], 4096, 4096);
        ck_assert_double_eq_tol(price_of(k).seconds / model_s(k), factor, 1e-9);
        ck_assert_int_eq(price_of(k).ground,
                         sizes[i] == 3000 || sizes[i] == 4100 ? DL_GROUND_INTERPOLATED : DL_GROUND_MODELLED);
    }
}
END_TEST

/* Times that scatter by 10 % about a model that is wrong by a factor that changes with k. */
static void read_scattered(void)
{
    static char text[1 << 16];
    char row[128];
    read_text(DEVICE(TABLE("gemm", SHAPE, "[]")));
    check_ok();
    snprintf(text, sizeof text, "%s", DEVICE(TABLE("gemm", SHAPE, "[")));
    *strstr(text, "[}") = '\0';
    size_t n = 0;
    for (double m = 256; m <= 16384; m *= 2)
        for (double k = 256; k <= 16384; k *= 2, n++) {
            const double scatter = n * 7 % 10 / 50.0 - 0.1;
            snprintf(row, sizeof row, "%s[%g, 4096, %g, %.17g]", n ? ", " : "[", m, k,
                     (1 + scatter) * (1 + 500 / k) * model_s(product(m, 4096, k)));
            strcat(text, row);
        }
    strcat(text, "]}]}");
    read_text(text);
    check_ok();
}

START_TEST(a_larger_product_is_not_much_cheaper)
{
    read_scattered();
    const double scatter = 0.2; /* between the lowest and the highest of the points */
    for (double m = 128; m <= 65536; m *= 1.3)
        for (double k = 128; k <= 65536; k *= 1.3) {
            const double seconds = price_of(product(m, 4096, k)).seconds;
            ck_assert_double_ge(price_of(product(1.3 * m, 4096, k)).seconds, (1 - scatter) * seconds);
            ck_assert_double_ge(price_of(product(m, 4096, 1.3 * k)).seconds, (1 - scatter) * seconds);
            ck_assert_double_ge(price_of(product(2 * m, 4096, 2 * k)).seconds, seconds);
            ck_assert_double_ge(seconds, 2 * m * 4096 * k / device.peak_flop_per_s[DL_BF16]);
        }
}
END_TEST

START_TEST(between_points_the_correction_is_between_theirs)
{
    read_scattered();
    for (double m = 300; m <= 16000; m *= 1.7)
        for (double k = 300; k <= 16000; k *= 1.7) {
            const double ratio = price_of(product(m, 4096, k)).seconds / model_s(product(m, 4096, k));
            ck_assert_double_ge(ratio, 0.9);
            ck_assert_double_le(ratio, 1.1 * (1 + 500.0 / 256));
            ck_assert_double_eq_tol(ratio / (1 + 500 / k), 1, 0.25);
        }
}
END_TEST

/* Two points, by the inverse of a matrix of two: with one above their mean as far as the other is below it, what they
 * say is (their covariances' difference) / (1 + noise - covariance of the two) of that. */
START_TEST(two_points_are_kriged_as_by_hand)
{
    const double reach = 8, noise = 0.01, above = log(1.2), sizes[] = {2048, 8192};
    char text[2048];
    read_text(DEVICE(TABLE("gemm", SHAPE, "[]"))); /* for the model's own time */
    snprintf(text, sizeof text, DEVICE(TABLE("gemm", SHAPE, "[[2048, 4096, 4096, %.17g], [8192, 4096, 4096, %.17g]]")),
             2 * exp(above) * model_s(product(sizes[0], 4096, 4096)),
             2 * exp(-above) * model_s(product(sizes[1], 4096, 4096)));
    read_text(text);
    check_ok();
    for (double m = 512; m <= 65536; m *= 2) {
        const struct dl_kernel k = product(m, 4096, 4096);
        if (m == sizes[0] || m == sizes[1]) continue;
        const double near = exp(-fabs(log(m / sizes[0])) / reach), far = exp(-fabs(log(m / sizes[1])) / reach);
        const double between = exp(-log(sizes[1] / sizes[0]) / reach);
        ck_assert_double_eq_tol(log(price_of(k).seconds / model_s(k)),
                                log(2) + above * (near - far) / (1 + noise - between), 1e-9);
    }
}
END_TEST

/* Rows that begin where the timed ones do are told of more than others as long. */
START_TEST(points_whose_rows_begin_alike_count_more)
{
    char text[2048];
    read_text(DEVICE(TABLE("gemm", SHAPE, "[]")));
    snprintf(text, sizeof text, DEVICE(TABLE("gemm", SHAPE, "[[4096, 4096, 4096, %.17g], [4096, 4104, 4096, %.17g]]")),
             model_s(product(4096, 4096, 4096)), 1.5 * model_s(product(4096, 4104, 4096)));
    read_text(text);
    check_ok();
    const struct dl_kernel even = product(4096, 4352, 4096), odd = product(4096, 4360, 4096);
    ck_assert_double_gt(price_of(odd).seconds / model_s(odd), 1.1 * price_of(even).seconds / model_s(even));
    ck_assert_int_eq(price_of(odd).ground, DL_GROUND_INTERPOLATED);
}
END_TEST

static struct dl_kernel convolution(double window, double stride)
{
    struct dl_kernel k = product(4096, 256, 1152);
    k.kind = DL_KERNEL_CONV, k.window = window, k.stride = stride;
    return k;
}

/* Of the same m, n and k, with one window on an element and with nine. */
START_TEST(convolutions_are_told_apart_by_their_windows)
{
    read_text(DEVICE(TABLE("conv", "[\"m\", \"n\", \"k\", \"window\", \"stride\", \"seconds\"]",
                           "[[4096, 256, 1152, 1, 1, 1e-3], [4096, 256, 1152, 3, 1, 4e-3]]")));
    check_ok();
    ck_assert_double_eq(price_of(convolution(1, 1)).seconds, 1e-3);
    ck_assert_double_eq(price_of(convolution(3, 1)).seconds, 4e-3);
    const struct dl_price strided = price_of(convolution(3, 2)), wide = price_of(convolution(5, 1));
    ck_assert_int_eq(strided.ground, DL_GROUND_INTERPOLATED);
    ck_assert(strided.seconds > 1e-3 && strided.seconds < wide.seconds);
}
END_TEST

START_TEST(tables_without_windows_hold_for_all_convolutions)
{
    read_text(DEVICE(TABLE("conv", SHAPE, "[[4096, 256, 1152, 1e-3]]")));
    check_ok();
    ck_assert_double_eq(price_of(convolution(3, 1)).seconds, 1e-3);
    ck_assert_int_eq(price_of(convolution(1, 2)).ground, DL_GROUND_MEASURED);
}
END_TEST

START_TEST(memory_bound_kernels_grow_with_their_bytes)
{
    read_text(DEVICE(TABLE("softmax", "[\"elements\", \"seconds\"]",
                           "[[1e8, 9e-4], [1e4, 3e-6], [1e5, 3.1e-6], [1e6, 6e-6], [1e7, 8e-5], [1e7, 1e-4]]")));
    check_ok();
    double before = 0;
    for (double elements = 100; elements < 1e11; elements *= 1.1) {
        struct dl_kernel k = moving(elements);
        k.name = "softmax";
        ck_assert_double_ge(price_of(k).seconds, before);
        before = price_of(k).seconds;
    }
    struct dl_kernel beyond = moving(1e10);
    beyond.name = "softmax";
    ck_assert_double_eq_tol(price_of(beyond).seconds / 9e-4, model_s(moving(1e10)) / model_s(moving(1e8)), 1e-9);
}
END_TEST

START_TEST(a_pass_has_its_own_points)
{
    read_text(DEVICE(TABLE(
        "gemm", SHAPE, "[[4096, 4096, 4096, 2e-3]]") ","
                                                     "{\"kernel\": \"gemm\", \"pass\": \"weight_gradient\", "
                                                     "\"precision\": \"bf16\", \"library\": \"none\","
                                                     " \"columns\": " SHAPE ", \"rows\": [[4096, 4096, 4096, 4e-3]]}"));
    check_ok();
    struct dl_kernel k = product(4096, 4096, 4096);
    ck_assert_double_eq(price_of(k).seconds, 2e-3);
    k.pass = DL_PASS_WEIGHT_GRADIENT;
    ck_assert_double_eq(price_of(k).seconds, 4e-3);
    k.pass = DL_PASS_INPUT_GRADIENT;
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_INTERPOLATED);
}
END_TEST

START_TEST(attention_with_dropout_has_its_own_points)
{
    read_text(DEVICE(TABLE("attention", "[\"batch\", \"m\", \"n\", \"k\", \"dropout\", \"seconds\"]",
                           "[[64, 1024, 1024, 64, 0, 1e-3], [64, 1024, 1024, 64, 1, 3e-3]]")));
    check_ok();
    struct dl_kernel k = attention(64, 1024, 64, false, false);
    k.kv_share = 1;
    ck_assert_double_eq(price_of(k).seconds, 1e-3);
    k.drops = true;
    ck_assert_double_eq(price_of(k).seconds, 3e-3);
    read_text(DEVICE(TABLE("attention", SHAPE, "[[1024, 1024, 64, 1e-3]]")));
    k.batch = 1;
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_INTERPOLATED); /* a table that does not tell is without it */
    k.drops = false;
    ck_assert_int_eq(price_of(k).ground, DL_GROUND_MEASURED);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {DEVICE(TABLE("gemm", "[\"m\", \"n\", \"seconds\"]", "[]")),
     "d.json:/measured/0/columns: needs seconds and m, n, k"},
    {DEVICE(TABLE("gelu", "[\"seconds\"]", "[]")), "d.json:/measured/0/columns: needs seconds and elements"},
    {DEVICE(TABLE("gemm", "[\"m\", \"o\"]", "[]")),
     "d.json:/measured/0/columns/1: must be one of batch, m, n, k, "
     "elements, causal, kv_share, accumulates, window, stride, dropout, seconds, spread, each once"},
    {DEVICE(TABLE("gemm", SHAPE, "[[1, 1, 1, 1], [1, 1]]")),
     "d.json:/measured/0/rows/1: must be a list of 4 numbers, as there are columns"},
    {DEVICE(TABLE("gemm", SHAPE, "[[1, 1, 1, 0]]")), "d.json:/measured/0/rows/0/3: seconds must be in [1e-09, 1e+06]"},
    {DEVICE("{\"kernel\": \"gemm\", \"precision\": \"fp8\", \"library\": \"none\", \"columns\": " SHAPE
            ", \"rows\": []}"),
     "d.json:/measured/0/rows: are in fp8, which has no peak_flop_per_s"},
    {DEVICE(TABLE("gemm", SHAPE, "[[4096, 4096, 4096, 0.002], [4096, 4096, 4096, 2e-6]]")),
     "d.json:/measured/0/rows/1: 2e-06 seconds are too few: at the peak of bf16 it takes 0.00137439"},
    {DEVICE(TABLE("layernrom", "[\"elements\", \"seconds\"]", "[[1e6, 9e-5]]")),
     "d.json:/measured/0/kernel: no kernel has the name 'layernrom', did you mean 'layernorm'?"},
};

#define SUMS(pass, seconds)                                                                                            \
    "{\"kernel\": \"residual\", \"pass\": \"" pass "\", \"precision\": \"bf16\", \"library\": \"none\","               \
    " \"columns\": [\"elements\", \"seconds\"], \"rows\": [[1e6, " seconds "]]}"

/* What residual connections do backward, which never has dropout in it, else what they do forward. */
START_TEST(sums_cost_what_residual_connections_do)
{
    static const char *const tables[] = {
        DEVICE(TABLE("softmax", "[\"elements\", \"seconds\"]", "[[1e6, 9e-5]]") "," SUMS("forward", "1e-5")),
        DEVICE(SUMS("forward", "9e-5") "," SUMS("input_gradient", "1e-5"))};
    for (size_t i = 0; i < DL_COUNT(tables); i++) {
        read_text(tables[i]);
        check_ok();
        for (int pass = DL_PASS_FORWARD; pass <= DL_PASS_INPUT_GRADIENT; pass++) {
            struct dl_kernel k = moving(1e6);
            k.name = "block1", k.operation = "add", k.pass = (enum dl_kernel_pass)pass;
            ck_assert_double_eq_tol(price_of(k).seconds, 1e-5, 1e-12);
            ck_assert_int_eq(price_of(k).ground, DL_GROUND_MEASURED);
        }
    }
}
END_TEST

START_TEST(bad_tables_are_refused_by_place)
{
    read_text(bad[_i].text);
    ck_assert_str_eq(err.text, bad[_i].message);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_was_timed_costs_what_was_measured);
    tcase_add_test(tests, a_shape_that_was_timed_twice_costs_the_mean);
    tcase_add_test(tests, a_model_that_is_wrong_by_a_factor_is_put_right_everywhere);
    tcase_add_test(tests, a_larger_product_is_not_much_cheaper);
    tcase_add_test(tests, between_points_the_correction_is_between_theirs);
    tcase_add_test(tests, two_points_are_kriged_as_by_hand);
    tcase_add_test(tests, attention_with_dropout_has_its_own_points);
    tcase_add_test(tests, points_whose_rows_begin_alike_count_more);
    tcase_add_test(tests, convolutions_are_told_apart_by_their_windows);
    tcase_add_test(tests, convolutions_may_be_as_those_of_another_device);
    tcase_add_test(tests, the_chip_of_another_device_has_attention_but_no_products);
    tcase_add_test(tests, tables_without_windows_hold_for_all_convolutions);
    tcase_add_test(tests, memory_bound_kernels_grow_with_their_bytes);
    tcase_add_test(tests, a_pass_has_its_own_points);
    tcase_add_test(tests, sums_cost_what_residual_connections_do);
    tcase_add_loop_test(tests, bad_tables_are_refused_by_place, 0, (int)DL_COUNT(bad));
}

int main(void) { return run_devices("measured_device", add); }
