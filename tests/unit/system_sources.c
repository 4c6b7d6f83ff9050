/* The machines that the shipped system files describe have the sizes and bandwidths that their sources state. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/shipped_system.h"

static const double gbit_per_s = 1e9 / 8; /* in bytes per second */

static const struct {
    const char *system;
    uint32_t n_devices;          /* in all; 0: the sources do not say */
    uint32_t n_nics;             /* of a node */
    double injection_gbit_per_s; /* of a node; 0: the devices are on the network themselves */
} sizes[] = {
    {"selene", 4480, 8, 1600},
    {"dgx-a100-hdr4", 512, 4, 800},
    {"dgx-a100-roce", 0, 4, 800},
    {"dgx-a100-40", 0, 8, 1600},
    {"neox-a100", 96, 4, 800},
    {"jean-zay-a100", 416, 4, 400},
    {"megascale-a100", 12288, 8, 1600},
    {"meta-h100-roce", 24576, 8, 3200},
    {"dgx-h100", 8192, 8, 3200},
    {"ibm-h100", 96, 8, 800},
    {"eos", 11616, 8, 3200},
    {"dgx-b200", 8192, 8, 3200},
    {"l40s", 384, 2, 800},
    {"gaudi2", 1024, 8, 2400},
    {"mosaic-a100-40", 0, 8, 1600},
    {"mosaic-a100-80", 0, 8, 1600},
    {"azure-ndm-a100", 0, 8, 1600},
    {"dgx1-v100", 0, 4, 400},
    {"dlperf-v100", 32, 1, 100},
    {"dgx2", 1536, 8, 800},
    {"p4de", 0, 4, 400},
    {"p5", 20000, 8, 3200},
    {"a3-mega", 0, 8, 1600},
    {"frontier", 75264, 4, 800},
    {"perlmutter", 7168, 4, 800},
    {"perlmutter-2021", 6144, 2, 200},
    {"summit", 27648, 2, 200},
    {"aurora", 10624 * 12, 8, 1600},
    {"lumi", 23824, 4, 800},
    {"alps", 10752, 4, 800},
    {"eagle", 14400, 8, 3200},
    {"piz-daint", 5704, 1, 80},
    {"cori", 9688, 1, 80},
    {"lassen", 3168, 2, 200},
    {"juwels-booster", 3744, 4, 800},
    {"horeka", 668, 4, 800},
    {"cori-gpu", 144, 4, 400},
    {"thetagpu", 192, 8, 1600},
    {"hal", 64, 2, 200},
    {"longhorn", 384, 2, 200},
    {"frontera-rtx", 360, 1, 54.4},
    {"gb200-nvl72", 0, 72, 28800},
    {"gb300-nvl72", 0, 72, 57600},
    {"dgx-b300", 8192, 8, 6400},
    {"ec2-p3", 0, 1, 25},
    {"tpu-v3", 1024, 0, 0},
    {"tpu-v4", 4096, 0, 0},
    {"tpu-v5e", 256, 0, 0},
    {"tpu-v5p", 8960, 0, 0},
    {"tpu-v5p-128-multislice", 0, 64, 3200},
    {"tpu-v5p-256-multislice", 0, 128, 6400},
    {"fugaku", 158976, 0, 0},
    {"cs2", 192, 0, 0},
    {"cs3", 2048, 0, 0},
    {"h200", 1, 0, 0},
    {"h200x8", 8, 0, 0},
};

START_TEST(sizes_are_those_of_the_sources)
{
    const struct dl_topology *const t = open_system(sizes[_i].system);
    if (sizes[_i].n_devices) ck_assert_uint_eq(t->n_devices, sizes[_i].n_devices);
    ck_assert_uint_eq(t->node.n_nics, sizes[_i].n_nics);
}
END_TEST

/* The first link of the network on the way from a device of node 0 to its like on the last node. */
static uint32_t link_out(const struct dl_topology *t, uint32_t device)
{
    struct dl_route route = {0};
    check_route(t, device, device + (t->n_nodes - 1) * t->node.n_devices, &route);
    size_t hop = 0;
    while (hop < route.n_hops && route.hops[hop].link < t->network.first_link) hop++;
    ck_assert_uint_lt(hop, route.n_hops);
    const uint32_t link = route.hops[hop].link;
    dl_route_release(&route);
    return link;
}

