/* kept_out_times.c - what a device says of shapes that were timed on it, if half of the times are kept from it. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "tests/timed_rows.h"
#include "tests/unit/priced_device.h"

/* Products that were timed twice on the H200, in another order, differ by 3 to 6 % on average and by 7 to 17 % in one
 * of twenty cases: the clock follows the power of what ran before. The times in the file are means of such runs. On the
 * Xeon core the two least times of a product differ by 4 % in the middle case and by 18 % in one of ten: others use its
 * host. */
static const struct {
    const char *device, *kernel, *precision;
    double mean, p95;
} wanted[] = {
    {"h200", "gemm", "bf16", 0.06, 0.15},      {"h200", "attention", "bf16", 0.06, 0.15},
    {"h200", "gemm", "fp8", 0.06, 0.15},       {"h200", "gemm", "tf32", 0.1, 0.3},
    {"h200", "layernorm", "bf16", 0.12, 0.3},  {"h200", "softmax", "bf16", 0.12, 0.3},
    {"h200", "gelu", "bf16", 0.12, 0.3},       {"h200", "layernorm", "fp32", 0.12, 0.3},
    {"h200", "softmax", "fp32", 0.12, 0.3},    {"h200", "gelu", "fp32", 0.12, 0.3},
    {"h200", "conv", "bf16", 0.17, 0.6},       {"h200", "conv", "tf32", 0.15, 0.5},
    {"h200", "conv", "fp32", 0.2, 0.6},        {"h200", "native_batchnorm", "bf16", 0.12, 0.35},
    {"h200", "batchnorm", "fp32", 0.14, 0.35}, {"h200", "residual", "bf16", 0.12, 0.3},
    {"xeon-core", "gemm", "fp32", 0.08, 0.3},
};

/* Of the kept-out rows of a table, appended to errors. */
static size_t add_errors(const json_t *table, double *errors)
{
    size_t i, n = 0;
    json_t *row;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        const struct dl_kernel k = timed_kernel(table, row);
        if (!is_kept_out(&k)) continue;
        const struct dl_price price = dl_price(&device, &k, timed_precision(table));
        errors[n++] = fabs(price.seconds / timed_cell(table, row, "seconds", 0) - 1);
        ck_assert_int_ne(price.ground, DL_GROUND_MEASURED);
    }
    return n;
}

START_TEST(kept_out_shapes_are_met)
{
    enum { most = 1 << 14 };
    static double errors[most];
    size_t i, n = 0;
    json_t *table;
    open_device(wanted[_i].device); /* tables of other files are then in the document */
    json_t *const all = json_deep_copy(doc.value);
    remove_kept_out(doc.value);
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    json_array_foreach(json_object_get(all, "measured"), i, table)
    {
        if (strcmp(timed_text(table, "kernel"), wanted[_i].kernel)) continue;
        if (strcmp(timed_text(table, "precision"), wanted[_i].precision)) continue;
        ck_assert_uint_le(n + json_array_size(json_object_get(table, "rows")), most);
        n += add_errors(table, errors + n);
    }
    json_decref(all);
    ck_assert_uint_gt(n, 0);
    gsl_sort(errors, 1, n);
    const double mean = gsl_stats_mean(errors, 1, n), p95 = gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.95);
    ck_assert_msg(mean <= wanted[_i].mean && p95 <= wanted[_i].p95, "%s %s: mean %.1f %%, 95 %% below %.1f %%",
                  wanted[_i].kernel, wanted[_i].precision, 100 * mean, 100 * p95);
}
END_TEST

static double mean_error_of_model(const char *precision, const char *pass, bool is_regrouped)
{
    double sum = 0, n_rows = 0;
    size_t i, j;
    json_t *table, *row;
    json_array_foreach(json_object_get(doc.value, "measured"), i, table)
    {
        if (strcmp(timed_text(table, "kernel"), "conv") || strcmp(timed_text(table, "precision"), precision)) continue;
        if (strcmp(timed_text(table, "pass"), pass)) continue;
        json_array_foreach(json_object_get(table, "rows"), j, row)
        {
            const struct dl_kernel k = timed_kernel(table, row);
            if (dl_kernel_is_regrouped(&k) != is_regrouped) continue;
            const double modelled_s = dl_price(&device, &k, timed_precision(table)).seconds;
            sum += fabs(modelled_s / timed_cell(table, row, "seconds", 0) - 1);
            n_rows++;
        }
    }
    return sum / n_rows;
}

/* As devices have it on which no convolution was timed. No figure of the model is fitted to these. Where images are
 * copied around groups, cuDNN has several ways, and the model one. */
START_TEST(modelled_convolutions_are_near_the_timed)
{
    static const struct {
        const char *precision, *pass;
        double mean, regrouped_mean;
    } limits[] = {
        {"bf16", "forward", 0.17, 0.3},
        {"tf32", "forward", 0.14, 0.4},
        {"bf16", "input_gradient", 0.225, 0.53},
        {"tf32", "input_gradient", 0.285, 0.46},
    };
    open_device("h200");
    device.measured = NULL;
    for (size_t i = 0; i < DL_COUNT(limits); i++) {
        ck_assert_double_le(mean_error_of_model(limits[i].precision, limits[i].pass, false), limits[i].mean);
        ck_assert_double_le(mean_error_of_model(limits[i].precision, limits[i].pass, true), limits[i].regrouped_mean);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, kept_out_shapes_are_met, 0, (int)DL_COUNT(wanted));
    tcase_add_test(tests, modelled_convolutions_are_near_the_timed);
}

int main(void) { return run_devices("kept_out_times", add); }
