/* routing.c - how many parts of the experts a token visits: closed forms against every choice that there is. */
#include <math.h>

#include "tests/unit/suite.h"
#include "workloads/workload.h"

static const double exactly = 1e-12;

static uint32_t count_bits(uint32_t set)
{
    uint32_t n = 0;
    for (; set; set &= set - 1) n++;
    return n;
}

/* Of n things in equal neighbourhoods, those neighbourhoods that a set has any of. */
static uint32_t parts_of(uint32_t set, uint32_t n, uint32_t parts)
{
    uint32_t visited = 0;
    for (uint32_t i = 0; i < n; i++)
        if (set >> i & 1) visited |= 1u << i * parts / n;
    return visited;
}

/* Over all choices of groups and, in these, of experts. */
static double visits_one_by_one(uint32_t n, uint32_t top_k, uint32_t groups, uint32_t top_groups, uint32_t parts)
{
    double sum = 0, choices = 0;
    for (uint32_t chosen = 0; chosen < 1u << groups; chosen++)
        for (uint32_t set = 0; count_bits(chosen) == top_groups && set < 1u << n; set++) {
            if (count_bits(set) != top_k || parts_of(set, n, groups) & ~chosen) continue;
            sum += count_bits(parts_of(set, n, parts));
            choices++;
        }
    return sum / choices;
}

START_TEST(visits_are_those_of_all_choices)
{
    static const struct {
        uint32_t experts, top_k, groups, top_groups, parts;
    } cases[] = {
        {8, 2, 1, 1, 4},  {8, 3, 1, 1, 2},  {8, 8, 1, 1, 8},   {12, 4, 1, 1, 6}, {8, 2, 4, 2, 4},
        {8, 2, 4, 2, 2},  {8, 3, 4, 2, 8},  {12, 4, 6, 3, 3},  {12, 4, 6, 3, 2}, {12, 2, 4, 1, 2},
        {12, 3, 3, 2, 1}, {12, 6, 4, 2, 4}, {12, 2, 3, 2, 12},
    };
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        const struct dl_routing routing = {cases[i].experts, cases[i].top_k, cases[i].groups, cases[i].top_groups};
        const double all =
            visits_one_by_one(cases[i].experts, cases[i].top_k, cases[i].groups, cases[i].top_groups, cases[i].parts);
        ck_assert_double_eq_tol(dl_routing_visits(&routing, cases[i].parts), all, exactly);
    }
}
END_TEST

/* Every expert by itself is visited once each, one part once, and no more parts than there are experts of a token; with
 * groups they are fewer. */
START_TEST(visits_are_bounded)
{
    const struct dl_routing anywhere = {256, 8, 1, 1}, limited = {256, 8, 8, 4};
    ck_assert_double_eq_tol(dl_routing_visits(&anywhere, 256), 8, exactly);
    ck_assert_double_eq_tol(dl_routing_visits(&limited, 256), 8, exactly);
    for (double parts = 1; parts <= 256; parts++) {
        const double a = dl_routing_visits(&anywhere, parts), b = dl_routing_visits(&limited, parts);
        ck_assert(b <= a + exactly && a <= fmin(parts, anywhere.top_k) + exactly && b >= 1 - exactly);
        if (parts <= limited.groups && fmod(limited.groups, parts) == 0) ck_assert_double_le(b, limited.top_groups);
    }
    ck_assert_double_eq_tol(dl_routing_visits(&anywhere, 1), 1, exactly);
    ck_assert_double_eq_tol(dl_routing_visits(&limited, 1), 1, exactly);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("routing");
    tcase_add_test(tests, visits_are_those_of_all_choices);
    tcase_add_test(tests, visits_are_bounded);
    Suite *const suite = suite_create("routing");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