/* All devices of a node together: this also shows that they use every NIC. */
START_TEST(nodes_inject_what_the_sources_say)
{
    const struct dl_topology *const t = open_system(sizes[_i].system);
    if (!t->node.n_nics) return;
    uint32_t seen[DL_MAX_NODE_VERTICES];
    size_t n_seen = 0;
    double sum = 0;
    for (uint32_t device = 0; device < t->node.n_devices; device++) {
        const uint32_t link = seen[n_seen] = link_out(t, device);
        size_t first = 0;
        while (seen[first] != link) first++;
        if (first < n_seen) continue;
        n_seen++;
        sum += t->links[link].bandwidth_bytes_per_s;
    }
    ck_assert_uint_eq(n_seen, t->node.n_nics);
    ck_assert_double_eq_tol(sum, sizes[_i].injection_gbit_per_s * gbit_per_s, 1);
}
END_TEST

START_TEST(the_bus_of_a_nic_carries_what_the_nic_does)
{
    const struct dl_topology *const t = open_system(sizes[_i].system);
    const double nic_bytes_per_s = sizes[_i].injection_gbit_per_s * gbit_per_s / sizes[_i].n_nics;
    for (size_t e = 0; e < t->node.n_edges; e++)
        if (t->node.vertices[t->node.edges[e].b].kind == DL_NIC)
            ck_assert_double_ge(t->node.edges[e].bandwidth_bytes_per_s, nic_bytes_per_s);
}
END_TEST

static const struct {
    const char *system, *link_kind;
    double bandwidth_bytes_per_s; /* of one chip, all its links of this kind */
} chips[] = {
    {"selene", "nvlink3", 300e9},   {"perlmutter", "nvlink3", 300e9},  {"juwels-booster", "nvlink3", 300e9},
    {"dgx-h100", "nvlink4", 450e9}, {"h200x8", "nvlink4", 450e9},      {"alps", "nvlink4", 450e9},
    {"dgx-b200", "nvlink5", 900e9}, {"gb200-nvl72", "nvlink5", 900e9}, {"dgx1-v100", "nvlink2", 150e9},
    {"ec2-p3", "nvlink2", 150e9},   {"dgx2", "nvlink2", 150e9},        {"summit", "nvlink2", 150e9},
    {"lassen", "nvlink2", 150e9},   {"dgx-b300", "nvlink5", 900e9},    {"gb300-nvl72", "nvlink5", 900e9},
};

START_TEST(every_gpu_uses_all_its_nvlinks)
{
    const struct dl_node *const node = &open_system(chips[_i].system)->node;
    for (uint32_t device = 0; device < node->n_devices; device++) {
        double sum = 0;
        for (size_t e = 0; e < node->n_edges; e++)
            if ((node->edges[e].a == device || node->edges[e].b == device) &&
                !strcmp(node->edges[e].link_kind, chips[_i].link_kind))
                sum += node->edges[e].bandwidth_bytes_per_s;
        ck_assert_double_eq(sum, chips[_i].bandwidth_bytes_per_s);
    }
}
END_TEST

/* LUMI's documentation: 5 links from each MI250X to the others, 4 inside. */
START_TEST(mi250x_packages_have_five_links_to_others)
{
    const char *const systems[] = {"frontier", "lumi"};
    const struct dl_node *const node = &open_system(systems[_i])->node;
    for (uint32_t package = 0; package < node->n_devices / 2; package++) {
        uint32_t inside = 0, outside = 0;
        for (size_t e = 0; e < node->n_edges; e++) {
            const struct dl_edge *const edge = &node->edges[e];
            if (strcmp(edge->link_kind, "xgmi") || (edge->a / 2 != package && edge->b / 2 != package)) continue;
            *(edge->a / 2 == edge->b / 2 ? &inside : &outside) += edge->lanes;
        }
        ck_assert_uint_eq(inside, 4);
        ck_assert_uint_eq(outside, 5);
    }
}
END_TEST

