/* training_ahead_delays.c - delays from iterations before, which are one sum while items are gone through: divided
 * again they are as they were, and in proportion where less is left of them or somebody has waited because of them. */
#include <check.h>
#include <math.h>

#include "sim/engine/training_ahead_waits.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-15;

/* All but those by messages have another size. */
static struct delays several(void)
{
    struct delays d = {0};
    for (int i = 0; i < BY_OTHERS; i++) d.by[i] = 1.5 + i;
    for (int i = 0; i < BY_OTHERS; i++) d.total_s += d.by[i];
    return d;
}

static double sum(const struct delays *d)
{
    double s = 0;
    for (int i = 0; i < N_DELAYS; i++) s += d->by[i];
    return s;
}

START_TEST(a_sum_is_divided_as_it_was)
{
    const struct delays before = several();
    struct lockstep_group c = {.delays = before};
    dl_ahead_sum_delays(&c.delays);
    ck_assert_double_eq_tol(sum(&c.delays), before.total_s, tolerance * before.total_s);
    ck_assert_double_eq(c.delays.by[BY_MESSAGES], before.by[BY_MESSAGES]);
    ck_assert_double_eq_tol(c.delays.by[BY_OTHERS], before.total_s - before.by[BY_MESSAGES],
                            tolerance * before.total_s);
    dl_ahead_divide_delays(&c, &before);
    for (int i = 0; i < N_DELAYS; i++)
        ck_assert_double_eq_tol(c.delays.by[i], before.by[i], tolerance * before.total_s);
}
END_TEST

/* With half of the sum left, and seconds waited because of it. */
START_TEST(what_is_left_and_waits_are_in_proportion)
{
    const struct delays before = several();
    const double wait_s = 7, others_s = before.total_s - before.by[BY_MESSAGES];
    struct lockstep_group c = {.delays = before};
    dl_ahead_sum_delays(&c.delays);
    c.delays.by[BY_OTHERS] /= 2;
    c.causes_s[CAUSE_OTHERS] = wait_s;
    dl_ahead_divide_delays(&c, &before);
    ck_assert_double_eq(c.causes_s[CAUSE_OTHERS], 0);
    for (int i = 0; i < BY_OTHERS; i++) {
        const bool is_other = i != BY_MESSAGES;
        ck_assert_double_eq_tol(c.delays.by[i], is_other ? before.by[i] / 2 : before.by[i], tolerance * others_s);
        ck_assert_double_eq_tol(c.causes_s[DL_CAUSE_TENSOR + i], is_other ? wait_s * before.by[i] / others_s : 0,
                                tolerance * wait_s);
    }
}
END_TEST

START_TEST(nothing_from_before_stays_nothing)
{
    const struct delays before = {.by[BY_MESSAGES] = 2, .total_s = 2};
    struct lockstep_group c = {.delays = before};
    dl_ahead_sum_delays(&c.delays);
    dl_ahead_divide_delays(&c, &before);
    for (int i = 0; i < N_DELAYS; i++) ck_assert_double_eq(c.delays.by[i], before.by[i]);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("training_ahead_delays");
    TCase *const tests = tcase_create("training_ahead_delays");
    tcase_add_test(tests, a_sum_is_divided_as_it_was);
    tcase_add_test(tests, what_is_left_and_waits_are_in_proportion);
    tcase_add_test(tests, nothing_from_before_stays_nothing);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
