#include <math.h>
#include <stdlib.h>

#include "tests/unit/system_text.h"
#include "tests/unit/suite.h"
#include "topologies/interiors.h"

static struct fixture f;
static struct dl_node node;
static struct dl_route route;

static void read_node(const char *text)
{
    fixture_open(&f, text);
    ck_assert_msg(!dl_node_read(f.doc, &node, f.arena, &f.err), "%s", f.err.text);
}

static void close_node(void)
{
    dl_node_release(&node);
    dl_route_release(&route);
    fixture_close(&f);
}

#define NODE(parts) "{'device':'d','devices':8,'parts':[" parts "]}"
#define NODE_WITH_NICS(parts, nics) "{'device':'d','devices':8,'parts':[" parts "],'nics':" nics "}"

static const char *const connected_nodes[] = {
    NODE(CUBE_MESH("'forwards':true,")),
    NODE(CUBE_MESH("") "," PCIE_TREE),
    NODE_WITH_NICS(NVSWITCH "," PCIE_TREE, NICS("4", "['pcie0','pcie1','pcie2','pcie3']")),
    NODE_WITH_NICS(XGMI_MESH, NICS("4", "['device1','device3','device5','device7']")),
    "{'device':'core','devices':6,'parts':[{'kind':'pcie','sockets':3,'bandwidth_bytes_per_s':1e10,"
    "'socket_bandwidth_bytes_per_s':5e9,'socket_latency_s':1e-7,'latency_s':1e-7,'link':'memory'}]}",
};

static const struct dl_edge *edge_of(uint32_t link) { return &node.edges[link / 2]; }
static uint32_t source_of(uint32_t link) { return link % 2 ? edge_of(link)->b : edge_of(link)->a; }
static uint32_t target_of(uint32_t link) { return link % 2 ? edge_of(link)->a : edge_of(link)->b; }

static double cost_of(uint32_t link) { return edge_of(link)->latency_s + 1e6 / edge_of(link)->bandwidth_bytes_per_s; }

static double route_cost(void)
{
    double cost = 0;
    for (size_t i = 0; i < route.n_hops; i++) cost += cost_of(route.hops[i].link);
    return cost;
}

START_TEST(links_of_a_route_are_joined_end_to_end)
{
    read_node(connected_nodes[_i]);
    for (uint32_t from = 0; from < node.n_vertices; from++)
        for (uint32_t to = 0; to < node.n_vertices; to++) {
            if (node.vertices[from].kind == DL_HUB || node.vertices[to].kind == DL_HUB) continue;
            dl_route_clear(&route);
            ck_assert(dl_node_route(&node, from, to, 0, &route));
            uint32_t at = from;
            double latency_s = 0;
            for (size_t i = 0; i < route.n_hops; i++) {
                const uint32_t link = route.hops[i].link;
                ck_assert_uint_eq(source_of(link), at);
                ck_assert(i == 0 || node.vertices[at].forwards);
                ck_assert_double_eq(route.hops[i].weight, 1);
                latency_s += edge_of(link)->latency_s;
                at = target_of(link);
            }
            ck_assert_uint_eq(at, to);
            ck_assert_double_eq(route.latency_s, latency_s);
        }
    close_node();
}
END_TEST

/* The second way: Floyd and Warshall, over the vertices that forward. */
static double *all_costs(void)
{
    const size_t n = node.n_vertices;
    double *const cost = malloc(n * n * sizeof *cost);
    for (size_t i = 0; i < n * n; i++) cost[i] = i % (n + 1) ? INFINITY : 0;
    for (uint32_t link = 0; link < 2 * node.n_edges; link++)
        cost[source_of(link) * n + target_of(link)] = fmin(cost[source_of(link) * n + target_of(link)], cost_of(link));
    for (size_t k = 0; k < n; k++) {
        if (!node.vertices[k].forwards) continue;
        for (size_t i = 0; i < n * n; i++) cost[i] = fmin(cost[i], cost[i / n * n + k] + cost[k * n + i % n]);
    }
    return cost;
}

