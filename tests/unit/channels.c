/* channels.c - the rings that are found from the links of a node, and how they cross between nodes. */
#include <check.h>

#include "sim/collective/channels.h"
#include "tests/unit/shipped_system.h"

struct found {
    struct dl_group group;
    struct dl_channels channels;
};

static struct found find(const struct dl_topology *t, const uint32_t *device, uint32_t n)
{
    struct found f;
    dl_group_init(&f.group, t, device, n, arena);
    dl_channels_find(&f.group, arena, &f.channels);
    ck_assert_uint_eq(f.channels.n, n);
    ck_assert_uint_gt(f.channels.n_channels, 0);
    return f;
}

static const uint32_t *first_devices(uint32_t n)
{
    uint32_t *const device = dl_arena_alloc(arena, n * sizeof *device);
    for (uint32_t i = 0; i < n; i++) device[i] = i;
    return device;
}

static void check_permutations(const struct found *f)
{
    const uint32_t n = f->channels.n;
    for (uint32_t c = 0; c < f->channels.n_channels; c++)
        for (uint32_t place = 0; place < n; place++) {
            const uint32_t rank = f->channels.order[c * n + place];
            ck_assert_uint_lt(rank, n);
            ck_assert_uint_eq(f->channels.position[c * n + rank], place); /* so no rank is there twice */
        }
}

/* How often the hops of all channels use each link. */
static uint32_t *count_uses(const struct dl_topology *t, const struct found *f)
{
    uint32_t *const uses = dl_arena_alloc(arena, t->n_links * sizeof *uses);
    struct dl_route route = {0};
    const uint32_t n = f->channels.n;
    for (uint32_t i = 0; i < f->channels.n_channels * n; i++) {
        const uint32_t next = i % n + 1 < n ? i + 1 : i + 1 - n;
        const uint32_t *const order = f->channels.order, *const device = f->group.device;
        ck_assert(!dl_topology_route(t, device[order[i]], device[order[next]], 0, NULL, &route, &err));
        for (size_t h = 0; h < route.n_hops; h++) uses[route.hops[h].link]++;
    }
    dl_route_release(&route);
    return uses;
}

/* ---- in a node ---- */

/* NCCL's own counts on this machine, for GPUs 0 .. n-1. */
START_TEST(dgx1_has_as_many_rings_as_its_nvlinks_carry)
{
    static const uint32_t n_rings[] = {1, 2, 4, 2, 2, 4, 6};
    const uint32_t n = (uint32_t)_i;
    const struct dl_topology *const t = open_system("dgx1-v100");
    const struct found f = find(t, first_devices(n), n);
    ck_assert_uint_eq(f.channels.n_channels, n_rings[n - 2]);
    check_permutations(&f);
    const uint32_t *const uses = count_uses(t, &f);
    for (size_t e = 0; e < t->node.n_edges; e++) {
        ck_assert_uint_le(uses[2 * e], t->node.edges[e].lanes);
        ck_assert_uint_le(uses[2 * e + 1], t->node.edges[e].lanes);
        if (t->node.edges[e].reach != DL_REACH_DIRECT) ck_assert_uint_eq(uses[2 * e] + uses[2 * e + 1], 0);
    }
}
END_TEST

START_TEST(some_four_of_dgx1_are_as_good_as_others)
{
    static const uint32_t quads[][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {3, 1, 0, 2}};
    const struct dl_topology *const t = open_system("dgx1-v100");
    const struct found f = find(t, quads[_i], 4);
    ck_assert_uint_eq(f.channels.n_channels, 4);
    check_permutations(&f);
}
END_TEST

START_TEST(one_ring_fills_every_port_of_a_switch)
{
    static const char *const systems[] = {"dgx-a100-hdr4", "dgx-h100", "dgx2"};
    const struct dl_topology *const t = open_system(systems[_i]);
    for (uint32_t n = 2; n <= t->node.n_devices; n++) {
        const struct found f = find(t, first_devices(n), n);
        ck_assert_uint_eq(f.channels.n_channels, 1);
        check_permutations(&f);
        const uint32_t *const uses = count_uses(t, &f);
        for (size_t link = 0; link < 2 * t->node.n_edges; link++) ck_assert_uint_le(uses[link], 1);
    }
}
END_TEST

/* ---- between nodes ---- */

static bool ends_at_nic(const struct dl_node *node, const struct dl_edge *e)
{
    return node->vertices[e->a].kind == DL_NIC || node->vertices[e->b].kind == DL_NIC;
}

static void check_nics_are_used_equally(const struct dl_topology *t, const struct found *f)
{
    const uint32_t *const uses = count_uses(t, f);
    const size_t links_per_node = 2 * t->node.n_edges;
    uint32_t expected = 0;
    for (uint32_t node = 0; node < f->group.n_nodes; node++)
        for (size_t link = 0; link < links_per_node; link++) {
            if (!ends_at_nic(&t->node, &t->node.edges[link / 2])) continue;
            const uint32_t here = uses[node * links_per_node + link];
            if (!expected) expected = here;
            ck_assert_msg(here == expected && here > 0, "node %u, link %zu is used %u times, others %u times", node,
                          link, here, expected);
        }
    ck_assert_uint_gt(expected, 0);
}

START_TEST(between_nodes_every_nic_is_used_equally)
{
    static const char *const systems[] = {"dgx1-v100", "dgx-a100-hdr4", "dgx-h100", "selene", "perlmutter", "frontier"};
    const struct dl_topology *const t = open_system(systems[_i]);
    for (uint32_t n_nodes = 2; n_nodes <= 4; n_nodes++) {
        const uint32_t n = n_nodes * t->node.n_devices;
        const struct found f = find(t, first_devices(n), n);
        ck_assert_uint_ge(f.channels.n_channels, t->node.n_nics);
        check_permutations(&f);
        check_nics_are_used_equally(t, &f);
    }
}
END_TEST

/* Each channel enters and leaves every node once, however the ranks are dealt. */
START_TEST(a_channel_visits_each_node_once)
{
    static const uint32_t dealt[] = {8, 3, 17, 0, 9, 25, 2, 16, 11, 1, 24, 10};
    const uint32_t n = DL_COUNT(dealt);
    const struct dl_topology *const t = open_system("dgx1-v100");
    const struct found f = find(t, dealt, n);
    check_permutations(&f);
    for (uint32_t c = 0; c < f.channels.n_channels; c++) {
        uint32_t crossings = 0;
        for (uint32_t place = 0; place < n; place++) {
            const uint32_t rank = f.channels.order[c * n + place], next = f.channels.order[c * n + (place + 1) % n];
            crossings += f.group.node[rank] != f.group.node[next];
        }
        ck_assert_uint_eq(crossings, f.group.n_nodes);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("channels");
    tcase_add_loop_test(tests, dgx1_has_as_many_rings_as_its_nvlinks_carry, 2, 9);
    tcase_add_loop_test(tests, some_four_of_dgx1_are_as_good_as_others, 0, 3);
    tcase_add_loop_test(tests, one_ring_fills_every_port_of_a_switch, 0, 3);
    tcase_add_loop_test(tests, between_nodes_every_nic_is_used_equally, 0, 6);
    tcase_add_test(tests, a_channel_visits_each_node_once);
    return run_systems(tests, "channels");
}
