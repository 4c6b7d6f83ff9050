#include "tests/unit/system_text.h"
#include "tests/unit/suite.h"

static struct fixture f;
static struct dl_topology *t;
static struct dl_route route;

static void read_system(const char *text)
{
    fixture_open(&f, text);
    ck_assert_msg(!dl_topology_read(f.doc, f.arena, &t, &f.err), "%s", f.err.text);
}

static void close_system(void)
{
    dl_topology_free(t);
    dl_route_release(&route);
    fixture_close(&f);
}

static void find_route(uint32_t from, uint32_t to)
{
    ck_assert_msg(!dl_topology_route(t, from, to, 0, NULL, &route, &f.err), "%s", f.err.text);
}

#define SYSTEM(keys) "{'schema':'dlsim/system/1','source':'a test'," keys "}"
#define CROSSBAR                                                                                                       \
    "'network':{'kind':'crossbar','bandwidth_bytes_per_s':25e9,'latency_s':1e-6,'link':'ib-hdr','reduces':true}"
#define EIGHT(parts, more) "'node':{'device':'d','devices':8,'parts':[" parts "]" more "}"
#define PCIE_NICS ",'nics':" NICS("4", "['pcie0','pcie1','pcie2','pcie3']")
#define DGX SYSTEM("'nodes':3,'transport':'nccl'," EIGHT(NVSWITCH "," PCIE_TREE, PCIE_NICS) "," CROSSBAR)
#define XGMI_NICS ",'nics':" NICS("4", "['device1','device3','device5','device7']")
#define FRONTIER(nodes) SYSTEM("'nodes':" nodes "," EIGHT(XGMI_MESH, XGMI_NICS) "," CROSSBAR)
#define TORUS "'network':{'kind':'torus','dimensions':[4,2],'bandwidth_bytes_per_s':50e9,'latency_s':1e-6,'link':'ici'}"

START_TEST(a_system_has_its_nodes_devices_and_links)
{
    read_system(DGX);
    ck_assert_str_eq(t->name, "test");
    ck_assert_str_eq(t->transport, "nccl");
    ck_assert_uint_eq(t->n_nodes, 3);
    ck_assert_uint_eq(t->n_devices, 24);
    ck_assert_uint_eq(t->network.endpoints_per_node, 4);
    ck_assert_uint_eq(t->network.n_endpoints, 12);
    ck_assert(t->network.reduces);
    /* A node: 8 links to the NVSwitch, 8 + 4 + 1 of PCIe, 4 of NICs, each in both directions. */
    ck_assert_uint_eq(t->network.first_link, 3 * 2 * (8 + 8 + 4 + 1 + 4));
    ck_assert_uint_eq(t->n_links, t->network.first_link + t->network.n_links);
    for (size_t i = t->network.first_link; i < t->n_links; i++)
        ck_assert_str_eq(t->link_kinds[t->links[i].kind], "ib-hdr");
    close_system();
}
END_TEST

START_TEST(links_of_all_nodes_are_alike)
{
    read_system(DGX);
    const size_t per_node = 2 * t->node.n_edges;
    for (size_t i = 0; i < 3 * per_node; i++) {
        const struct dl_edge *const edge = &t->node.edges[i % per_node / 2];
        ck_assert_double_eq(t->links[i].bandwidth_bytes_per_s, edge->bandwidth_bytes_per_s);
        ck_assert_double_eq(t->links[i].latency_s, edge->latency_s);
        ck_assert_str_eq(t->link_kinds[t->links[i].kind], edge->link_kind);
    }
    close_system();
}
END_TEST

START_TEST(every_link_is_found_by_its_name)
{
    read_system(DGX);
    for (uint32_t link = 0; link < t->n_links; link++) {
        char name[128];
        dl_topology_link_name(t, link, name, sizeof name);
        ck_assert_uint_eq(dl_topology_find_link(t, name), link);
    }
    ck_assert_uint_eq(dl_topology_find_link(t, "node9: device0 -> nvswitch0"), UINT32_MAX);
    ck_assert_uint_eq(dl_topology_find_link(t, "node0: device0 -> device1"), UINT32_MAX);
    ck_assert_uint_eq(dl_topology_find_link(t, "node"), UINT32_MAX);
    close_system();
}
END_TEST

static void check_names(uint32_t from, uint32_t to, const char *const *names, size_t n)
{
    find_route(from, to);
    ck_assert_uint_eq(route.n_hops, n);
    for (size_t i = 0; i < n; i++) {
        char name[128];
        dl_topology_link_name(t, route.hops[i].link, name, sizeof name);
        if (names[i]) ck_assert_str_eq(name, names[i]);
    }
}