/* Bandwidth of all links between two groups, or only of those between the lower and the upper half of the groups. */
static double global_bandwidth(const struct dl_topology *t, unsigned n_groups, bool only_bisection)
{
    double sum = 0;
    for (size_t link = t->network.first_link; link < t->n_links; link++) {
        char name[256];
        unsigned from, to;
        dl_topology_link_name(t, (uint32_t)link, name, sizeof name);
        if (sscanf(name, "group%u.%*[a-z]%*u -> group%u.", &from, &to) != 2 || from == to) continue;
        const bool crosses = (from < n_groups / 2) != (to < n_groups / 2);
        if (!only_bisection || crosses) sum += t->links[link].bandwidth_bytes_per_s;
    }
    return sum;
}

static const struct {
    const char *system;
    unsigned n_groups;
    bool only_bisection;
    double bytes_per_s; /* in both directions together, as published */
} global[] = {
    {"frontier", 74, false, 540e12},     /* Atchley et al. 2023: 270 + 270 TB/s */
    {"lumi", 24, false, 276e12},         /* LUMI documentation */
    {"juwels-booster", 20, true, 50e12}, /* Kesselheim et al. 2021: 400 Tb/s */
};

START_TEST(global_bandwidth_is_the_published_one)
{
    const struct dl_topology *const t = open_system(global[_i].system);
    const double sum = global_bandwidth(t, global[_i].n_groups, global[_i].only_bisection);
    ck_assert_double_eq_tol(sum / global[_i].bytes_per_s, 1, 1e-3);
}
END_TEST

static const struct {
    const char *system;
    double leaf_taper, spine_taper; /* bandwidth of the endpoints / bandwidth up from that level; 0: no such level */
} tapers[] = {
    {"selene", 1, 1},   {"dgx-a100-hdr4", 1, 0},  {"megascale-a100", 1, 1}, {"meta-h100-roce", 1, 7},
    {"dgx-h100", 1, 1}, {"azure-ndm-a100", 1, 1}, {"summit", 1, 1},         {"lassen", 1.5, 0},
    {"eagle", 1, 1},    {"jean-zay-a100", 1, 0},  {"dgx1-v100", 1, 0},      {"gb200-nvl72", 1, 1},
    {"dgx-b300", 1, 1}, {"gb300-nvl72", 1, 1},
};

enum { n_levels = 3 };

/* Bandwidth upwards from the endpoints, the leaves and the spines. */
static void sum_levels(const struct dl_topology *t, double sums[n_levels])
{
    static const char *const low[n_levels] = {"node", "leaf", "spine"};
    static const char *const high[n_levels] = {"leaf", "spine", "core"};
    for (size_t link = t->network.first_link; link < t->n_links; link++) {
        char name[256];
        dl_topology_link_name(t, (uint32_t)link, name, sizeof name);
        const char *const arrow = strstr(name, " -> ");
        ck_assert_ptr_nonnull(arrow);
        for (size_t l = 0; l < n_levels; l++)
            if (!strncmp(name, low[l], strlen(low[l])) && !strncmp(arrow + strlen(" -> "), high[l], strlen(high[l])))
                sums[l] += t->links[link].bandwidth_bytes_per_s;
    }
}

START_TEST(fat_trees_taper_as_their_files_claim)
{
    const double tolerance = 0.07; /* the last leaf and the last spine need not be full */
    double sums[n_levels] = {0};
    sum_levels(open_system(tapers[_i].system), sums);
    ck_assert_double_eq_tol(sums[0] / sums[1] / tapers[_i].leaf_taper, 1, tolerance);
    if (tapers[_i].spine_taper)
        ck_assert_double_eq_tol(sums[0] / sums[2] / tapers[_i].spine_taper, 1, tolerance);
    else
        ck_assert_double_eq(sums[2], 0);
}
END_TEST

static const struct {
    const char *system;
    uint32_t ports; /* links out of each chip */
} tori[] = {{"tpu-v3", 4}, {"tpu-v4", 6}, {"tpu-v5e", 4}, {"tpu-v5p", 6}, {"fugaku", 10}};

START_TEST(tori_have_the_links_of_their_chips)
{
    const struct dl_topology *const t = open_system(tori[_i].system);
    ck_assert_uint_eq(t->network.n_links, (size_t)t->n_devices * tori[_i].ports);
}
END_TEST

START_TEST(unjoined_gpus_of_a_cube_mesh_meet_over_two_nvlinks)
{
    const struct dl_topology *const t = open_system("dgx1-v100");
    struct dl_route route = {0};
    check_route(t, 0, 5, &route);
    ck_assert_uint_eq(route.n_hops, 2);
    ck_assert_int_eq(route.reach, DL_REACH_DIRECT);
    dl_route_release(&route);
}
END_TEST

