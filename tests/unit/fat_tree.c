/* Fat trees and rails: what their routing promises about load, and what is built. */
#include <math.h>

#include "tests/unit/network_text.h"
#include "tests/unit/suite.h"

static const double tolerance = 1e-9;

/* Full bisection: each switch has as many cables up as down, and every place is taken. */
static const struct shape full_trees[] = {
    {"fat_tree", 16, 1, "'children':[4,4],'parents':[1,4]"},
    {"fat_tree", 24, 1, "'children':[4,6],'parents':[1,2],'cables':[1,2]"},
    {"fat_tree", 36, 1, "'children':[3,3,4],'parents':[1,3,3]"},
    {"fat_tree", 64, 1, "'children':[4,4,4],'parents':[1,4,4]"},
    {"fat_tree", 32, 1, "'children':[4,2,4],'parents':[1,2,2],'cables':[1,2,2]"},
    {"fat_tree", 8, 2, "'children':[2,2,2,2],'parents':[1,2,2,2]"},
};

static double largest(const double *values, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++) most = fmax(most, values[i]);
    return most;
}

/* The theorem of Zahavi's paper: on a full tree D-mod-K sends no two flows of a shift permutation over one link. */
START_TEST(dmodk_keeps_shifts_apart)
{
    struct network_fixture n;
    network_open(&n, &full_trees[_i]);
    double *const load = dl_alloc(n.net->n_links * sizeof *load);
    for (uint32_t shift = 1; shift < n.net->n_endpoints; shift++) {
        memset(load, 0, n.net->n_links * sizeof *load);
        for (uint32_t from = 0; from < n.net->n_endpoints; from++) {
            const struct dl_route *const r = find_route(&n, from, (from + shift) % n.net->n_endpoints, 0, NULL);
            for (size_t i = 0; i < r->n_hops; i++) load[r->hops[i].link - n.net->first_link]++;
        }
        if (largest(load, n.net->n_links) > 1) ck_abort_msg("flows of shift %u meet", shift);
    }
    ck_assert_uint_gt(n.net->n_endpoints, 1);
    dl_free(load);
    network_close(&n);
}
END_TEST

/* Links down to one destination: odd numbers; one for each level, whoever sends. */
START_TEST(dmodk_has_one_way_down_to_a_destination)
{
    struct network_fixture n;
    network_open(&n, &full_trees[_i]);
    bool *const used = dl_alloc(n.net->n_links * sizeof *used);
    for (uint32_t to = 0; to < n.net->n_endpoints; to++) {
        memset(used, 0, n.net->n_links * sizeof *used);
        size_t n_used = 0, n_levels = 0;
        for (uint32_t from = 0; from < n.net->n_endpoints; from++) {
            if (from == to) continue;
            const struct dl_route *const r = find_route(&n, from, to, from, NULL);
            if (r->n_hops / 2 > n_levels) n_levels = r->n_hops / 2;
            for (size_t i = r->n_hops / 2; i < r->n_hops; i++) {
                const uint32_t link = r->hops[i].link - n.net->first_link;
                n_used += !used[link];
                used[link] = true;
            }
        }
        ck_assert_uint_eq(n_used, n_levels);
    }
    dl_free(used);
    network_close(&n);
}
END_TEST

/* Times of an all-to-all, two ways: folded links with spraying, single links with D-mod-K, which on a full tree spreads
 * all-to-all traffic evenly. */
START_TEST(spraying_over_folded_links_is_as_fast_as_even_single_links)
{
    struct network_fixture single, folded;
    char options[256];
    struct shape sprayed = full_trees[_i];
    snprintf(options, sizeof options, "%s,'routing':'spray'", sprayed.options);
    sprayed.options = options;
    network_open(&single, &full_trees[_i]);
    network_open(&folded, &sprayed);
    double time_s[2] = {0};
    struct network_fixture *const both[] = {&single, &folded};
    for (int i = 0; i < 2; i++) {
        const struct dl_network *const net = both[i]->net;
        double *const load = load_of_all_to_all(both[i]);
        for (uint32_t l = 0; l < net->n_links; l++)
            time_s[i] = fmax(time_s[i], load[l] / both[i]->t->links[net->first_link + l].bandwidth_bytes_per_s);
        dl_free(load);
    }
    ck_assert_double_eq_tol(time_s[0], time_s[1], tolerance * time_s[0]);
    ck_assert_uint_le(folded.net->n_links, single.net->n_links);
    network_close(&folded);
    network_close(&single);
}
END_TEST