START_TEST(routes_are_the_cheapest_both_ways)
{
    read_node(connected_nodes[_i]);
    double *const cost = all_costs();
    for (uint32_t from = 0; from < node.n_vertices; from++)
        for (uint32_t to = 0; to < node.n_vertices; to++) {
            dl_route_clear(&route);
            const double cheapest = cost[from * node.n_vertices + to];
            ck_assert_int_eq(dl_node_route(&node, from, to, 0, &route), cheapest < INFINITY);
            if (cheapest == INFINITY) continue;
            const size_t n_hops = route.n_hops;
            ck_assert_double_eq_tol(route_cost(), cheapest, 1e-15);
            dl_route_clear(&route);
            dl_node_route(&node, to, from, 0, &route);
            ck_assert_uint_eq(route.n_hops, n_hops);
        }
    free(cost);
    close_node();
}
END_TEST

#define TORUS(sizes) "{'kind':'torus','lane_bytes_per_s':1e9,'latency_s':1e-6,'link':'x','dimensions':" sizes "}"

static uint32_t lanes_of(uint32_t device)
{
    uint32_t lanes = 0;
    for (size_t e = 0; e < node.n_edges; e++)
        if (node.edges[e].a == device || node.edges[e].b == device) lanes += node.edges[e].lanes;
    return lanes;
}

START_TEST(cube_mesh_has_six_lanes_a_device)
{
    read_node(NODE(CUBE_MESH("")));
    ck_assert_uint_eq(node.n_edges, 16);
    for (uint32_t device = 0; device < 8; device++) ck_assert_uint_eq(lanes_of(device), 6);
    for (size_t e = 0; e < node.n_edges; e++)
        ck_assert_double_eq(node.edges[e].bandwidth_bytes_per_s, node.edges[e].lanes * 25e9);
    close_node();
}
END_TEST

START_TEST(devices_forward_only_where_the_mesh_says_so)
{
    read_node(NODE(CUBE_MESH("")));
    ck_assert(!dl_node_route(&node, 0, 5, 0, &route));
    ck_assert_uint_eq(route.n_hops, 0);
    ck_assert(dl_node_route(&node, 0, 3, 0, &route));
    ck_assert_uint_eq(route.n_hops, 1);
    close_node();
    read_node(NODE(CUBE_MESH("'forwards':true,")));
    ck_assert(dl_node_route(&node, 0, 5, 0, &route));
    ck_assert_uint_eq(route.n_hops, 2);
    ck_assert_int_eq(route.reach, DL_REACH_DIRECT);
    close_node();
}
END_TEST

/* 2 x 4 devices: a ring of two has one link, one of four has four. */
START_TEST(a_torus_joins_neighbours_along_its_dimensions)
{
    read_node(NODE(TORUS("[2,4]")));
    ck_assert_uint_eq(node.n_edges, 4 * 1 + 2 * 4);
    for (uint32_t device = 0; device < 8; device++) ck_assert_uint_eq(lanes_of(device), 3);
    for (uint32_t device = 1; device < 8; device++) {
        const uint32_t along = device / 2 < 4 - device / 2 ? device / 2 : 4 - device / 2;
        dl_route_clear(&route);
        ck_assert(dl_node_route(&node, 0, device, 0, &route));
        ck_assert_uint_eq(route.n_hops, device % 2 + along);
    }
    close_node();
}
END_TEST

START_TEST(pcie_joins_what_the_mesh_leaves_apart)
{
    read_node(NODE(CUBE_MESH("") "," PCIE_TREE));
    ck_assert(dl_node_route(&node, 0, 5, 0, &route)); /* device, switch, socket, socket, switch, device */
    ck_assert_uint_eq(route.n_hops, 5);
    ck_assert_int_eq(route.reach, DL_REACH_PCIE);
    ck_assert_double_eq_tol(route.latency_s, 4 * 3e-7 + 5e-7, 1e-20);
    close_node();
}
END_TEST

START_TEST(pcie_deals_devices_to_switches_in_equal_parts)
{
    read_node(NODE(PCIE_TREE));
    for (uint32_t device = 0; device < 8; device++) {
        char hub[] = "pcie0", socket[] = "socket0";
        hub[4] += (char)(device / 2);
        socket[6] += (char)(device / 4);
        dl_route_clear(&route);
        dl_node_route(&node, device, dl_node_find(&node, socket), 0, &route);
        ck_assert_uint_eq(route.n_hops, 2);
        ck_assert_uint_eq(target_of(route.hops[0].link), dl_node_find(&node, hub));
    }
    close_node();
}
END_TEST