START_TEST(the_halves_of_a_summit_node_meet_over_the_x_bus)
{
    const struct dl_topology *const t = open_system("summit");
    struct dl_route route = {0};
    check_route(t, 0, 3, &route);
    ck_assert_uint_eq(route.n_hops, 3);
    char name[256];
    dl_topology_link_name(t, route.hops[1].link, name, sizeof name);
    ck_assert_str_eq(name, "node0: socket0 -> socket1");
    dl_route_release(&route);
}
END_TEST

START_TEST(the_lessons_crossbar_has_an_alpha_of_one_microsecond)
{
    const struct dl_topology *const t = open_system("crossbar");
    struct dl_route route = {0};
    check_route(t, 0, t->n_devices - 1, &route);
    ck_assert_double_eq_tol(route.latency_s, 1e-6, 1e-18);
    ck_assert_double_eq(t->links[route.hops[0].link].bandwidth_bytes_per_s, 1e10);
    dl_route_release(&route);
}
END_TEST

static bool is_of_the_published_kinds(const char *device)
{
    return strncmp(device, "v100", strlen("v100")) == 0 || strcmp(device, "rtx-5000") == 0;
}

/* Sinha et al. 2022: 8 % between the whiskers, which are 4 quartile ranges apart, of 1.349 deviations each. Machines
 * with later GPUs than that paper has are taken to differ as much, or not at all. */
START_TEST(devices_differ_as_published)
{
    const char **names;
    const size_t n = dl_list_folder("topologies/systems", arena, &names);
    size_t n_differing = 0;
    for (size_t i = 0; i < n; i++) {
        const struct dl_topology *const t = open_system(names[i]);
        const double spread = t->variability.spread_fraction;
        n_differing += spread > 0;
        if (spread > 0 || is_of_the_published_kinds(t->node.device))
            ck_assert_msg(fabs(spread - 0.08 / (4 * 1.349)) < 5e-4, "%s: %g", names[i], spread);
    }
    ck_assert_uint_gt(n_differing, 30);
}
END_TEST

/* Constants of devices and software were fitted to their steps, or these are benchmarks on chosen nodes. */
START_TEST(devices_of_nvidias_own_machines_do_not_differ)
{
    static const char *const systems[] = {"selene",   "eos",    "dgx-h100",    "dgx-h200",   "dgx-b200",
                                          "dgx-b300", "h200x8", "gb200-nvl72", "gb300-nvl72"};
    for (size_t i = 0; i < DL_COUNT(systems); i++)
        ck_assert_double_eq(open_system(systems[i])->variability.spread_fraction, 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("system_sources");
    tcase_add_loop_test(tests, sizes_are_those_of_the_sources, 0, (int)DL_COUNT(sizes));
    tcase_add_loop_test(tests, nodes_inject_what_the_sources_say, 0, (int)DL_COUNT(sizes));
    tcase_add_loop_test(tests, the_bus_of_a_nic_carries_what_the_nic_does, 0, (int)DL_COUNT(sizes));
    tcase_add_loop_test(tests, every_gpu_uses_all_its_nvlinks, 0, (int)DL_COUNT(chips));
    tcase_add_loop_test(tests, mi250x_packages_have_five_links_to_others, 0, 2);
    tcase_add_loop_test(tests, global_bandwidth_is_the_published_one, 0, (int)DL_COUNT(global));
    tcase_add_loop_test(tests, fat_trees_taper_as_their_files_claim, 0, (int)DL_COUNT(tapers));
    tcase_add_loop_test(tests, tori_have_the_links_of_their_chips, 0, (int)DL_COUNT(tori));
    tcase_add_test(tests, unjoined_gpus_of_a_cube_mesh_meet_over_two_nvlinks);
    tcase_add_test(tests, the_halves_of_a_summit_node_meet_over_the_x_bus);
    tcase_add_test(tests, the_lessons_crossbar_has_an_alpha_of_one_microsecond);
    tcase_add_test(tests, devices_differ_as_published);
    tcase_add_test(tests, devices_of_nvidias_own_machines_do_not_differ);
    return run_systems(tests, "system_sources");
}