static double bandwidth_between_levels(const struct network_fixture *n, const char *from, const char *to)
{
    double sum = 0;
    for (uint32_t l = 0; l < n->net->n_links; l++) {
        char source[end_bytes], target[end_bytes];
        ends_of_link(n->net, l, source, target);
        if (strncmp(source, from, strlen(from)) || strncmp(target, to, strlen(to))) continue;
        sum += n->t->links[n->net->first_link + l].bandwidth_bytes_per_s;
    }
    return sum;
}

/* Leaves x parents x cables x bandwidth, folded or not. */
START_TEST(taper_follows_parents_cables_and_bandwidth)
{
    static const char *const routings[] = {"dmodk", "ecmp", "spray"};
    struct network_fixture n;
    char options[256];
    snprintf(options, sizeof options,
             "'children':[8,4,2],'parents':[1,3,2],'cables':[1,2,3],'uplink_bandwidth_bytes_per_s':[50e9,100e9],"
             "'routing':'%s'",
             routings[_i]);
    network_open(&n, &(struct shape){"fat_tree", 64, 1, options});
    ck_assert_double_eq(bandwidth_between_levels(&n, "node", "leaf"), 64 * 25e9);
    ck_assert_double_eq(bandwidth_between_levels(&n, "leaf", "spine"), 8 * 3 * 2 * 50e9);
    ck_assert_double_eq(bandwidth_between_levels(&n, "spine", "leaf"), 8 * 3 * 2 * 50e9);
    ck_assert_double_eq(bandwidth_between_levels(&n, "spine", "core"), (2 * 3) * 2 * 3 * 100e9);
    ck_assert_double_eq(bandwidth_between_levels(&n, "core", "spine"), (2 * 3) * 2 * 3 * 100e9);
    network_close(&n);
}
END_TEST

START_TEST(ecmp_uses_all_ways_alike)
{
    enum { n_keys = 8000, n_ways = 8 }; /* 4 spines, 2 cables to each */
    struct network_fixture n;
    network_open(
        &n, &(struct shape){"fat_tree", 16, 1, "'children':[8,2],'parents':[1,4],'cables':[1,2],'routing':'ecmp'"});
    uint32_t taken[n_ways] = {0};
    uint32_t first = UINT32_MAX;
    for (uint64_t key = 0; key < n_keys; key++) {
        const uint32_t up = find_route(&n, 0, 8, key, NULL)->hops[1].link;
        if (up < first) first = up;
    }
    for (uint64_t key = 0; key < n_keys; key++) {
        const uint32_t way = (find_route(&n, 0, 8, key, NULL)->hops[1].link - first) / 2;
        ck_assert_uint_lt(way, n_ways);
        taken[way]++;
    }
    const double mean = (double)n_keys / n_ways, deviation = sqrt(mean * (1 - 1.0 / n_ways));
    for (int i = 0; i < n_ways; i++) ck_assert_double_lt(fabs(taken[i] - mean), 5 * deviation);
    network_close(&n);
}
END_TEST