START_TEST(routes_go_inside_the_node_or_from_nic_to_nic)
{
    static const char *const inside[] = {"node1: device2 -> nvswitch0", "node1: nvswitch0 -> device7"};
    static const char *const across[] = {
        "node0: device3 -> pcie1", "node0: pcie1 -> nic1",    NULL, NULL,
        "node2: nic2 -> pcie2",    "node2: pcie2 -> device4",
    };
    read_system(DGX);
    check_names(8 + 2, 8 + 7, inside, DL_COUNT(inside));
    ck_assert_int_eq(route.reach, DL_REACH_DIRECT);
    check_names(3, 16 + 4, across, DL_COUNT(across));
    ck_assert_int_eq(route.reach, DL_REACH_NETWORK);
    ck_assert_double_eq_tol(route.latency_s, 2 * (3e-7 + 4e-7) + 2 * 1e-6, 1e-18);
    close_system();
}
END_TEST

/* Over PCIe where NVLink has failed, over the NIC of a neighbour where the own one has, at either end. */
START_TEST(failures_at_a_device_are_gone_around)
{
    static const struct {
        const char *failed;
        uint32_t from, to;
        const char *ways[8];
    } cases[] = {
        {"node0: device0 -> nvswitch0", 0, 1, {"node0: device0 -> pcie0", "node0: pcie0 -> device1"}},
        {"node0: pcie1 -> nic1",
         3,
         20,
         {"node0: device3 -> pcie1", "node0: pcie1 -> socket0", "node0: socket0 -> pcie0", "node0: pcie0 -> nic0",
          "node0.nic0 -> switch", "switch -> node2.nic2", "node2: nic2 -> pcie2", "node2: pcie2 -> device4"}},
        {"switch -> node2.nic2",
         3,
         20,
         {"node0: device3 -> pcie1", "node0: pcie1 -> nic1", "node0.nic1 -> switch", "switch -> node2.nic3",
          "node2: nic3 -> pcie3", "node2: pcie3 -> socket1", "node2: socket1 -> pcie2", "node2: pcie2 -> device4"}},
    };
    read_system(DGX);
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        size_t n = 0;
        while (n < DL_COUNT(cases[i].ways) && cases[i].ways[n]) n++;
        dl_condition_set(t->condition, t, dl_topology_find_link(t, cases[i].failed), 0);
        check_names(cases[i].from, cases[i].to, cases[i].ways, n);
        dl_condition_reset(t->condition);
    }
    close_system();
}
END_TEST

static const char *const systems[] = {
    DGX,
    FRONTIER("4"),
    SYSTEM("'nodes':8,'node':{'device':'tpu','devices':1}," TORUS),
    SYSTEM("'nodes':2,'node':{'device':'tpu','devices':4}," TORUS),
    SYSTEM(EIGHT(CUBE_MESH("") "," PCIE_TREE, "")),
};

static double sum_of_latencies(void)
{
    double latency_s = 0;
    for (size_t i = 0; i < route.n_hops; i++)
        latency_s += route.hops[i].weight * t->links[route.hops[i].link].latency_s;
    return latency_s;
}

static void check_each_link_is_listed_once(void)
{
    for (size_t i = 0; i < route.n_hops; i++)
        for (size_t j = 0; j < i; j++) ck_assert_uint_ne(route.hops[i].link, route.hops[j].link);
}

START_TEST(latency_is_the_weighted_sum_of_links_listed_once)
{
    read_system(systems[_i]);
    for (uint32_t from = 0; from < t->n_devices; from++)
        for (uint32_t to = 0; to < t->n_devices; to++) {
            if (from == to) continue;
            find_route(from, to);
            const size_t n_hops = route.n_hops;
            ck_assert_double_eq_tol(route.latency_s, sum_of_latencies(), 1e-18);
            check_each_link_is_listed_once();
            find_route(to, from);
            ck_assert_uint_eq(route.n_hops, n_hops);
        }
    close_system();
}
END_TEST

START_TEST(devices_without_parts_meet_over_the_network)
{
    read_system(systems[3]);
    ck_assert_uint_eq(t->network.n_endpoints, t->n_devices);
    find_route(0, 1);
    ck_assert_int_eq(route.reach, DL_REACH_NETWORK);
    close_system();
}
END_TEST

START_TEST(devices_apart_meet_over_nics_of_their_own)
{
    read_system(
        SYSTEM("'nodes':2,'node':{'device':'d','devices':2,'nics':" NICS("2", "['device0','device1']") "}," CROSSBAR));
    find_route(0, 1);
    ck_assert_uint_eq(route.n_hops, 4);
    ck_assert_int_eq(route.reach, DL_REACH_NETWORK);
    close_system();
}
END_TEST

START_TEST(an_unreachable_pair_is_named)
{
    read_system(SYSTEM(EIGHT(CUBE_MESH(""), "")));
    ck_assert_int_eq(dl_topology_route(t, 0, 5, 0, NULL, &route, &f.err), DL_IMPOSSIBLE);
    ck_assert_str_eq(f.err.text,
                     "test: no way from device 0 (node0: device0) to device 5 (node0: device5): join them by "
                     "a part, or let the mesh forward");
    close_system();
}
END_TEST

