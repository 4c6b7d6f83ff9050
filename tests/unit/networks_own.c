/* networks_own.c - what only some kinds of networks have: refusals, and graphs with links of their own. */
#include <math.h>

#include "tests/unit/network_text.h"
#include "tests/unit/suite.h"

static const struct {
    struct shape shape;
    const char *message;
} refused[] = {
    {{"full_mesh", 2049, 1, ""}, "/network: a full_mesh may have at most 2048 endpoints, here are 2049"},
    {{"fat_tree", 17, 1, "'children':[4,4],'parents':[1,4]"},
     "/network: has room for 16 endpoints, but 17 nodes with 1 each need 17; raise 'children'"},
    {{"fat_tree", 4, 1, "'children':[4,4],'parents':[1]"},
     "/network: 'parents' must have 2 items for the levels of 'children', got 1"},
    {{"fat_tree", 4, 1, "'children':[],'parents':[]"}, "/network: 'children' must have 1 to 16 levels, got 0"},
    {{"fat_tree", 4, 1, "'children':[4,4],'parents':[1,4],'uplink_bandwidth_bytes_per_s':[true]"},
     "/network/uplink_bandwidth_bytes_per_s/0: must be a number of at least 1 byte per second"},
    {{"fat_tree", 4, 1, "'children':[4,4],'parents':[1,4],'flows':4"},
     "/network: 'flows' are of routing ecmp, got dmodk; leave one of both out"},
    {{"fat_tree", 9, 1, "'children':[4,9],'parents':[1000000,1000000]"},
     "/network: would have 6000018000000 links, at most 67108864 are possible"},
    {{"rails", 9, 8, "'children':[4,16],'parents':[1,4]"},
     "/network: has room for 64 endpoints, but 9 nodes with 8 each need 96; raise 'children'"},
    {{"dragonfly", 9, 1, "'groups':2,'nodes_per_group':4,'switches_per_group':2,'links_per_group_pair':1"},
     "/network: has room for 8 endpoints, but 9 nodes with 1 each need 9; raise 'groups' or 'nodes_per_group'"},
    {{"dragonfly", 8, 1,
      "'groups':2,'nodes_per_group':4,'switches_per_group':6,'links_per_group_pair':1,"
      "'local':'grid','grid':[2,2]"},
     "/network: 'grid' must be [columns, rows] with 6 switches in all, as switches_per_group says"},
    {{"dragonfly", 8, 1, "'groups':2,'nodes_per_group':4,'switches_per_group':6,'links_per_group_pair':1,'spines':2"},
     "/network: 'spines' and local 'leaf_spine' go together: give both or neither"},
    {{"torus", 9, 1, "'dimensions':[2,4]"},
     "/network: has room for 8 endpoints, but 9 nodes with 1 each need 9; raise 'dimensions'"},
    {{"torus", 8, 1, "'dimensions':[2,4],'wrap':[true]"},
     "/network/wrap: must have 2 items, one for each of 'dimensions', got 1"},
    {{"torus", 8, 1, "'dimensions':[2,4],'slices':[{'dimensions':[2]}]"},
     "/network/slices/0: 'dimensions' must have 2 items, as the torus, got 1"},
    {{"torus", 8, 1, "'dimensions':[2,4],'slices':[{'dimensions':[2,2],'wrap':[true]}]"},
     "/network/slices/0/wrap: must have 2 items, one for each of 'dimensions', got 1"},
    {{"torus", 4, 2, "'dimensions':[2,4],'slices':[{'dimensions':[2,1]},{'dimensions':[1,3]}]"},
     "/network/slices/1: 3 devices are no whole number of nodes of 2"},
    {{"torus", 8, 1, "'dimensions':[2,4],'twist':1,'slices':[]"},
     "/network/slices: slices are for devices that are the torus themselves, without NICs, twist or other switches"},
    {{"torus", 8, 1, "'dimensions':[2,4],'twist':4"}, "/network: 'twist' must be less than dimension 1, 4, got 4"},
    {{"torus", 8, 1, "'dimensions':[8],'twist':1"}, "/network: 'twist' needs two dimensions of at least 2 that wrap"},
    {{"graph", 4000, 1, "'switches':97,'links':[]"}, "/network: a graph may have at most 4096 vertices, here are 4097"},
    {{"graph", 3, 1, "'links':[[0,1],[1,3]]"}, "/network/links/1: item 1 must be a vertex from 0 to 2"},
    {{"graph", 3, 1, "'links':[[0,1],[1,1]]"}, "/network/links/1: joins vertex 1 with itself"},
    {{"graph", 3, 1, "'links':[[0,1,1e9]]"},
     "/network/links/0: must be [a, b] or [a, b, bandwidth_bytes_per_s, latency_s]"},
    {{"graph", 3, 1, "'links':[[0,1,0,1e-6]]"}, "/network/links/0: item 2 must be a number in [1, 1e+18]"},
};

