/* Tori: distances and loads against closed forms, twists against a search. */
#include <math.h>

#include "tests/unit/network_text.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-9;

/* Mean distance of two of n places chosen independently: on a ring n/4, or (n^2 - 1)/(4n) if n is odd; on a line
 * (n^2 - 1)/(3n). */
static double mean_along(int64_t n, bool wraps)
{
    const double size = (double)n;
    if (!wraps) return (size * size - 1) / (3 * size);
    return n % 2 ? (size * size - 1) / (4 * size) : size / 4;
}

static const struct {
    unsigned switches;
    const char *options;
    int n_dimensions;
    struct {
        int64_t size;
        bool wraps;
    } along[4];
} tori[] = {
    {9, "'dimensions':[9]", 1, {{9, true}}},
    {16, "'dimensions':[16]", 1, {{16, true}}},
    {64, "'dimensions':[4,4,4]", 3, {{4, true}, {4, true}, {4, true}}},
    {60, "'dimensions':[5,2,6]", 3, {{5, true}, {2, true}, {6, true}}},
    {60, "'dimensions':[5,2,6],'wrap':[false,true,false]", 3, {{5, false}, {2, true}, {6, false}}},
    {144, "'dimensions':[4,6,3,2],'wrap':[true,true,true,false]", 4, {{4, true}, {6, true}, {3, true}, {2, false}}},
};

START_TEST(mean_distance_matches_closed_form)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"torus", tori[_i].switches, 1, tori[_i].options});
    double sum = 0, wanted = 0;
    for (uint32_t from = 0; from < n.net->n_endpoints; from++)
        for (uint32_t to = 0; to < n.net->n_endpoints; to++)
            if (from != to) sum += hops_of(find_route(&n, from, to, 0, NULL));
    for (int d = 0; d < tori[_i].n_dimensions; d++)
        wanted += mean_along(tori[_i].along[d].size, tori[_i].along[d].wraps);
    const double n_pairs = (double)n.net->n_endpoints * n.net->n_endpoints;
    ck_assert_double_eq_tol(sum / n_pairs, wanted, tolerance * wanted);
    network_close(&n);
}
END_TEST

/* By symmetry every link of a ring dimension carries endpoints x mean distance / 2 of an all-to-all. */
START_TEST(uniform_traffic_loads_the_rings_of_a_dimension_evenly)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"torus", 120, 1, "'dimensions':[4,5,6]"});
    static const int64_t sizes[] = {4, 5, 6};
    double *const load = load_of_all_to_all(&n);
    ck_assert_uint_eq(n.net->n_links, 120 * 6);
    for (uint32_t l = 0; l < n.net->n_links; l++) {
        const double wanted = 120 * mean_along(sizes[l % 6 / 2], true) / 2;
        if (fabs(load[l] - wanted) > tolerance * wanted) ck_abort_msg("link %u carries %g, not %g", l, load[l], wanted);
    }
    dl_free(load);
    network_close(&n);
}
END_TEST

START_TEST(half_the_way_round_is_split)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"torus", 6, 1, "'dimensions':[6]"});
    const struct dl_route *const r = find_route(&n, 1, 4, 0, NULL);
    ck_assert_uint_eq(r->n_hops, 6);
    for (size_t i = 0; i < r->n_hops; i++) ck_assert_double_eq(r->hops[i].weight, 0.5);
    ck_assert_double_eq_tol(r->latency_s, 3e-6, 1e-18);
    network_close(&n);
}
END_TEST

static double mean_distance(struct network_fixture *n)
{
    double sum = 0;
    for (uint32_t from = 0; from < n->net->n_endpoints; from++)
        for (uint32_t to = 0; to < n->net->n_endpoints; to++)
            if (from != to) sum += hops_of(find_route(n, from, to, 0, NULL));
    return sum / ((double)n->net->n_endpoints * n->net->n_endpoints);
}