START_TEST(a_device_without_a_nic_is_named)
{
    read_system(SYSTEM("'nodes':2,'node':{'device':'d','devices':2,'nics':" NICS("1", "['device1']") "}," CROSSBAR));
    ck_assert_int_eq(dl_topology_route(t, 3, 0, 0, NULL, &route, &f.err), DL_IMPOSSIBLE);
    ck_assert_str_eq(f.err.text,
                     "test: no way from device 3 (node1: device1) to device 0 (node0: device0): a device has "
                     "no way to its NIC; join them by a part or let the mesh forward");
    f.err = (struct dl_error){0};
    ck_assert_int_eq(dl_topology_route(t, 0, 1, 0, NULL, &route, &f.err), DL_IMPOSSIBLE);
    f.err = (struct dl_error){0};
    find_route(3, 1);
    close_system();
}
END_TEST

START_TEST(seventy_five_thousand_devices_are_routed)
{
    read_system(FRONTIER("9408"));
    ck_assert_uint_eq(t->n_devices, 75264);
    ck_assert_uint_eq(t->n_links, 9408 * 2 * (12 + 4) + t->network.n_links);
    static const char *const names[] = {"node0: device0 -> device1", "node0: device1 -> nic0",      NULL, NULL,
                                        "node9407: nic3 -> device7", "node9407: device7 -> device6"};
    check_names(0, 75262, names, DL_COUNT(names));
    close_system();
}
END_TEST

START_TEST(routing_does_not_allocate_once_there_is_room)
{
    read_system(DGX);
    find_route(0, 23);
    const struct dl_hop *const hops = route.hops;
    for (uint32_t to = 1; to < t->n_devices; to++) find_route(0, to);
    ck_assert_ptr_eq(route.hops, hops);
    close_system();
}
END_TEST

static const struct {
    const char *text, *error;
} bad_systems[] = {
    {"{}", "test.json:/schema: must be \"dlsim/system/1\""},
    {SYSTEM("'node':{'device':'d','devices':1},'nods':2"), "test.json:/nods: unknown key, did you mean 'nodes'?"},
    {SYSTEM("'nodes':0," EIGHT("", "")), "test.json:/nodes: must be in [1, 2147483648], got 0"},
    {SYSTEM("'nodes':2," EIGHT("", "")),
     "test.json:/nodes: 2 nodes need the key 'network' to be joined by; without it there is 1 node"},
    {SYSTEM("'nodes':300000000," EIGHT("", "") "," CROSSBAR),
     "test.json:/nodes: 300000000 nodes of 8 devices and 0 NICs are more than 2^31 of them"},
    {SYSTEM("'nodes':10000000," EIGHT(NVSWITCH, "") "," CROSSBAR),
     "test.json:/nodes: 10000000 nodes of 16 links each are more than the 33554432 that dlsim keeps"},
    {SYSTEM(EIGHT("", "") ",'network':{'kind':'cross'}"),
     "test.json:/network/kind: must be one of crossbar, full_mesh, fat_tree, rails, dragonfly, torus, graph, got "
     "'cross'"},
    {SYSTEM(EIGHT("", "") ",'network':{'kind':'crossbar','reduce':true}"),
     "test.json:/network/reduce: unknown key, did you mean 'reduces'?"},
    {SYSTEM(EIGHT("", "") ",'network':{'kind':'crossbar'}"),
     "test.json:/network: needs the key 'bandwidth_bytes_per_s'"},
};

START_TEST(errors_name_the_place_and_what_would_be_right)
{
    fixture_open(&f, bad_systems[_i].text);
    ck_assert_int_ne(dl_topology_read(f.doc, f.arena, &t, &f.err), DL_OK);
    ck_assert_str_eq(f.err.text, bad_systems[_i].error);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("topology");
    TCase *const tests = tcase_create("topology");
    tcase_add_test(tests, a_system_has_its_nodes_devices_and_links);
    tcase_add_test(tests, links_of_all_nodes_are_alike);
    tcase_add_test(tests, every_link_is_found_by_its_name);
    tcase_add_test(tests, routes_go_inside_the_node_or_from_nic_to_nic);
    tcase_add_test(tests, failures_at_a_device_are_gone_around);
    tcase_add_loop_test(tests, latency_is_the_weighted_sum_of_links_listed_once, 0, DL_COUNT(systems));
    tcase_add_test(tests, devices_without_parts_meet_over_the_network);
    tcase_add_test(tests, devices_apart_meet_over_nics_of_their_own);
    tcase_add_test(tests, an_unreachable_pair_is_named);
    tcase_add_test(tests, a_device_without_a_nic_is_named);
    tcase_add_test(tests, seventy_five_thousand_devices_are_routed);
    tcase_add_test(tests, routing_does_not_allocate_once_there_is_room);
    tcase_add_loop_test(tests, errors_name_the_place_and_what_would_be_right, 0, DL_COUNT(bad_systems));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
