/* peers.c - partners that are drawn: everybody has one other, all pairings are equally likely, and a seed draws the
 * same again. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/program/peers.h"
#include "sim/program/ranks.h"
#include "tests/unit/suite.h"

enum { most = 64, n_iterations = 3000 };

START_TEST(the_partner_of_a_partner_is_oneself)
{
    const uint32_t n = 2 * (uint32_t)_i;
    uint32_t peer[most], again[most], pairs[most / 2][2];
    for (uint32_t iteration = 0; iteration < 20; iteration++) {
        dl_peers_draw(n, iteration, 7, peer);
        dl_peers_draw(n, iteration, 7, again);
        ck_assert(memcmp(peer, again, n * sizeof *peer) == 0);
        dl_peers_pairs(n, peer, pairs);
        for (uint32_t i = 0; i < n; i++) ck_assert(peer[i] < n && peer[i] != i && peer[peer[i]] == i);
        for (uint32_t i = 0; i < n / 2; i++) {
            ck_assert(pairs[i][0] < pairs[i][1] && peer[pairs[i][0]] == pairs[i][1]);
            if (i) ck_assert_uint_gt(pairs[i][0], pairs[i - 1][0]);
        }
    }
}
END_TEST

/* Of four, three: the first has each of the others as often, within five deviations of the binomial distribution. */
START_TEST(all_pairings_are_equally_likely)
{
    uint32_t count[4] = {0}, peer[4];
    for (uint32_t iteration = 0; iteration < n_iterations; iteration++) {
        dl_peers_draw(4, iteration, (uint64_t)_i, peer);
        count[peer[0]]++;
    }
    const double p = 1.0 / 3, deviation = sqrt(n_iterations * p * (1 - p));
    for (int i = 1; i < 4; i++) ck_assert_double_eq_tol(count[i], n_iterations * p, 5 * deviation);
}
END_TEST

START_TEST(another_seed_or_iteration_draws_others)
{
    uint32_t first[most], later[most], other[most];
    dl_peers_draw(most, 0, 1, first);
    dl_peers_draw(most, 1, 1, later);
    dl_peers_draw(most, 0, 2, other);
    ck_assert(memcmp(first, later, sizeof first) && memcmp(first, other, sizeof first));
}
END_TEST

START_TEST(drawn_members_are_two_and_are_not_all)
{
    const struct dl_ranks r = {.n_digits = 1, .digits = {{"data", 8, 1}}};
    const struct dl_members all = {.digits = 1}, drawn = {.digits = 1, .are_drawn = true};
    ck_assert_uint_eq(dl_members_count(&r, &drawn), 2);
    ck_assert(!dl_members_equal(&all, &drawn));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("peers");
    tcase_add_loop_test(tests, the_partner_of_a_partner_is_oneself, 1, most / 2 + 1);
    tcase_add_loop_test(tests, all_pairings_are_equally_likely, 0, 4);
    tcase_add_test(tests, another_seed_or_iteration_draws_others);
    tcase_add_test(tests, drawn_members_are_two_and_are_not_all);
    Suite *const suite = suite_create("peers");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