/* The reason to twist a k x 2k torus: it gets shorter, and its two dimensions equally loaded. */
START_TEST(a_twist_shortens_and_balances_an_oblong_torus)
{
    struct network_fixture plain, twisted;
    network_open(&plain, &(struct shape){"torus", 32, 1, "'dimensions':[4,8]"});
    network_open(&twisted, &(struct shape){"torus", 32, 1, "'dimensions':[4,8],'twist':4"});
    ck_assert_double_eq_tol(mean_distance(&plain), 4 / 4.0 + 8 / 4.0, tolerance);
    ck_assert_double_lt(mean_distance(&twisted), mean_distance(&plain));
    double most[2] = {0};
    struct network_fixture *const both[] = {&plain, &twisted};
    for (int i = 0; i < 2; i++) {
        double *const load = load_of_all_to_all(both[i]);
        for (uint32_t l = 0; l < both[i]->net->n_links; l++) most[i] = fmax(most[i], load[l]);
        dl_free(load);
    }
    ck_assert_double_lt(most[1], most[0]);
    network_close(&twisted);
    network_close(&plain);
}
END_TEST

START_TEST(going_round_a_twisted_dimension_shifts_the_next)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"torus", 32, 1, "'dimensions':[4,8],'twist':4"});
    char from[end_bytes], to[end_bytes];
    const uint32_t last_of_row_1 = 1 * 4 + 3, directions = 4;
    ends_of_link(n.net, last_of_row_1 * directions, from, to);
    ck_assert_str_eq(from, "(3,1)");
    ck_assert_str_eq(to, "(0,5)");
    ck_assert_uint_eq(find_route(&n, 1 * 4 + 3, 5 * 4 + 0, 0, NULL)->n_hops, 1);
    network_close(&n);
}
END_TEST

/* With several endpoints a switch, each has links of its own, and they are the first of the dimensions. */
START_TEST(endpoints_of_one_switch_are_a_dimension)
{
    struct network_fixture n;
    const int64_t *sizes;
    network_open(&n, &(struct shape){"torus", 36, 1, "'dimensions':[3,4],'endpoints_per_switch':3"});
    ck_assert_uint_eq(n.net->n_links, 2 * 36 + 12 * 4);
    ck_assert_uint_eq(n.net->kind->dimensions(n.net, &sizes), 3);
    ck_assert_int_eq(sizes[0], 3);
    ck_assert_int_eq(sizes[1], 3);
    ck_assert_int_eq(sizes[2], 4);
    ck_assert_uint_eq(find_route(&n, 0, 2, 0, NULL)->n_hops, 2);
    ck_assert_uint_eq(find_route(&n, 0, 3, 0, NULL)->n_hops, 3);
    network_close(&n);
}
END_TEST

/* TofuD: a node has 2 links along each ring and 1 along each line of two. */
START_TEST(fugaku_has_ten_links_a_node)
{
    struct network_fixture n;
    const int64_t *sizes;
    network_open(&n, &(struct shape){"torus", 158976, 1,
                                     "'dimensions':[24,23,24,2,3,2],'wrap':[true,true,true,false,true,false]"});
    ck_assert_uint_eq(n.net->n_links, 158976u * 10);
    ck_assert_uint_eq(n.net->kind->dimensions(n.net, &sizes), 6);
    const uint32_t farthest = ((12 * 23 + 11) * 24 + 12) + 24 * 23 * 24 * (1 + 2 * (1 + 3 * 1));
    ck_assert_double_eq_tol(hops_of(find_route(&n, 0, farthest, 0, NULL)), 12 + 11 + 12 + 1 + 1 + 1, tolerance);
    network_close(&n);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("torus");
    tcase_add_loop_test(tests, mean_distance_matches_closed_form, 0, (int)DL_COUNT(tori));
    tcase_add_test(tests, uniform_traffic_loads_the_rings_of_a_dimension_evenly);
    tcase_add_test(tests, half_the_way_round_is_split);
    tcase_add_test(tests, a_twist_shortens_and_balances_an_oblong_torus);
    tcase_add_test(tests, going_round_a_twisted_dimension_shifts_the_next);
    tcase_add_test(tests, endpoints_of_one_switch_are_a_dimension);
    tcase_add_test(tests, fugaku_has_ten_links_a_node);
    Suite *const suite = suite_create("torus");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