START_TEST(a_switch_joins_all_devices_in_two_hops)
{
    read_node(NODE(NVSWITCH "," PCIE_TREE));
    const uint32_t hub = dl_node_find(&node, "nvswitch0");
    ck_assert(node.vertices[hub].reduces);
    for (uint32_t to = 1; to < 8; to++) {
        dl_route_clear(&route);
        ck_assert(dl_node_route(&node, 0, to, 100, &route));
        ck_assert_uint_eq(route.n_hops, 2);
        ck_assert_uint_eq(target_of(route.hops[0].link - 100), hub);
        ck_assert_int_eq(route.reach, DL_REACH_DIRECT);
    }
    close_node();
}
END_TEST

START_TEST(hubs_of_one_kind_get_names_of_their_own)
{
    read_node(NODE(NVSWITCH "," NVSWITCH));
    ck_assert_uint_eq(dl_node_find(&node, "nvswitch0"), 8);
    ck_assert_uint_eq(dl_node_find(&node, "nvswitch1"), 9);
    ck_assert_uint_eq(dl_node_find(&node, "nvswitch2"), UINT32_MAX);
    for (uint32_t v = 0; v < node.n_vertices; v++) ck_assert_uint_eq(dl_node_find(&node, node.vertices[v].name), v);
    close_node();
}
END_TEST

static void check_affinity(const char *text, const uint32_t *nic)
{
    read_node(text);
    for (uint32_t device = 0; device < node.n_devices; device++)
        ck_assert_uint_eq(node.device_nic[device], nic[device]);
    close_node();
}

START_TEST(the_nearest_nic_serves_a_device)
{
    const uint32_t in_pairs[] = {0, 0, 1, 1, 2, 2, 3, 3}, reversed[] = {3, 3, 2, 2, 1, 1, 0, 0};
    check_affinity(NODE_WITH_NICS(XGMI_MESH, NICS("4", "['device1','device3','device5','device7']")), in_pairs);
    check_affinity(NODE_WITH_NICS(PCIE_TREE, NICS("4", "['pcie3','pcie2','pcie1','pcie0']")), reversed);
}
END_TEST

START_TEST(equally_near_nics_are_used_in_turn)
{
    const uint32_t one_switch[] = {0, 1, 0, 1, 2, 3, 2, 3};
    check_affinity(NODE_WITH_NICS(PCIE_TREE, NICS("4", "['socket0','socket0','socket1','socket1']")), one_switch);
}
END_TEST

START_TEST(a_given_affinity_is_kept)
{
    const uint32_t given[] = {1, 0, 1, 0, 1, 0, 1, 1};
    check_affinity(NODE_WITH_NICS(NVSWITCH, "{'count':2,'attach':['nvswitch0','device3'],'affinity':[1,0,1,0,1,0,1,1],"
                                            "'bandwidth_bytes_per_s':1,'latency_s':0,'link':'x'}"),
                   given);
}
END_TEST

START_TEST(a_device_that_reaches_no_nic_has_none)
{
    read_node("{'device':'d','devices':2,'nics':" NICS("1", "['device1']") "}");
    ck_assert_uint_eq(node.device_nic[0], UINT32_MAX);
    ck_assert_uint_eq(node.device_nic[1], 0);
    close_node();
}
END_TEST

/* 0 and 1 have a link of their own, slower than PCIe; the NIC is at 0's switch. */
#define SLOW_PAIR "{'kind':'mesh','lane_bytes_per_s':1e9,'latency_s':0,'link':'x','forwards':true,'pairs':[[0,1]]}"

START_TEST(devices_take_their_own_links_however_slow)
{
    read_node(NODE(SLOW_PAIR "," PCIE_TREE));
    ck_assert(dl_node_route(&node, 0, 1, 0, &route));
    ck_assert_uint_eq(route.n_hops, 1);
    ck_assert_int_eq(route.reach, DL_REACH_DIRECT);
    close_node();
}
END_TEST

