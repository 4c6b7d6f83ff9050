/* Lines through measured points: exact ones exactly, noisy ones with intervals that mean what they say. */
#include "sim/core/line_fit.h"

#include <check.h>
#include <gsl/gsl_randist.h>
#include <math.h>

#include "sim/core/error.h"
#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { n_points = 12 };
static const double latency_s = 2e-6, s_per_byte = 1e-10;

static double line_at(double bytes) { return latency_s + s_per_byte * bytes; }

START_TEST(points_of_a_line_give_that_line_and_no_doubt)
{
    double x[n_points], y[n_points];
    for (int i = 0; i < n_points; i++) {
        x[i] = pow(4, i);
        y[i] = line_at(x[i]);
    }
    const struct dl_line line = dl_fit_line((struct dl_points){x, y, n_points});
    ck_assert_double_eq_tol(line.intercept, latency_s, 1e-12 * latency_s);
    ck_assert_double_eq_tol(line.slope, s_per_byte, 1e-12 * s_per_byte);
    ck_assert_double_le(line.slope_pm, 1e-9 * s_per_byte);
}
END_TEST

START_TEST(a_line_through_the_origin_has_the_ratio_of_its_points)
{
    const double x[] = {1, 2, 4}, y[] = {2, 4, 8};
    const struct dl_line line = dl_fit_line_through_origin((struct dl_points){x, y, DL_COUNT(x)});
    ck_assert_double_eq_tol(line.slope, 2, 1e-12);
    ck_assert_double_eq(line.intercept, 0);
    ck_assert_double_eq(line.intercept_pm, 0);
}
END_TEST

/* Of intervals of 95 % about 95 in 100 hold what they should. */
START_TEST(intervals_hold_the_truth_as_often_as_they_say)
{
    const int trials = 1000;
    int held[2] = {0};
    gsl_rng *const rng = dl_random_new(1, "line_fit", 0);
    for (int trial = 0; trial < trials; trial++) {
        double x[n_points], y[n_points];
        for (int i = 0; i < n_points; i++) {
            x[i] = pow(4, i);
            y[i] = line_at(x[i]) * (1 + gsl_ran_gaussian(rng, 0.03));
        }
        const struct dl_line line = dl_fit_line((struct dl_points){x, y, n_points});
        held[0] += fabs(line.intercept - latency_s) <= line.intercept_pm;
        held[1] += fabs(line.slope - s_per_byte) <= line.slope_pm;
    }
    gsl_rng_free(rng);
    for (size_t i = 0; i < DL_COUNT(held); i++) {
        ck_assert_int_ge(held[i], 930);
        ck_assert_int_le(held[i], 970);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("line_fit");
    TCase *const tests = tcase_create("line_fit");
    tcase_add_test(tests, points_of_a_line_give_that_line_and_no_doubt);
    tcase_add_test(tests, a_line_through_the_origin_has_the_ratio_of_its_points);
    tcase_add_test(tests, intervals_hold_the_truth_as_often_as_they_say);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
