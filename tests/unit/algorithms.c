/* algorithms.c - what single algorithms promise besides what the battery of collectives.c checks of all. */

#include "sim/collective/phase.h"
#include "tests/unit/collective_fixture.h"
#include "tests/unit/suite.h"

static const struct dl_algorithm *find(enum dl_op op, const char *name)
{
    const struct dl_algorithm *found = NULL;
    struct dl_error err = {0};
    ck_assert_int_eq(dl_algorithm_find(op, name, &found, &err), DL_OK);
    return found;
}

static uint32_t depth_of(enum dl_op op, const char *name, uint32_t n)
{
    struct fixture f;
    ck_assert(set_up(&f, find(op, name), n, ONE_A_NODE));
    const uint32_t depth = replay_all(&f.c, IN_ORDER).depth;
    tear_down(&f);
    return depth;
}

/* The factor of alpha in the textbook costs: messages that must wait for each other. */
START_TEST(latency_terms_match_closed_forms)
{
    for (uint32_t log = 1; log <= 6; log++) {
        const uint32_t n = 1u << log;
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "parameter_server_serial", n), 2 * n);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "parameter_server", n), 2);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "tree", n), 2 * log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "recursive_doubling", n), log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "rabenseifner", n), 2 * log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "ring", n), 2 * (n - 1));
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "direct", n), 2);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "direct_ring", n), n);
        ck_assert_uint_eq(depth_of(DL_ALLGATHER, "recursive", n), log);
        ck_assert_uint_eq(depth_of(DL_ALLGATHER, "recursive", n - 1), n > 2 ? log : 0);
        ck_assert_uint_eq(depth_of(DL_REDUCESCATTER, "recursive", n - 1), n > 2 ? log : 0);
        ck_assert_uint_eq(depth_of(DL_ALLTOALL, "direct", n), 1);
        ck_assert_uint_eq(depth_of(DL_ALLTOALL, "pairwise", n), n - 1);
        ck_assert_uint_eq(depth_of(DL_BARRIER, "dissemination", n), log);
        ck_assert_uint_eq(depth_of(DL_BROADCAST, "chain", n), n - 1);
    }
}
END_TEST

static void check_fast_ring(const struct dl_collective *c)
{
    for (uint32_t rank = 0; rank < c->group->n; rank++) {
        struct dl_action fast = {0}, plain = {0};
        uint32_t step = 0;
        for (; c->algorithm->next(c, 0, rank, step, &fast); step++) {
            REQUIRE(dl_phases_next(c, 0, rank, step, &plain), "the program ends at step %u", step);
            REQUIRE(fast.kind == plain.kind && fast.reduce == plain.reduce && fast.peer == plain.peer &&
                        fast.blocks.first == plain.blocks.first && fast.merged == plain.merged,
                    "rank %u does something else in step %u", rank, step);
        }
        ck_assert(!dl_phases_next(c, 0, rank, step, &plain));
    }
}

START_TEST(fast_ring_is_the_ring_of_the_phases)
{
    for_all_groups(find(DL_ALLREDUCE, "ring"), check_fast_ring);
    for_all_groups(find(DL_ALLGATHER, "ring"), check_fast_ring);
    for_all_groups(find(DL_REDUCESCATTER, "ring"), check_fast_ring);
}
END_TEST

static bool is_inside_tree(const struct dl_collective *c, uint32_t lane, uint32_t rank)
{
    struct dl_action a;
    for (uint32_t step = 0; c->algorithm->next(c, lane, rank, step, &a); step++)
        if (a.kind == DL_RECV && a.reduce) return true;
    return false;
}

static void check_double_tree(const struct dl_collective *c)
{
    for (uint32_t rank = 0; rank < c->group->n; rank++)
        ck_assert(!is_inside_tree(c, 0, rank) || !is_inside_tree(c, 1, rank));
    ck_assert_uint_le(replay_all(c, IN_ORDER).depth, 2 * (dl_ceil_log2(c->group->n) + 1));
}

START_TEST(no_rank_is_inside_both_trees)
{
    for_all_groups(find(DL_ALLREDUCE, "double_binary_tree"), check_double_tree);
}
END_TEST

static const int64_t machine_sizes[] = {4, 3, 2};

static size_t machine_dimensions(const struct dl_network *net, const int64_t **dimensions)
{
    (void)net;
    *dimensions = machine_sizes;
    return DL_COUNT(machine_sizes);
}

/* Blocks that a rank sends to each of the others. */
static void add_link_loads(const struct dl_collective *c, uint32_t rank, double loads[24])
{
    struct dl_action a;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        for (uint32_t step = 0; c->algorithm->next(c, lane, rank, step, &a); step++)
            if (a.kind == DL_SEND) loads[a.peer] += a.blocks.count;
}

