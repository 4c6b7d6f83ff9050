/* variability.c - the slowest device of a job: closed forms, and what is drawn against what is expected. */
#include <check.h>
#include <math.h>

#include "sim/core/error.h"
#include "tests/unit/suite.h"
#include "topologies/variability.h"

static const double slow_share = 0.005, slowdown = 1.1;

static void check_close(double is, double should, double tolerance)
{
    ck_assert_msg(fabs(is - should) <= tolerance * fabs(should), "is %.12g, not %.12g", is, should);
}

static double slowest(const struct dl_variability *v, double n_nodes, double n_devices)
{
    return dl_variability_last(v, &(struct dl_alike){3, 0, n_devices, n_nodes}, 1).slowdown;
}

START_TEST(slow_nodes_alone_are_a_chance)
{
    const struct dl_variability v = {.slow_node_fraction = slow_share, .slow_node_slowdown = slowdown};
    for (uint32_t nodes = 1; nodes <= 1536; nodes *= 4)
        check_close(slowest(&v, nodes, 8 * nodes), 1 + 0.1 * (1 - pow(0.995, nodes)), 1e-12);
}
END_TEST

/* E x = 1, and E max(x, y) = 2 P(z < deviation / sqrt 2) of two that are lognormal. */
START_TEST(one_device_is_the_mean_and_two_have_a_closed_form)
{
    static const double spreads[] = {0.001, 0.02, 0.3, 1};
    for (size_t i = 0; i < DL_COUNT(spreads); i++) {
        const struct dl_variability v = {.spread_fraction = spreads[i], .slow_node_slowdown = 1};
        const double deviation = sqrt(log1p(spreads[i] * spreads[i]));
        check_close(slowest(&v, 1, 1), 1, 1e-9);
        check_close(slowest(&v, 1, 2), erfc(-deviation / 2), 1e-9); /* 2 P(z < w) = erfc(-w / sqrt 2) */
        check_close(slowest(&v, 2, 2), erfc(-deviation / 2), 1e-9);
    }
}
END_TEST

/* Where all devices of a slow node are slower than all others, both count one after the other. */
START_TEST(spread_and_slow_nodes_far_apart_are_a_mixture)
{
    const struct dl_variability v = {0.001, 0.3, 5}, spread = {.spread_fraction = 0.001, .slow_node_slowdown = 1};
    const double slow = 0.3 * 5 * slowest(&spread, 1, 8), usual = 0.7 * slowest(&spread, 1, 8);
    check_close(slowest(&v, 1, 8), slow + usual, 1e-9);
    const struct dl_variability all = {0.1, 1, 3}, body = {.spread_fraction = 0.1, .slow_node_slowdown = 1};
    check_close(slowest(&all, 4, 32), 3 * slowest(&body, 4, 32), 1e-9);
}
END_TEST

/* Stages of which the last one has a tenth more to do: a slow node of another one costs a fifth less a tenth. */
START_TEST(a_stage_with_less_work_has_time)
{
    const struct dl_variability v = {.slow_node_fraction = 0.01, .slow_node_slowdown = 1.2};
    const struct dl_alike stages[] = {{10, 0, 56, 7}, {11, 0, 8, 1}}, even[] = {{11, 0, 56, 7}, {11, 0, 8, 1}};
    const double none = pow(0.99, 8), last = 0.01, others = 1 - none - last;
    check_close(dl_variability_last(&v, stages, 2).slowdown, none + others * 12 / 11 + last * 1.2, 1e-12);
    check_close(dl_variability_last(&v, even, 2).slowdown, slowest(&v, 8, 64), 1e-12);
    const struct dl_alike far[] = {{1, 0, 56, 7}, {11, 0, 8, 1}};
    check_close(dl_variability_last(&v, far, 2).slowdown, slowest(&v, 1, 8), 1e-12);
}
END_TEST

