/* Dragonflies: how their links are dealt, and how routes spread over them. */
#include <math.h>

#include "tests/unit/network_text.h"
#include "tests/unit/suite.h"
#include "topologies/network_dragonfly.h"

static const double tolerance = 1e-9;

#define SLINGSHOT                                                                                                      \
    "'groups':10,'nodes_per_group':8,'switches_per_group':8,'links_per_group_pair':3,'nics_across_switches':true,"     \
    "'global_bandwidth_bytes_per_s':20e9,'local_latency_s':2e-6,'global_latency_s':3e-6"
#define ARIES                                                                                                          \
    "'groups':4,'nodes_per_group':24,'switches_per_group':12,'links_per_group_pair':5,'local':'grid','grid':[4,3]"
#define PLUS                                                                                                           \
    "'groups':5,'nodes_per_group':12,'switches_per_group':4,'links_per_group_pair':2,'local':'leaf_spine','spines':3"
#define FRONTIER                                                                                                       \
    "'groups':74,'nodes_per_group':128,'switches_per_group':32,'links_per_group_pair':4,'nics_across_switches':true"

/* The most links of a minimal route and of a detour, with those of the endpoints. */
static const struct {
    struct shape shape;
    double minimal, detour;
} bounds[] = {
    {{"dragonfly", 80, 4, SLINGSHOT}, 2 + 1 + 1 + 1, 2 + 1 + 1 + 1 + 1 + 1},
    {{"dragonfly", 96, 1, ARIES}, 2 + 2 + 1 + 2, 2 + 2 + 1 + 2 + 1 + 2},
    {{"dragonfly", 60, 1, PLUS}, 2 + 1 + 1 + 1, 2 + 1 + 1 + 2 + 1 + 1},
};

static void open_with(struct network_fixture *n, const struct shape *s, const char *routing)
{
    char options[512];
    snprintf(options, sizeof options, "%s,'routing':'%s'", s->options, routing);
    network_open(n, &(struct shape){s->kind, s->nodes, s->endpoints_per_node, options});
}

static double most_hops(struct network_fixture *n)
{
    double most = 0;
    for (uint32_t from = 0; from < n->net->n_endpoints; from += 3)
        for (uint32_t to = 0; to < n->net->n_endpoints; to++)
            if (from != to) most = fmax(most, hops_of(find_route(n, from, to, from ^ to, NULL)));
    return most;
}

START_TEST(routes_are_no_longer_than_the_diameter)
{
    struct network_fixture n;
    open_with(&n, &bounds[_i].shape, "minimal");
    ck_assert_double_le(most_hops(&n), bounds[_i].minimal + tolerance);
    network_close(&n);
    open_with(&n, &bounds[_i].shape, "valiant");
    ck_assert_double_le(most_hops(&n), bounds[_i].detour + tolerance);
    network_close(&n);
}
END_TEST

/* The group and the switch in it of "group3.switch5"; false for an endpoint. */
static bool read_switch(const char *name, unsigned *group, char *in_group)
{
    return sscanf(name, "group%u.%31s", group, in_group) == 2;
}

static bool is_global(const struct dl_network *net, uint32_t link, unsigned groups[2], char *gateway)
{
    char from[end_bytes], to[end_bytes], other[32];
    ends_of_link(net, link, from, to);
    return read_switch(from, &groups[0], gateway) && read_switch(to, &groups[1], other) && groups[0] != groups[1];
}

/* How many global links leave each gateway of a group; returns their sum. */
static uint32_t count_gateways(const struct dl_network *net, unsigned group, const char *format, uint32_t *count)
{
    uint32_t n_links = 0;
    for (uint32_t l = 0; l < net->n_links; l++) {
        unsigned groups[2], index;
        char gateway[32];
        if (!is_global(net, l, groups, gateway) || groups[0] != group) continue;
        if (sscanf(gateway, format, &index) != 1) ck_abort_msg("'%s' must not hold global links", gateway);
        count[index]++;
        n_links++;
    }
    return n_links;
}

static void check_even(const struct shape *s, const char *format, uint32_t n_gateways, uint32_t n_groups,
                       uint32_t per_pair)
{
    struct network_fixture n;
    network_open(&n, s);
    for (unsigned group = 0; group < n_groups; group++) {
        uint32_t count[64] = {0}, least = UINT32_MAX, most = 0;
        ck_assert_uint_eq(count_gateways(n.net, group, format, count), (n_groups - 1) * per_pair);
        for (uint32_t i = 0; i < n_gateways; i++) {
            least = count[i] < least ? count[i] : least;
            most = count[i] > most ? count[i] : most;
        }
        ck_assert_uint_le(most - least, 1);
    }
    network_close(&n);
}

