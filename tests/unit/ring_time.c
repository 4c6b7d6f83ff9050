/* ring_time.c - the time of a ring of unequal hops against the recurrence that it solves: in each step a hop passes on
 * what the hop before it brought in the step before, as soon as its own message of the step before has left. */
#include "sim/collective/ring_time.h"

#include <check.h>
#include <math.h>

#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { most_hops = 32 };
static const double rounding = 1e-12;

/* When the last message of one lane has arrived. */
static double by_recurrence(const struct dl_ring_hop *hops, uint32_t n, uint32_t n_steps)
{
    double left_s[most_hops] = {0}, came_s[most_hops] = {0}, last_s = 0;
    for (uint32_t k = 0; k < n_steps; k++) {
        double now_s[most_hops];
        for (uint32_t i = 0; i < n; i++) now_s[i] = came_s[(i + n - 1) % n];
        for (uint32_t i = 0; i < n; i++) {
            left_s[i] = fmax(now_s[i], left_s[i]) + hops[i].move_s;
            came_s[i] = left_s[i] + hops[i].latency_s;
            last_s = fmax(last_s, came_s[i]);
        }
    }
    return last_s;
}

static struct dl_ring_hop hop(double latency_s, double move_s)
{
    return (struct dl_ring_hop){.latency_s = latency_s, .move_s = move_s, .alone_s = move_s};
}

START_TEST(equal_hops_pay_all_latencies_and_all_moves)
{
    struct dl_ring_hop hops[8];
    for (uint32_t i = 0; i < 8; i++) hops[i] = hop(2, 5);
    ck_assert_double_eq_tol(dl_ring_time_s(hops, 8, 7), 7 * (2 + 5), rounding);
    ck_assert_double_eq_tol(dl_ring_time_s(hops, 8, 14), 14 * (2 + 5), rounding);
}
END_TEST

START_TEST(latencies_pass_while_a_slow_hop_moves)
{
    struct dl_ring_hop hops[8];
    for (uint32_t i = 0; i < 8; i++) hops[i] = hop(2, 1);
    hops[3] = hop(3, 10);
    ck_assert_double_eq_tol(dl_ring_time_s(hops, 8, 14), 14 * 10 + 3, rounding);
    hops[4] = hop(30, 1); /* what leaves the slow hop last still has to pass this one */
    ck_assert_double_eq_tol(dl_ring_time_s(hops, 8, 14), 13 * 10 + 3 + 30 + 1, rounding);
}
END_TEST

START_TEST(one_slow_hop_is_as_the_recurrence_has_it)
{
    struct dl_ring_hop hops[most_hops];
    for (uint32_t n = 2; n <= most_hops; n++)
        for (uint32_t slow = 1; slow < 64; slow *= 2) {
            for (uint32_t i = 0; i < n; i++) hops[i] = i ? hop(i % 3, 1) : hop(7, slow);
            for (uint32_t turns = 1; turns <= 2; turns++) {
                const uint32_t n_steps = turns * (n - 1);
                ck_assert_double_eq_tol(dl_ring_time_s(hops, n, n_steps), by_recurrence(hops, n, n_steps), rounding);
            }
        }
}
END_TEST

/* A chain may stay at several hops, of which the formula has the slowest only. */
START_TEST(hops_by_chance_are_near_the_recurrence)
{
    const double most_below = 0.1;
    gsl_rng *const random = dl_random_new(1, "ring_time", (uint64_t)_i);
    struct dl_ring_hop hops[most_hops];
    const uint32_t n = 2 + (uint32_t)_i % (most_hops - 1), n_steps = (1 + (uint32_t)_i % 2) * (n - 1);
    for (uint32_t i = 0; i < n; i++) hops[i] = hop(gsl_rng_uniform(random), 2 * gsl_rng_uniform(random));
    const double exact_s = by_recurrence(hops, n, n_steps), time_s = dl_ring_time_s(hops, n, n_steps);
    ck_assert_double_le(time_s, exact_s * (1 + rounding));
    ck_assert_double_ge(time_s, exact_s * (1 - most_below));
    gsl_rng_free(random);
}
END_TEST

START_TEST(lanes_that_share_are_between_the_extremes)
{
    struct dl_ring_hop hops[4];
    for (uint32_t i = 0; i < 4; i++) hops[i] = (struct dl_ring_hop){.latency_s = 1, .move_s = 40, .alone_s = 10};
    const double in_step_s = 6 * (40 + 1), links_always_busy_s = 6 * 40 + 1;
    ck_assert_double_eq_tol(dl_ring_time_s(hops, 4, 6), (in_step_s + links_always_busy_s) / 2, rounding);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("ring_time");
    TCase *const tests = tcase_create("rings");
    tcase_add_test(tests, equal_hops_pay_all_latencies_and_all_moves);
    tcase_add_test(tests, latencies_pass_while_a_slow_hop_moves);
    tcase_add_test(tests, one_slow_hop_is_as_the_recurrence_has_it);
    tcase_add_loop_test(tests, hops_by_chance_are_near_the_recurrence, 0, 100);
    tcase_add_test(tests, lanes_that_share_are_between_the_extremes);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