/* Of 11 s the first waits 3 for the network: on a slow node it takes 12.6 s, the second 13.2. */
START_TEST(the_network_is_not_slow)
{
    const struct dl_variability v = {.slow_node_fraction = 0.01, .slow_node_slowdown = 1.2};
    const struct dl_alike stages[] = {{8, 3, 56, 7}, {11, 0, 8, 1}}, one[] = {{8, 3, 56, 7}};
    const double none = pow(0.99, 8), last = 0.01, others = 1 - none - last, of_one = 1 - pow(0.99, 7);
    const struct dl_last both = dl_variability_last(&v, stages, 2), alone = dl_variability_last(&v, one, 1);
    ck_assert_uint_eq(both.which, 1);
    check_close(both.slowdown, (none * 11 + others * 12.6 + last * 13.2) / 11, 1e-12);
    check_close(alone.slowdown, 1 + 0.2 * of_one, 1e-12);
    const struct dl_variability spread = {.spread_fraction = 0.3, .slow_node_slowdown = 1};
    const struct dl_alike two = {8, 3, 2, 1};
    check_close(dl_variability_last(&spread, &two, 1).slowdown, slowest(&spread, 1, 2), 1e-6);
}
END_TEST

/* Two halves of a node are the node, as far as its devices spread. */
START_TEST(parts_of_the_same_work_are_one)
{
    const struct dl_variability v = {.spread_fraction = 0.05, .slow_node_slowdown = 1};
    const struct dl_alike halves[] = {{2, 0, 4, 0.5}, {2, 0, 4, 0.5}};
    check_close(dl_variability_last(&v, halves, 2).slowdown, slowest(&v, 1, 8), 1e-12);
}
END_TEST

START_TEST(more_devices_are_never_faster)
{
    const struct dl_variability v = {0.02, slow_share, slowdown};
    double before = 1;
    for (uint32_t nodes = 1; nodes <= 1u << 20; nodes *= 2) {
        const double now = slowest(&v, nodes, 8 * nodes);
        ck_assert_double_gt(now, before);
        before = now;
    }
}
END_TEST

static double slowest_drawn(const struct dl_variability *v, uint64_t seed, uint32_t n_nodes, double *mean)
{
    double of_node[8], last = 0, sum = 0;
    for (uint32_t node = 0; node < n_nodes; node++) {
        dl_variability_draw(v, seed, node, DL_COUNT(of_node), of_node);
        for (size_t i = 0; i < DL_COUNT(of_node); i++) {
            last = fmax(last, of_node[i]);
            sum += of_node[i];
        }
    }
    *mean = sum / n_nodes / DL_COUNT(of_node);
    return last;
}

/* A thousand machines: their slowest devices scatter by less than 0.04, so that the mean is right to 0.004. */
START_TEST(draws_have_the_expected_mean_and_slowest)
{
    const struct dl_variability v = {0.02, 0.05, 1.1};
    enum { n_seeds = 1000, n_nodes = 16 };
    double last = 0, mean = 0, one;
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        last += slowest_drawn(&v, seed, n_nodes, &one) / n_seeds;
        mean += one / n_seeds;
    }
    check_close(mean, 1 + 0.05 * 0.1, 2e-3);
    check_close(last, slowest(&v, n_nodes, 8 * n_nodes), 4e-3);
}
END_TEST

/* Whatever else is drawn: a node keeps its devices. */
START_TEST(a_node_is_the_seed_s)
{
    const struct dl_variability v = {0.02, 0.05, 1.1};
    double first[8], again[4], other[8];
    dl_variability_draw(&v, 3, 7, 8, first);
    dl_variability_draw(&v, 3, 7, 4, again);
    dl_variability_draw(&v, 4, 7, 8, other);
    ck_assert_mem_eq(first, again, sizeof again);
    ck_assert_double_ne(first[0], other[0]);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("variability");
    tcase_add_test(tests, slow_nodes_alone_are_a_chance);
    tcase_add_test(tests, one_device_is_the_mean_and_two_have_a_closed_form);
    tcase_add_test(tests, spread_and_slow_nodes_far_apart_are_a_mixture);
    tcase_add_test(tests, a_stage_with_less_work_has_time);
    tcase_add_test(tests, the_network_is_not_slow);
    tcase_add_test(tests, parts_of_the_same_work_are_one);
    tcase_add_test(tests, more_devices_are_never_faster);
    tcase_add_test(tests, draws_have_the_expected_mean_and_slowest);
    tcase_add_test(tests, a_node_is_the_seed_s);
    Suite *const suite = suite_create("variability");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