START_TEST(global_links_are_dealt_evenly)
{
    check_even(&bounds[0].shape, "switch%u", 8, 10, 3);
    check_even(&bounds[1].shape, "switch%u", 12, 4, 5);
    check_even(&bounds[2].shape, "spine%u", 3, 5, 2);
}
END_TEST

/* Halves of g/2 groups are joined by (g/2)^2 pairs. */
START_TEST(bisection_bandwidth_matches_the_count_of_pairs)
{
    struct network_fixture n;
    network_open(&n, &bounds[0].shape);
    double sum = 0;
    for (uint32_t l = 0; l < n.net->n_links; l++) {
        unsigned groups[2];
        char gateway[32];
        if (is_global(n.net, l, groups, gateway) && groups[0] < 5 && groups[1] >= 5)
            sum += n.t->links[n.net->first_link + l].bandwidth_bytes_per_s;
    }
    ck_assert_double_eq(sum, 5 * 5 * 3 * 20e9);
    network_close(&n);
}
END_TEST

/* All-to-all traffic under minimal routing: a global link carries (endpoints of a group)^2 / links of a pair. */
START_TEST(minimal_routing_loads_global_links_evenly)
{
    struct network_fixture n;
    open_with(&n, &bounds[_i].shape, "minimal");
    static const double endpoints[] = {8 * 4, 24, 12}, links[] = {3, 5, 2};
    const double wanted = endpoints[_i] * endpoints[_i] / links[_i];
    double *const load = load_of_all_to_all(&n);
    uint32_t n_global = 0;
    for (uint32_t l = 0; l < n.net->n_links; l++) {
        unsigned groups[2];
        char gateway[32];
        if (!is_global(n.net, l, groups, gateway)) continue;
        if (fabs(load[l] - wanted) > tolerance * wanted) ck_abort_msg("link %u carries %g, not %g", l, load[l], wanted);
        n_global++;
    }
    ck_assert_uint_gt(n_global, 0);
    dl_free(load);
    network_close(&n);
}
END_TEST

/* 16 endpoints on each of 32 switches, the four NICs of a node on four of them. */
START_TEST(frontier_has_sixteen_endpoints_a_switch)
{
    enum { n_groups = 74, n_switches = 32, n_nics = 4, n_nodes = 9408, nodes_per_group = 128 };
    struct network_fixture n;
    network_open(&n, &(struct shape){"dragonfly", n_nodes, n_nics, FRONTIER});
    const uint32_t local = n_groups * n_switches * (n_switches - 1), global = n_groups * (n_groups - 1) * 4;
    ck_assert_uint_eq(n.net->n_links, 2 * n_nodes * n_nics + local + global);
    uint32_t count[n_groups][n_switches] = {{0}}, n_shared = 0;
    for (uint32_t node = 0; node < n_nodes; node++) {
        uint32_t on_node = 0;
        for (uint32_t nic = 0; nic < n_nics; nic++) {
            char from[end_bytes], to[end_bytes];
            unsigned group = n_groups, index = n_switches;
            ends_of_link(n.net, 2 * (node * n_nics + nic), from, to);
            if (sscanf(to, "group%u.switch%u", &group, &index) != 2) ck_abort_msg("what is '%s'?", to);
            count[group][index]++;
            n_shared += on_node >> index & 1;
            on_node |= 1u << index;
        }
    }
    ck_assert_uint_eq(n_shared, 0);
    for (uint32_t i = 0; i < n_nodes / nodes_per_group * n_switches; i++)
        if (count[i / n_switches][i % n_switches] != nodes_per_group * n_nics / n_switches)
            ck_abort_msg("group %u, switch %u", i / n_switches, i % n_switches);
    network_close(&n);
}
END_TEST

/* Each of the 8 other groups is one of 4 detours for half of the keys. */
START_TEST(valiant_takes_all_groups_alike)
{
    enum { n_keys = 2000, n_groups = 10 };
    struct network_fixture n;
    open_with(&n, &bounds[0].shape, "valiant");
    double carried[n_groups] = {0};
    for (uint64_t key = 0; key < n_keys; key++) {
        const struct dl_route *const r = find_route(&n, 0, 4 * 8 * 3 + 1, key, NULL);
        for (size_t i = 0; i < r->n_hops; i++) {
            unsigned groups[2];
            char gateway[32];
            if (is_global(n.net, r->hops[i].link - n.net->first_link, groups, gateway) && groups[0] == 0)
                carried[groups[1]] += r->hops[i].weight;
        }
    }
    const double mean = n_keys / 8.0, deviation = 0.25 * sqrt(n_keys * 0.5 * 0.5);
    for (int g = 0; g < n_groups; g++) {
        const double wanted = g == 0 || g == 3 ? 0 : mean;
        ck_assert_double_lt(fabs(carried[g] - wanted), 5 * deviation);
        if (wanted == 0) ck_assert_double_eq(carried[g], 0);
    }
    network_close(&n);
}
END_TEST

