/* failures.c - runs with failures: formula against simulation, the best interval, limits that are known. */
#include <math.h>
#include <string.h>

#include "sim/campaign/failures.h"
#include "sim/core/error.h"
#include "tests/unit/suite.h"

static const double minute_s = 60, hour_s = 3600, day_s = 86400;

static double relative(double a, double b) { return fabs(a / b - 1); }

/* ---- formula against simulation ---- */

struct point {
    double mtbf_s, blocking_s, recovery_s, of_best, writing_of_interval;
};

static const double mtbfs_s[] = {3600, 6 * 3600, 86400}, blockings_s[] = {1, 60, 600}, recoveries_s[] = {0, 300, 1800},
                    of_best[] = {0.3, 1, 3}, writing[] = {0, 0.5};
enum {
    n_points =
        DL_COUNT(mtbfs_s) * DL_COUNT(blockings_s) * DL_COUNT(recoveries_s) * DL_COUNT(of_best) * DL_COUNT(writing)
};

static struct point point_of(int i)
{
    struct point p;
    p.mtbf_s = mtbfs_s[i % DL_COUNT(mtbfs_s)], i /= DL_COUNT(mtbfs_s);
    p.blocking_s = blockings_s[i % DL_COUNT(blockings_s)], i /= DL_COUNT(blockings_s);
    p.recovery_s = recoveries_s[i % DL_COUNT(recoveries_s)], i /= DL_COUNT(recoveries_s);
    p.of_best = of_best[i % DL_COUNT(of_best)], i /= DL_COUNT(of_best);
    p.writing_of_interval = writing[i];
    return p;
}

/* Half of the failures are of devices, a third of nodes, the rest of links. */
static void three_kinds(double mtbf_s, struct dl_failing kinds[3])
{
    kinds[0] = (struct dl_failing){"device", 64, 64 * mtbf_s * 2};
    kinds[1] = (struct dl_failing){"node", 8, 8 * mtbf_s * 3};
    kinds[2] = (struct dl_failing){"link", 32, 32 * mtbf_s * 6};
}

START_TEST(formula_and_simulation_agree)
{
    const struct point p = point_of(_i);
    struct dl_restarts r = {.mtbf_s = p.mtbf_s, .recovery_s = p.recovery_s, .blocking_s = p.blocking_s};
    struct dl_failing kinds[3];
    const double between = ceil(p.of_best * dl_restarts_best_s(&r));
    const struct dl_saved_steps steps = {.step_s = 1, .n = floor(20 * p.mtbf_s) + 1, .between = between};
    r.writing_s = p.writing_of_interval * between;
    three_kinds(p.mtbf_s, kinds);
    ck_assert_double_eq_tol(dl_failing_together_s(kinds, 3), p.mtbf_s, 1e-9 * p.mtbf_s);
    const struct dl_failures_simulated s = dl_failures_simulate(
        &(struct dl_failure_trials){.restarts = &r, .kinds = kinds, .n_kinds = 3, .steps = steps, .n_trials = 500});
    const double whole_s = dl_restarts_whole_s(&r, &steps);
    ck_assert_msg(relative(s.seconds, whole_s) < 0.02, "%g s by simulation, %g s by formula", s.seconds, whole_s);
    const double failures = s.failures[0] + s.failures[1] + s.failures[2], expected = whole_s / p.mtbf_s;
    ck_assert_msg(relative(failures, expected) < 0.02, "%g failures by simulation, %g by formula", failures, expected);
    ck_assert_double_eq_tol(s.failures[0] / failures, 1.0 / 2, 0.02);
    ck_assert_double_eq_tol(s.failures[1] / failures, 1.0 / 3, 0.02);
    ck_assert_double_eq_tol(s.recovering_s / s.seconds, dl_restarts_recovering(&r), 0.01);
    const double saved_s = steps.n + ceil(steps.n / between) * r.blocking_s + r.writing_s;
    ck_assert_double_eq_tol(saved_s + s.recovering_s + s.lost_s, s.seconds, 1e-6 * s.seconds);
    ck_assert_double_le(s.low_s, s.seconds);
    ck_assert_double_ge(s.high_s, s.seconds);
}
END_TEST

/* A long run is so many times what lies between two checkpoints. */
START_TEST(goodput_is_that_of_a_long_run)
{
    const struct dl_restarts r = {.mtbf_s = 4 * hour_s, .recovery_s = 600, .blocking_s = 30, .writing_s = 100};
    const struct dl_saved_steps steps = {.step_s = 2, .n = 1e9, .between = 300};
    ck_assert_double_eq_tol(steps.n * steps.step_s / dl_restarts_whole_s(&r, &steps), dl_restarts_goodput(&r, 600),
                            1e-6);
}
END_TEST

START_TEST(a_seed_gives_the_same_bits_and_another_gives_others)
{
    const struct dl_restarts r = {.recovery_s = 600, .blocking_s = 30};
    const struct dl_failing kind = {"device", 1, hour_s};
    struct dl_failure_trials q = {.restarts = &r,
                                  .kinds = &kind,
                                  .n_kinds = 1,
                                  .steps = {.step_s = 10, .n = 9000, .between = 45},
                                  .seed = 7,
                                  .n_trials = 20};
    const struct dl_failures_simulated first = dl_failures_simulate(&q), again = dl_failures_simulate(&q);
    ck_assert(memcmp(&first, &again, sizeof first) == 0);
    q.seed = 8;
    ck_assert_double_ne(dl_failures_simulate(&q).seconds, first.seconds);
}
END_TEST

/* ---- limits ---- */

