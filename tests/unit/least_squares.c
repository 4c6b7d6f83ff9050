/* Nonlinear least squares: a line is fitted as by its closed form, a curve exactly, and what cannot be told is not. */
#include "sim/core/least_squares.h"

#include <check.h>
#include <math.h>

#include "sim/core/error.h"
#include "sim/core/line_fit.h"
#include "tests/unit/suite.h"

static const double x[] = {1, 2, 3, 5, 8, 13}, y[] = {2.1, 2.9, 4.2, 6.0, 8.8, 14.3};
enum { n_points = DL_COUNT(x) };

/* Relative, as dl_fit_line weighs them. */
static void line(void *user, const double *c, double *out)
{
    (void)user;
    for (int i = 0; i < n_points; i++) out[i] = (c[0] + c[1] * x[i]) / y[i] - 1;
}

START_TEST(a_line_is_as_by_its_closed_form)
{
    const struct dl_residuals r = {.n_points = n_points, .n_constants = 2, .compute = line};
    const struct dl_line closed = dl_fit_line((struct dl_points){x, y, n_points});
    double c[] = {0, 0}, slopes[2 * n_points], pm[2];
    const double sum = dl_least_squares(&r, c);
    ck_assert_double_eq_tol(sum, closed.misfit, 1e-9);
    ck_assert_double_eq_tol(c[0], closed.intercept, 1e-6);
    ck_assert_double_eq_tol(c[1], closed.slope, 1e-6);
    dl_residual_slopes(&r, c, slopes);
    ck_assert(dl_residual_intervals(&r, slopes, sum, pm));
    ck_assert_double_eq_tol(pm[0], closed.intercept_pm, 1e-6);
    ck_assert_double_eq_tol(pm[1], closed.slope_pm, 1e-6);
}
END_TEST

/* The larger of two powers: a kink, as where software changes its way. */
static void larger(void *user, const double *c, double *out)
{
    const double *const truth = user;
    for (int i = 0; i < n_points; i++)
        out[i] = log(fmax(c[0], c[1] * x[i] * x[i]) / fmax(truth[0], truth[1] * x[i] * x[i]));
}

START_TEST(constants_of_a_curve_with_a_kink_come_back)
{
    double truth[] = {7, 0.5}, c[] = {3, 1};
    const struct dl_residuals r = {.n_points = n_points, .n_constants = 2, .compute = larger, .user = truth};
    ck_assert_double_lt(dl_least_squares(&r, c), 1e-9);
    for (int i = 0; i < 2; i++) ck_assert_double_eq_tol(c[i], truth[i], 1e-4);
}
END_TEST

static void only_the_sum(void *user, const double *c, double *out)
{
    (void)user;
    for (int i = 0; i < n_points; i++) out[i] = c[0] + c[1] + 0 * c[2] - y[i];
}

START_TEST(constants_that_the_points_do_not_tell_apart_are_said_so)
{
    const struct dl_residuals r = {.n_points = n_points, .n_constants = 3, .compute = only_the_sum};
    double c[] = {1, 1, 1}, slopes[3 * n_points], pm[3];
    const double sum = dl_least_squares(&r, c);
    dl_residual_slopes(&r, c, slopes);
    ck_assert(!dl_residual_intervals(&r, slopes, sum, pm));
    ck_assert(isinf(pm[2]) && isfinite(pm[0]));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("least_squares");
    TCase *const tests = tcase_create("least_squares");
    tcase_add_test(tests, a_line_is_as_by_its_closed_form);
    tcase_add_test(tests, constants_of_a_curve_with_a_kink_come_back);
    tcase_add_test(tests, constants_that_the_points_do_not_tell_apart_are_said_so);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
