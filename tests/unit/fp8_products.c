/* fp8_products.c - products in fp8 by the formula of the H100, against those timed on the H200, which is the same chip
 * at the same power (topologies/devices/measured/h200-gemm.json). */
#include <math.h>

#include "sim/cost/gpu.h"
#include "tests/unit/priced_device.h"

enum column { M, N, K, SECONDS };

static double at(const json_t *row, enum column column) { return json_number_value(json_array_get(row, column)); }

/* The mean of ln(predicted / measured) of the long products. */
static double mean_error(const json_t *table, enum dl_precision precision)
{
    static const double least_flop = 1e11;
    const json_t *row;
    size_t i;
    double sum = 0, n = 0;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        const struct dl_kernel product = {
            .kind = DL_KERNEL_GEMM, .batch = 1, .m = at(row, M), .n = at(row, N), .k = at(row, K)};
        if (2 * product.m * product.n * product.k < least_flop) continue;
        sum += log(dl_gpu_product_s(&device, &product, precision) / at(row, SECONDS));
        n++;
    }
    ck_assert_double_gt(n, 20);
    return sum / n;
}

static const json_t *table_of(const char *precision)
{
    const json_t *table;
    size_t i;
    json_array_foreach(json_object_get(doc.value, "measured"), i, table)
    {
        const char *const pass = json_string_value(json_object_get(table, "pass"));
        if (pass && strcmp(pass, "forward") == 0 &&
            strcmp(json_string_value(json_object_get(table, "precision")), precision) == 0)
            return table;
    }
    ck_abort_msg("no table of %s", precision);
}

START_TEST(long_ones_take_as_long_on_the_same_chip)
{
    static const double close = 0.05;
    open_device("h100");
    load("topologies/devices/measured", "h200-gemm");
    ck_assert_double_lt(fabs(mean_error(table_of("fp8"), DL_FP8)), close);
    ck_assert_double_lt(fabs(mean_error(table_of("bf16"), DL_BF16)), close);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("fp8_products");
    TCase *const tests = tcase_create("fp8_products");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, long_ones_take_as_long_on_the_same_chip);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