START_TEST(what_cannot_be_is_refused_by_place_and_remedy)
{
    struct network_fixture n;
    ck_assert(network_try_open(&n, &refused[_i].shape) != DL_OK);
    ck_assert_str_eq(strchr(n.f.err.text, '/'), refused[_i].message);
    network_close(&n);
}
END_TEST

START_TEST(an_unreachable_pair_is_named)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"graph", 4, 1, "'links':[[0,1],[2,3]]"});
    ck_assert_uint_eq(find_route(&n, 0, 1, 0, NULL)->n_hops, 1);
    ck_assert_int_eq(n.net->kind->route(n.net, 1, 2, 0, NULL, &n.route, &n.f.err), DL_IMPOSSIBLE);
    ck_assert_str_eq(strchr(n.f.err.text, '/'), "/network: no way from vertex 1 (node1.device0) to vertex 2 "
                                                "(node2.device0): 'links' must join them");
    network_close(&n);
}
END_TEST

START_TEST(equal_ways_of_a_graph_are_shared_by_hash)
{
    enum { n_keys = 4000, n_ways = 4 };
    struct network_fixture n;
    network_open(
        &n, &(struct shape){"graph", 2, 1, "'switches':4,'links':[[0,2],[0,3],[0,4],[0,5],[1,2],[1,3],[1,4],[1,5]]"});
    int taken[n_ways] = {0};
    for (uint64_t key = 0; key < n_keys; key++)
        taken[(find_route(&n, 0, 1, key, NULL)->hops[0].link - n.net->first_link) / 2]++;
    const double mean = (double)n_keys / n_ways, deviation = sqrt(mean * (1 - 1.0 / n_ways));
    for (int i = 0; i < n_ways; i++) ck_assert_double_lt(fabs(taken[i] - mean), 5 * deviation);
    network_close(&n);
}
END_TEST

START_TEST(links_of_a_graph_may_have_their_own_figures)
{
    struct network_fixture n;
    network_open(&n, &(struct shape){"graph", 3, 1, "'links':[[0,1],[1,2,5e9,3e-6]]"});
    const struct dl_route *const r = find_route(&n, 0, 2, 0, NULL);
    ck_assert_uint_eq(r->n_hops, 2);
    ck_assert_double_eq(n.t->links[r->hops[0].link].bandwidth_bytes_per_s, 25e9);
    ck_assert_double_eq(n.t->links[r->hops[1].link].bandwidth_bytes_per_s, 5e9);
    ck_assert_double_eq_tol(r->latency_s, 1e-6 + 3e-6, 1e-18);
    network_close(&n);
}
END_TEST

int main(void)
{
    TCase *const own = tcase_create("own");
    tcase_add_loop_test(own, what_cannot_be_is_refused_by_place_and_remedy, 0, (int)DL_COUNT(refused));
    tcase_add_test(own, an_unreachable_pair_is_named);
    tcase_add_test(own, equal_ways_of_a_graph_are_shared_by_hash);
    tcase_add_test(own, links_of_a_graph_may_have_their_own_figures);
    Suite *const suite = suite_create("networks_own");
    suite_add_tcase(suite, own);
    return run_suite(suite);
}