/* A network whose links from one vertex to another are in use. */
struct use {
    const struct dl_network *net;
    const char *from, *to; /* beginnings of names */
    double share;
};

static double wanted_bytes_per_s(void *user, uint32_t link)
{
    const struct use *const u = user;
    char from[end_bytes], to[end_bytes];
    ends_of_link(u->net, link - u->net->first_link, from, to);
    if (strncmp(from, u->from, strlen(u->from)) || strncmp(to, u->to, strlen(u->to))) return 0;
    return u->share * u->net->topology->links[link].bandwidth_bytes_per_s;
}

/* The part of a route that crosses links from one to the other. */
static double part_over(const struct network_fixture *n, const struct dl_route *r, const char *from_name,
                        const char *to_name)
{
    double sum = 0;
    for (size_t i = 0; i < r->n_hops; i++) {
        char from[end_bytes], to[end_bytes];
        ends_of_link(n->net, r->hops[i].link - n->net->first_link, from, to);
        if (!strncmp(from, from_name, strlen(from_name)) && !strncmp(to, to_name, strlen(to_name)))
            sum += r->hops[i].weight;
    }
    return sum;
}

START_TEST(an_idle_network_is_crossed_the_minimal_way)
{
    struct network_fixture adaptive, minimal;
    open_with(&adaptive, &bounds[_i].shape, "adaptive");
    open_with(&minimal, &bounds[_i].shape, "minimal");
    struct use idle = {.net = adaptive.net, .from = "", .to = ""};
    const struct dl_load load = {.wanted_bytes_per_s = wanted_bytes_per_s, .user = &idle};
    for (uint32_t to = 1; to < minimal.net->n_endpoints; to++) {
        const struct dl_route *const wanted = find_route(&minimal, 0, to, 0, NULL);
        const struct dl_route *const found = find_route(&adaptive, 0, to, 0, to % 2 ? &load : NULL);
        bool same = found->n_hops == wanted->n_hops;
        for (size_t i = 0; same && i < found->n_hops; i++)
            same = found->hops[i].link == wanted->hops[i].link && found->hops[i].weight == wanted->hops[i].weight;
        if (!same) ck_abort_msg("to %u", to);
    }
    ck_assert(dl_network_reads_load(adaptive.net) && !dl_network_reads_load(minimal.net));
    network_close(&minimal);
    network_close(&adaptive);
}
END_TEST

/* With idle detours, what of a message is more than its global links have left. */
START_TEST(detours_take_what_a_used_way_leaves_over)
{
    struct network_fixture n;
    open_with(&n, &bounds[0].shape, "adaptive");
    struct use use = {.net = n.net, .from = "group0.", .to = "group3."};
    const double links_per_pair = 3, own = 25.0 / 20; /* what an endpoint sends over what a global link can carry */
    const struct dl_load load = {.wanted_bytes_per_s = wanted_bytes_per_s, .user = &use};
    for (use.share = 0; use.share <= 1; use.share += 0.125) {
        const struct dl_route *const r = find_route(&n, 0, 4 * 8 * 3 + 1, 5, &load);
        const double left = links_per_pair * (1 - use.share) / own;
        ck_assert_double_eq_tol(part_over(&n, r, "group0.", "group3."), fmin(left, 1), tolerance);
        ck_assert_double_eq_tol(r->hops[r->n_hops - 1].weight, 1, tolerance);
    }
    network_close(&n);
}
END_TEST

START_TEST(a_network_with_queues_everywhere_is_crossed_the_minimal_way)
{
    struct network_fixture n;
    open_with(&n, &bounds[0].shape, "adaptive");
    struct use use = {.net = n.net, .from = "group", .to = "group", .share = 2};
    const struct dl_load load = {.wanted_bytes_per_s = wanted_bytes_per_s, .user = &use};
    const struct dl_route *const r = find_route(&n, 0, 4 * 8 * 3 + 1, 5, &load);
    ck_assert_double_eq_tol(part_over(&n, r, "group0.", "group3."), 1, tolerance);
    network_close(&n);
}
END_TEST

