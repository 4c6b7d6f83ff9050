/* power_limits.c - kernels under lower limits of power take as much longer as measured on an H200
 * (validation/measured/power_limits.json). */
#include <math.h>

#include "sim/cost/power.h"
#include "tests/unit/priced_device.h"

enum { NAME, LIMIT, FIRST, LATE };
enum { full_w = 700, n_limits = 2 };

static json_t *rows;

static void open_rows(void)
{
    load("validation/measured", "power_limits");
    rows = json_incref(json_object_get(doc.value, "rows"));
}

static void close_rows(void) { json_decref(rows); }

static double measured_s(const char *name, int limit_w, int column)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        if (!strcmp(json_string_value(json_array_get(row, NAME)), name) &&
            json_integer_value(json_array_get(row, LIMIT)) == limit_w)
            return json_real_value(json_array_get(row, (size_t)column));
    }
    ck_abort_msg("no %s under %d W", name, limit_w);
}

/* Under the limit, over what is priced without one, by kernels that draw this fraction of what the device says. */
static double slowdown(const struct dl_kernel *k, enum dl_precision precision, double drawn, double limit_w)
{
    const struct dl_price alone = dl_price(&device, k, precision);
    struct dl_draw draw = dl_draw_of(&device, k, precision, &alone);
    struct dl_power power = *device.power;
    power.limit_w = limit_w;
    dl_draw_slow(&draw, 1, drawn);
    return dl_draw_seconds(&draw, dl_power_clock(&power, &draw, 0)) / alone.seconds;
}

static void check_ratio(const char *name, int limit_w, double is, double measured, double most_error)
{
    ck_assert_msg(fabs(is / measured - 1) <= most_error, "%s under %d W: %g, measured %g", name, limit_w, is, measured);
}

static const int limits_w[n_limits] = {600, 500};

/* Products were timed as they settle under the full limit. */
START_TEST(products_slow_down_as_measured)
{
    static const struct {
        const char *name;
        double m, n, k;
    } products[] = {{"gemm 8192 8192 8192", 8192, 8192, 8192},
                    {"gemm 4096 12288 12288", 4096, 12288, 12288},
                    {"gemm 16384 4096 1024", 16384, 4096, 1024}};
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(products); i++) {
        const char *const name = products[i].name;
        const struct dl_kernel k = product(products[i].m, products[i].n, products[i].k);
        for (int l = 0; l < n_limits; l++)
            check_ratio(name, limits_w[l], slowdown(&k, DL_BF16, 1, limits_w[l]),
                        measured_s(name, limits_w[l], LATE) / measured_s(name, full_w, LATE), 0.04);
    }
}
END_TEST

/* Of each product there are one forward and two backward, whose sums leave the tensor cores. */
static double of_a_step(int limit_w)
{
    return measured_s("fp8 gemm 8192 8192 8192", limit_w, LATE) +
           2 * measured_s("fp8 gemm exact 8192 8192 8192", limit_w, LATE);
}

START_TEST(products_of_fp8_slow_down_as_measured_under_500_w)
{
    const int limit_w = 500;
    const struct dl_kernel k = product(8192, 8192, 8192);
    open_device("h100-96");
    check_ratio("fp8", limit_w, slowdown(&k, DL_FP8, 1, limit_w), of_a_step(limit_w) / of_a_step(full_w), 0.02);
}
END_TEST

/* By FlashAttention-2, which is older than the chip; it was timed at the highest clock. */
START_TEST(attention_slows_down_as_measured)
{
    static const struct {
        const char *name;
        double heads, tokens;
        bool backward;
    } attentions[] = {{"attention 2 32 8192 128", 64, 8192, false},
                      {"attention backward 2 32 8192 128", 64, 8192, true},
                      {"attention 1 32 32768 128", 32, 32768, false},
                      {"attention backward 1 32 32768 128", 32, 32768, true}};
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(attentions); i++) {
        const char *const name = attentions[i].name;
        const struct dl_kernel k =
            attention(attentions[i].heads, attentions[i].tokens, 128, true, attentions[i].backward);
        for (int l = 0; l < n_limits; l++)
            check_ratio(name, limits_w[l], slowdown(&k, DL_BF16, device.power->older_power_fraction, limits_w[l]),
                        measured_s(name, limits_w[l], LATE) / measured_s(name, full_w, FIRST), 0.05);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("power_limits");
    TCase *const tests = tcase_create("power_limits");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(tests, open_rows, close_rows);
    tcase_add_test(tests, products_slow_down_as_measured);
    tcase_add_test(tests, products_of_fp8_slow_down_as_measured_under_500_w);
    tcase_add_test(tests, attention_slows_down_as_measured);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