#define FAST_PAIR "{'kind':'mesh','lane_bytes_per_s':1e12,'latency_s':0,'link':'x','forwards':true,'pairs':[[0,7]]}"

START_TEST(nothing_goes_through_a_device_on_its_way_to_a_nic)
{
    read_node(NODE_WITH_NICS(FAST_PAIR "," PCIE_TREE, NICS("1", "['pcie0']")));
    ck_assert(dl_node_route(&node, 7, node.nic_vertex[0], 0, &route));
    for (size_t i = 0; i < route.n_hops; i++) ck_assert_int_eq(edge_of(route.hops[i].link)->reach, DL_REACH_PCIE);
    close_node();
    read_node(NODE_WITH_NICS(FAST_PAIR, NICS("1", "['device0']"))); /* unless the NIC is a device's */
    ck_assert(dl_node_route(&node, 7, node.nic_vertex[0], 0, &route));
    ck_assert_uint_eq(route.n_hops, 2);
    close_node();
}
END_TEST

START_TEST(the_largest_node_can_be_routed)
{
    read_node("{'device':'d','devices':1023,'parts':[" NVSWITCH "]}");
    ck_assert(dl_node_route(&node, 0, 1022, 0, &route));
    ck_assert_uint_eq(route.n_hops, 2);
    close_node();
}
END_TEST

#define MESH(pairs) NODE("{'kind':'mesh','lane_bytes_per_s':1e9,'latency_s':0,'link':'x','pairs':" pairs "}")
#define PCIE(keys) NODE("{'kind':'pcie','bandwidth_bytes_per_s':1e9,'latency_s':0,'link':'x'," keys "}")

static const struct {
    const char *text, *error;
} bad_nodes[] = {
    {"{'device':'d','devices':0}", "test.json:/devices: must be in [1, 1024], got 0"},
    {NODE("3"), "test.json:/parts/0: must be an object, {...}"},
    {NODE("{'link':'x'}"), "test.json:/parts/0: needs the key 'kind'"},
    {NODE("{'kind':'swich'}"), "test.json:/parts/0/kind: must be one of switch, mesh, torus, pcie, got 'swich'"},
    {NODE(TORUS("[3,3]")), "test.json:/parts/0/dimensions: must multiply to the node's 8 devices"},
    {NODE("{'kind':'switch','lane':3}"), "test.json:/parts/0/lane: unknown key, did you mean 'lanes'?"},
    {NODE("{'kind':'switch','name':'nic','bandwidth_bytes_per_s':1,'latency_s':0,'link':'x'}"),
     "test.json:/parts/0/name: 'nic' cannot name a hub: use a word such as nvswitch"},
    {MESH("[[0,8]]"), "test.json:/parts/0/pairs/0: there is no device 8: the node's devices are 0 to 7"},
    {MESH("[[0,1],[-1,0]]"), "test.json:/parts/0/pairs/1: there is no device -1: the node's devices are 0 to 7"},
    {MESH("[[2,2,1]]"), "test.json:/parts/0/pairs/0: joins device 2 with itself: a pair needs two devices"},
    {MESH("[[2,3],[3,2]]"), "test.json:/parts/0/pairs/1: devices 3 and 2 are joined twice: add up their lanes"},
    {MESH("[[2,3,0]]"), "test.json:/parts/0/pairs/0: lanes must be in [1, 1024], got 0"},
    {MESH("[[2]]"), "test.json:/parts/0/pairs/0: must be [device, device, lanes], or two devices for one lane"},
    {MESH("[7]"), "test.json:/parts/0/pairs/0: must be [device, device, lanes], or two devices for one lane"},
    {MESH("[[2,0.5]]"), "test.json:/parts/0/pairs/0: must hold whole numbers only"},
    {PCIE("'switches':2"), "test.json:/parts/0: needs the key 'switch_bandwidth_bytes_per_s' for 2 switches"},
    {PCIE("'sockets':2"), "test.json:/parts/0: needs the key 'socket_bandwidth_bytes_per_s' for 2 sockets"},
    {PCIE("'sockets':2,'socket_bandwidth_bytes_per_s':1"),
     "test.json:/parts/0: needs the key 'socket_latency_s' for 2 sockets"},
    {PCIE("'switches':3,'switch_bandwidth_bytes_per_s':1"),
     "test.json:/parts/0: 8 devices do not fall in equal parts to 3 switches"},
    {PCIE("'switches':1,'switch_bandwidth_bytes_per_s':1,'sockets':2,'socket_bandwidth_bytes_per_s':1,"
          "'socket_latency_s':0"),
     "test.json:/parts/0: 1 switches do not fall in equal parts to 2 sockets"},
    {"{'device':'d','devices':1024,'parts':[" NVSWITCH "]}",
     "test.json:/parts/0: brings the node to 1025 devices, hubs, NICs and host; it may have 1024"},
    {NODE_WITH_NICS(PCIE_TREE, NICS("1", "['pci0']")),
     "test.json:/nics/attach/0: the node has no 'pci0', did you mean 'pcie0'?"},
    {NODE_WITH_NICS(PCIE_TREE, NICS("2", "['pcie0','nic0']")),
     "test.json:/nics/attach/1: the node has no 'nic0': name a device (device0) or a hub of a part"},
    {NODE_WITH_NICS(PCIE_TREE, NICS("2", "['pcie0']")),
     "test.json:/nics/attach: must name one place for each of the 2 NICs, got 1"},
    {NODE_WITH_NICS(PCIE_TREE, NICS("1", "[1]")),
     "test.json:/nics/attach/0: must be the name of a device (\"device0\") or of a hub"},
    {NODE_WITH_NICS("", NICS("1", "['device0'],'affinity':[0]")),
     "test.json:/nics/affinity: must hold one NIC for each of the 8 devices, got 1"},
    {NODE_WITH_NICS("", NICS("1", "['device0'],'affinity':[0,0,0,0,0,0,0,1]")),
     "test.json:/nics/affinity: gives device 7 NIC 1; the NICs are 0 to 0"},
};