/* Two of three links of a pair of groups fail: the third takes what it can, the detours the rest. */
START_TEST(failed_global_links_are_left_out)
{
    static const struct {
        const char *routing;
        double over_third;
    } cases[] = {{"minimal", 1}, {"adaptive", 20.0 / 25}, {"valiant", 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct network_fixture n;
        open_with(&n, &bounds[0].shape, cases[i].routing);
        for (uint32_t link = 0; link < n.net->n_links; link++) {
            char name[2 * end_bytes];
            n.net->kind->name_link(n.net, link, name, sizeof name);
            if (!strncmp(name, "group0.", 7) && strstr(name, "-> group3.") && !strstr(name, "#2"))
                dl_condition_set(n.t->condition, n.t, n.net->first_link + link, 0);
        }
        ck_assert_uint_eq(n.t->condition->n_failed, 2);
        const struct dl_route *const r = find_route(&n, 0, 4 * 8 * 3 + 1, 5, NULL);
        ck_assert(!dl_crosses_failed(n.t->condition, r));
        ck_assert_double_eq_tol(part_over(&n, r, "group0.", "group3."), cases[i].over_third, tolerance);
        network_close(&n);
    }
}
END_TEST

/* Routing that adapts gives a slow link its share, so that it ends together with the others; minimal routing is blind
 * to it. */
START_TEST(adaptive_routing_sees_slow_links)
{
    struct network_fixture adaptive, minimal;
    open_with(&adaptive, &bounds[0].shape, "adaptive");
    open_with(&minimal, &bounds[0].shape, "minimal");
    struct network_fixture *const both[] = {&adaptive, &minimal};
    for (size_t i = 0; i < DL_COUNT(both); i++) {
        const struct dl_network *const net = both[i]->net;
        const uint32_t first = dl_dragonfly_global_link(net->state, 0, 3, 0);
        dl_condition_set(both[i]->t->condition, both[i]->t, net->first_link + first, 0.5);
        const struct dl_route *const r = find_route(both[i], 0, 4 * 8 * 3 + 1, 5, NULL);
        double slow = 0, whole = 0;
        for (size_t k = 0; k < r->n_hops; k++) {
            if (r->hops[k].link == net->first_link + first) slow = r->hops[k].weight;
            if (r->hops[k].link == net->first_link + first + 1) whole = r->hops[k].weight;
        }
        ck_assert_double_eq_tol(slow / whole, i ? 1 : 0.5, tolerance);
        network_close(both[i]);
    }
}
END_TEST

START_TEST(a_full_local_link_is_avoided)
{
    struct network_fixture n;
    open_with(&n, &bounds[0].shape, "adaptive");
    struct use use = {.net = n.net, .from = "group0.switch0", .to = "group0.switch2", .share = 1};
    const struct dl_load load = {.wanted_bytes_per_s = wanted_bytes_per_s, .user = &use};
    ck_assert_double_eq(part_over(&n, find_route(&n, 0, 2, 5, NULL), use.from, use.to), 1);
    const struct dl_route *const r = find_route(&n, 0, 2, 5, &load);
    ck_assert_double_eq(part_over(&n, r, use.from, use.to), 0);
    ck_assert_double_eq_tol(hops_of(r), 2 + 2, tolerance);
    network_close(&n);
}
END_TEST

/* Up, local, global, local, down. One of the three global links leaves the source's own switch 0 (the links to the next
 * groups take switches 0-2, 3-5, 6-7 and 0), none arrives at the target's switch 1. */
START_TEST(each_kind_of_link_has_its_own_figures)
{
    struct network_fixture n;
    open_with(&n, &bounds[0].shape, "minimal");
    const struct dl_route *const r = find_route(&n, 0, 4 * 8 * 3 + 1, 0, NULL);
    const double local = 2.0 / 3 + 1;
    ck_assert_double_eq_tol(r->latency_s, 2 * 1e-6 + local * 2e-6 + 1 * 3e-6, 1e-15);
    network_close(&n);
}
END_TEST

int main(void)
{
    const int n_bounds = (int)DL_COUNT(bounds);
    TCase *const tests = tcase_create("dragonfly");
    tcase_add_loop_test(tests, routes_are_no_longer_than_the_diameter, 0, n_bounds);
    tcase_add_test(tests, global_links_are_dealt_evenly);
    tcase_add_test(tests, bisection_bandwidth_matches_the_count_of_pairs);
    tcase_add_loop_test(tests, minimal_routing_loads_global_links_evenly, 0, n_bounds);
    tcase_add_test(tests, frontier_has_sixteen_endpoints_a_switch);
    tcase_add_test(tests, valiant_takes_all_groups_alike);
    tcase_add_loop_test(tests, an_idle_network_is_crossed_the_minimal_way, 0, n_bounds);
    tcase_add_test(tests, detours_take_what_a_used_way_leaves_over);
    tcase_add_test(tests, a_network_with_queues_everywhere_is_crossed_the_minimal_way);
    tcase_add_test(tests, failed_global_links_are_left_out);
    tcase_add_test(tests, adaptive_routing_sees_slow_links);
    tcase_add_test(tests, a_full_local_link_is_avoided);
    tcase_add_test(tests, each_kind_of_link_has_its_own_figures);
    Suite *const suite = suite_create("dragonfly");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