/* Each part of a message takes its own way: all of it leaves and arrives, and ways up are as even as dice would be. */
START_TEST(flows_go_their_own_ways)
{
    enum { n_flows = 16, n_ways = 4, n_pairs = 400 };
    struct network_fixture n;
    network_open(&n,
                 &(struct shape){"fat_tree", 16, 1, "'children':[8,2],'parents':[1,4],'routing':'ecmp','flows':16"});
    double squares = 0;
    for (uint64_t key = 0; key < n_pairs; key++) {
        const struct dl_route *const route = find_route(&n, 0, 8, key, NULL);
        double up[n_ways] = {0}, all = 0;
        ck_assert_double_eq(route->hops[0].weight, 1);
        for (size_t i = 0, way = 0; i < route->n_hops; i++) {
            const double flows = route->hops[i].weight * n_flows;
            ck_assert_double_eq(flows, round(flows));
            char from[end_bytes], to[end_bytes];
            ends_of_link(n.net, route->hops[i].link - n.net->first_link, from, to);
            if (strncmp(from, "leaf", 4) || strncmp(to, "spine", 5)) continue;
            ck_assert_uint_lt(way, n_ways);
            up[way++] = flows;
            all += flows;
        }
        ck_assert_double_eq(all, n_flows);
        for (int i = 0; i < n_ways; i++) squares += pow(up[i] - (double)n_flows / n_ways, 2);
    }
    const double variance = n_flows * (1.0 / n_ways) * (1 - 1.0 / n_ways); /* binomial */
    ck_assert_double_eq_tol(squares / (n_pairs * n_ways), variance, 0.1 * variance);
    network_close(&n);
}
END_TEST

/* 560 nodes x 8 NICs in a tree with room for 16,384: 140 leaves of 32, 3 pods of 64 leaves. */
START_TEST(only_what_the_endpoints_need_is_built)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"fat_tree", 560, 8, "'children':[32,64,8],'parents':[1,16,4]"});
    const uint32_t endpoints = 560 * 8, leaves = endpoints / 32, pods = 3;
    ck_assert_uint_eq(n.net->n_links, 2 * (endpoints + leaves * 16 + pods * 16 * 4));
    network_close(&n);
    network_open(&n, &(struct shape){"fat_tree", 30, 1, "'children':[32,64,8],'parents':[1,16,4]"});
    ck_assert_uint_eq(n.net->n_links, 2 * 30);
    network_close(&n);
}
END_TEST

/* Within a pod the same NIC is one leaf away, another one two levels up; NICs with one number share a leaf. */
START_TEST(rails_join_equal_nics_of_a_pod)
{
    enum { pod = 4, nics = 8 };
    struct network_fixture n;
    network_open(&n, &(struct shape){"rails", 10, nics, "'children':[4,24],'parents':[1,4]"});
    for (uint32_t from = 0; from < n.net->n_endpoints; from++)
        for (uint32_t to = 0; to < n.net->n_endpoints; to++) {
            if (from == to) continue;
            const bool same_leaf = from / nics / pod == to / nics / pod && from % nics == to % nics;
            if (find_route(&n, from, to, 0, NULL)->n_hops != (same_leaf ? 2u : 4u))
                ck_abort_msg("from %u to %u", from, to);
        }
    char source[end_bytes], target[end_bytes];
    ends_of_link(n.net, 2 * (5 * nics + 3), source, target); /* node 5 is in the second pod */
    ck_assert_str_eq(source, "node5.device3");
    ck_assert_str_eq(target, "leaf11");
    network_close(&n);
}
END_TEST

int main(void)
{
    const int n_full = (int)DL_COUNT(full_trees);
    TCase *const tests = tcase_create("fat_tree");
    tcase_add_loop_test(tests, dmodk_keeps_shifts_apart, 0, n_full);
    tcase_add_loop_test(tests, dmodk_has_one_way_down_to_a_destination, 0, n_full);
    tcase_add_loop_test(tests, spraying_over_folded_links_is_as_fast_as_even_single_links, 0, n_full);
    tcase_add_loop_test(tests, taper_follows_parents_cables_and_bandwidth, 0, 3);
    tcase_add_test(tests, ecmp_uses_all_ways_alike);
    tcase_add_test(tests, flows_go_their_own_ways);
    tcase_add_test(tests, only_what_the_endpoints_need_is_built);
    tcase_add_test(tests, rails_join_equal_nics_of_a_pod);
    Suite *const suite = suite_create("fat_tree");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