START_TEST(torus_follows_the_machine_and_uses_all_links)
{
    enum { n = 24 };
    const struct dl_network_kind kind = {.dimensions = machine_dimensions};
    struct fixture f;
    set_up(&f, find(DL_ALLREDUCE, "torus"), n, ONE_A_NODE);
    f.machine = (struct dl_topology){.network.kind = &kind, .n_devices = n};
    f.group.topology = &f.machine;
    struct dl_error err = {0};
    ck_assert_int_eq(f.c.algorithm->prepare(&f.c, f.arena, &err), DL_OK);
    ck_assert_uint_eq(dl_collective_lanes(&f.c), 2 * DL_COUNT(machine_sizes));
    replay_all(&f.c, IN_ORDER);
    double loads[n] = {0};
    add_link_loads(&f.c, 0, loads);
    /* Neighbours of (0, 0, 0): +-1 in each dimension; in the last, of size 2, both ways lead to one rank. */
    static const uint32_t neighbours[] = {1, 3, 4, 8, 12};
    double all = 0, near = 0;
    for (uint32_t rank = 0; rank < n; rank++) all += loads[rank];
    for (size_t i = 0; i < DL_COUNT(neighbours); i++) {
        ck_assert_double_gt(loads[neighbours[i]], 0);
        near += loads[neighbours[i]];
    }
    ck_assert_double_eq(near, all);
    ck_assert_double_eq(loads[1], loads[3]);
    ck_assert_double_eq(loads[4], loads[8]);
    tear_down(&f);
}
END_TEST

/* A ring along each dimension both ways, of a node that is a torus as of a machine. */
START_TEST(torus_gathers_follow_the_node)
{
    enum { n = 24 };
    static int64_t sides[] = {4, 6};
    struct fixture f;
    set_up(&f, find(DL_ALLGATHER, "torus"), n, ONE_A_NODE);
    f.machine = (struct dl_topology){.node = {.n_devices = n, .torus = {sides, DL_COUNT(sides)}}, .n_devices = n};
    f.group.topology = &f.machine;
    struct dl_error err = {0};
    ck_assert_int_eq(f.c.algorithm->prepare(&f.c, f.arena, &err), DL_OK);
    ck_assert_uint_eq(dl_collective_lanes(&f.c), 2 * DL_COUNT(sides));
    replay_all(&f.c, IN_ORDER);
    double loads[n] = {0};
    add_link_loads(&f.c, 0, loads);
    ck_assert_double_eq(loads[1] + loads[3] + loads[4] + loads[20], 4 * (n - 1));
    ck_assert_double_eq(loads[1], loads[3]);
    ck_assert_double_eq(loads[4], loads[20]);
    tear_down(&f);
}
END_TEST

START_TEST(hierarchical_alltoall_refuses_uneven_nodes)
{
    struct fixture f;
    ck_assert(!set_up(&f, find(DL_ALLTOALL, "hierarchical"), 9, FOUR_A_NODE));
    tear_down(&f);
}
END_TEST

START_TEST(unknown_algorithm_is_told_what_there_is)
{
    const struct dl_algorithm *found = NULL;
    struct dl_error err = {0};
    ck_assert_int_eq(dl_algorithm_find(DL_REDUCE, "ring", &found, &err), DL_NOT_FOUND);
    ck_assert_str_eq(err.text, "--algo: reduce has no algorithm 'ring'; it has binomial, chain, chains");
}
END_TEST

START_TEST(groups_number_nodes_by_first_rank)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_topology machine = {.node.n_devices = 2, .n_nodes = 4, .n_devices = 8};
    const uint32_t device[] = {6, 0, 7, 3, 1};
    struct dl_group g;
    dl_group_init(&g, &machine, device, DL_COUNT(device), arena);
    static const uint32_t node[] = {0, 1, 0, 2, 1}, slot[] = {0, 0, 1, 0, 1}, by_node[] = {0, 2, 1, 4, 3};
    ck_assert_uint_eq(g.n_nodes, 3);
    ck_assert(!g.even);
    ck_assert_mem_eq(g.node, node, sizeof node);
    ck_assert_mem_eq(g.slot, slot, sizeof slot);
    ck_assert_mem_eq(g.node_ranks, by_node, sizeof by_node);
    dl_arena_free(arena);
}
END_TEST

START_TEST(bus_bandwidth_follows_nccl_tests)
{
    const double time_s = 0.5;
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLREDUCE, 4, bytes, time_s), bytes / time_s * 2 * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLGATHER, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_REDUCESCATTER, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLTOALL, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_BROADCAST, 4, bytes, time_s), bytes / time_s);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_BARRIER, 4, 0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("algorithms");
    TCase *const single = tcase_create("algorithms");
    tcase_set_timeout(single, 60);
    tcase_add_test(single, latency_terms_match_closed_forms);
    tcase_add_test(single, fast_ring_is_the_ring_of_the_phases);
    tcase_add_test(single, no_rank_is_inside_both_trees);
    tcase_add_test(single, torus_follows_the_machine_and_uses_all_links);
    tcase_add_test(single, torus_gathers_follow_the_node);
    tcase_add_test(single, hierarchical_alltoall_refuses_uneven_nodes);
    tcase_add_test(single, unknown_algorithm_is_told_what_there_is);
    tcase_add_test(single, groups_number_nodes_by_first_rank);
    tcase_add_test(single, bus_bandwidth_follows_nccl_tests);
    suite_add_tcase(suite, single);
    return run_suite(suite);
}