START_TEST(errors_name_the_place_and_what_would_be_right)
{
    fixture_open(&f, bad_nodes[_i].text);
    ck_assert_int_ne(dl_node_read(f.doc, &node, f.arena, &f.err), DL_OK);
    ck_assert_str_eq(f.err.text, bad_nodes[_i].error);
    close_node();
}
END_TEST

START_TEST(every_kind_of_part_is_described)
{
    const struct dl_interior *const part = dl_interior_get((size_t)_i);
    ck_assert(part->name && part->doc && part->defaults && part->build);
    for (size_t i = 0; i < part->n_fields; i++) ck_assert_ptr_nonnull(part->fields[i].doc);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("node");
    TCase *const tests = tcase_create("node");
    tcase_add_loop_test(tests, links_of_a_route_are_joined_end_to_end, 0, DL_COUNT(connected_nodes));
    tcase_add_loop_test(tests, routes_are_the_cheapest_both_ways, 0, DL_COUNT(connected_nodes));
    tcase_add_test(tests, cube_mesh_has_six_lanes_a_device);
    tcase_add_test(tests, devices_forward_only_where_the_mesh_says_so);
    tcase_add_test(tests, a_torus_joins_neighbours_along_its_dimensions);
    tcase_add_test(tests, pcie_joins_what_the_mesh_leaves_apart);
    tcase_add_test(tests, pcie_deals_devices_to_switches_in_equal_parts);
    tcase_add_test(tests, a_switch_joins_all_devices_in_two_hops);
    tcase_add_test(tests, hubs_of_one_kind_get_names_of_their_own);
    tcase_add_test(tests, the_nearest_nic_serves_a_device);
    tcase_add_test(tests, equally_near_nics_are_used_in_turn);
    tcase_add_test(tests, a_given_affinity_is_kept);
    tcase_add_test(tests, a_device_that_reaches_no_nic_has_none);
    tcase_add_test(tests, devices_take_their_own_links_however_slow);
    tcase_add_test(tests, nothing_goes_through_a_device_on_its_way_to_a_nic);
    tcase_add_test(tests, the_largest_node_can_be_routed);
    tcase_add_loop_test(tests, errors_name_the_place_and_what_would_be_right, 0, DL_COUNT(bad_nodes));
    tcase_add_loop_test(tests, every_kind_of_part_is_described, 0, (int)dl_interior_count());
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
