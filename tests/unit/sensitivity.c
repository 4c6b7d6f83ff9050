/* sensitivity.c - the interval of a step from those of its constants, against their propagation by hand. */
#include <math.h>

#include "sim/study/sensitivity_runs.h"
#include "tests/unit/suite.h"

static struct dl_effect effect(double elasticity, double value, double low, double high)
{
    return (struct dl_effect){.path = "x",
                              .dimension = elasticity > 0 ? DL_TIME : DL_RATE,
                              .value = value,
                              .low = low,
                              .high = high,
                              .below = elasticity,
                              .above = elasticity,
                              .elasticity = elasticity};
}

START_TEST(intervals_combine_as_independent_constants)
{
    struct dl_effect effects[] = {effect(0.3, 2, 1, 3), effect(-0.8, 10, 9.5, 10.5), effect(1e-5, 1, 0, 2)};
    const struct dl_sensitivity s = dl_sensitivity_of(100, effects, DL_COUNT(effects));
    const double share = sqrt(0.15 * 0.15 + 0.04 * 0.04 + 1e-5 * 1e-5);
    ck_assert_double_eq_tol(s.step_s_high, 100 * (1 + share), 1e-9);
    ck_assert_double_eq_tol(s.step_s_low, 100 * (1 - share), 1e-9);
    ck_assert_double_eq_tol(s.sum, 1.1 + 1e-5, 1e-12);
    ck_assert_double_eq(s.by_grade_share, 0);
    ck_assert_uint_eq(s.n, 2); /* the third is too small to list, and counts all the same */
    ck_assert_double_eq(s.items[0].elasticity, -0.8);
    ck_assert_double_eq(s.items[1].elasticity, 0.3);
}
END_TEST

START_TEST(a_lopsided_interval_is_lopsided_in_the_step_the_other_way_for_rates)
{
    struct dl_effect rate[] = {effect(-0.5, 10, 8, 11)};
    const struct dl_sensitivity s = dl_sensitivity_of(1, rate, 1);
    ck_assert_double_eq_tol(s.step_s_high, 1.1, 1e-12);
    ck_assert_double_eq_tol(s.step_s_low, 0.95, 1e-12);
    struct dl_effect wide[] = {effect(1, 1, -4, 3)};
    ck_assert_double_eq(dl_sensitivity_of(1, wide, 1).step_s_low, 0);
}
END_TEST

START_TEST(what_no_file_says_is_told_apart)
{
    struct dl_effect effects[] = {effect(0.5, 1, 0.9, 1.1), effect(0.5, 1, 0, 0)};
    effects[1].grade = DL_DERIVED; /* 10 % too */
    dl_effect_set_usual_interval(&effects[1]);
    ck_assert_double_eq_tol(dl_sensitivity_of(1, effects, 2).by_grade_share, 0.5, 1e-12);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("sensitivity");
    TCase *const tests = tcase_create("intervals");
    tcase_add_test(tests, intervals_combine_as_independent_constants);
    tcase_add_test(tests, a_lopsided_interval_is_lopsided_in_the_step_the_other_way_for_rates);
    tcase_add_test(tests, what_no_file_says_is_told_apart);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