START_TEST(without_failures_only_checkpoints_cost)
{
    const struct dl_restarts never = {.mtbf_s = INFINITY, .recovery_s = 600, .blocking_s = 30};
    const struct dl_restarts rarely = {.mtbf_s = 1e15, .recovery_s = 600, .blocking_s = 30};
    const struct dl_saved_steps steps = {.step_s = 10, .n = 95, .between = 20}; /* 4 whole intervals and 15 steps */
    ck_assert_double_eq(dl_restarts_goodput(&never, 570), 570.0 / 600);
    ck_assert_double_eq_tol(dl_restarts_goodput(&rarely, 570), 570.0 / 600, 1e-9);
    ck_assert_double_eq(dl_restarts_whole_s(&never, &steps), 950 + 5 * 30);
    ck_assert_double_eq(dl_restarts_recovering(&never), 0);
}
END_TEST

/* A single try of w + d seconds: the mean time until so long passes without a failure is M (exp((w + d) / M) - 1). */
START_TEST(without_recovery_it_is_the_mean_time_to_a_quiet_spell)
{
    const struct dl_restarts r = {.mtbf_s = 100, .blocking_s = 50};
    ck_assert_double_eq_tol(dl_restarts_between_s(&r, 150), 100 * (exp(2) - 1), 1e-9);
}
END_TEST

START_TEST(few_failures_each_cost_recovery_and_half_an_interval)
{
    const struct dl_restarts r = {.mtbf_s = 1e7, .recovery_s = 500, .blocking_s = 0.01};
    const double overhead = 1 / dl_restarts_goodput(&r, 2000) - 1;
    ck_assert_double_eq_tol(overhead, 0.01 / 2000 + (500 + 2000 / 2.0) / 1e7, 1e-7);
}
END_TEST

START_TEST(failures_faster_than_checkpoints_leave_nothing)
{
    const struct dl_restarts r = {.mtbf_s = 1, .recovery_s = 600, .blocking_s = 600};
    ck_assert_double_eq(dl_restarts_goodput(&r, 600), 0);
}
END_TEST

/* ---- the best interval ---- */

static const double shares[] = {1e-12, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1, 2, 10};

static struct dl_restarts with_share(int i)
{
    return (struct dl_restarts){.mtbf_s = 3 * hour_s, .recovery_s = 400, .blocking_s = shares[i] * 3 * hour_s};
}

START_TEST(best_interval_is_better_than_its_neighbours)
{
    const struct dl_restarts r = with_share(_i);
    const double best_s = dl_restarts_best_s(&r), goodput = dl_restarts_goodput(&r, best_s);
    for (double factor = 1.02; factor < 100; factor *= 1.3) {
        ck_assert_double_gt(goodput, dl_restarts_goodput(&r, best_s * factor));
        ck_assert_double_gt(goodput, dl_restarts_goodput(&r, best_s / factor));
    }
}
END_TEST

/* Young's is the first order of it in the root of d / M, Daly's the third. */
START_TEST(approximations_are_near_where_checkpoints_are_short)
{
    const struct dl_restarts r = with_share(_i);
    const double best_s = dl_restarts_best_s(&r), order = sqrt(shares[_i]);
    if (shares[_i] > 0.1) return;
    ck_assert_double_le(relative(dl_restarts_young_s(&r), best_s), 1.2 * order + 1e-9);
    ck_assert_double_le(relative(dl_restarts_daly_s(&r), best_s), order * order * order + 1e-9);
    ck_assert_double_ge(dl_restarts_goodput(&r, dl_restarts_daly_s(&r)), dl_restarts_goodput(&r, best_s) * (1 - 1e-3));
}
END_TEST

START_TEST(best_steps_are_the_best_of_all)
{
    const struct dl_restarts r = with_share(_i);
    const double step_s = 97, most = 500, steps = dl_restarts_best_steps(&r, step_s, most);
    double best = 1;
    for (double n = 2; n <= most; n++)
        if (dl_restarts_goodput(&r, n * step_s) > dl_restarts_goodput(&r, best * step_s)) best = n;
    ck_assert_double_eq(steps, best);
}
END_TEST

START_TEST(no_checkpoint_begins_while_one_is_written)
{
    const struct dl_restarts r = {.mtbf_s = day_s, .recovery_s = 600, .blocking_s = 1, .writing_s = 20 * minute_s};
    ck_assert_double_gt(r.writing_s, dl_restarts_young_s(&r));
    ck_assert_double_eq(dl_restarts_best_s(&r), r.writing_s - r.blocking_s);
    ck_assert_double_eq(dl_restarts_best_steps(&r, 100, 1e9), 12);
    ck_assert_double_eq(dl_restarts_best_steps(&r, 100, 5), 5);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("failures");
    TCase *const tests = tcase_create("failures");
    tcase_add_loop_test(tests, formula_and_simulation_agree, 0, n_points);
    tcase_add_test(tests, goodput_is_that_of_a_long_run);
    tcase_add_test(tests, a_seed_gives_the_same_bits_and_another_gives_others);
    tcase_add_test(tests, without_failures_only_checkpoints_cost);
    tcase_add_test(tests, without_recovery_it_is_the_mean_time_to_a_quiet_spell);
    tcase_add_test(tests, few_failures_each_cost_recovery_and_half_an_interval);
    tcase_add_test(tests, failures_faster_than_checkpoints_leave_nothing);
    tcase_add_loop_test(tests, best_interval_is_better_than_its_neighbours, 0, (int)DL_COUNT(shares));
    tcase_add_loop_test(tests, approximations_are_near_where_checkpoints_are_short, 0, (int)DL_COUNT(shares));
    tcase_add_loop_test(tests, best_steps_are_the_best_of_all, 0, (int)DL_COUNT(shares));
    tcase_add_test(tests, no_checkpoint_begins_while_one_is_written);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
