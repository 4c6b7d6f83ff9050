/* fluid.c - a ring folded into one bundle against the same ring message by message.
 *
 * Rank i may send message s when message s-1 has come from behind and its port is free, so that the end of a lone ring
 * of S steps is the longest path of S edges: each costs the time to move b bytes over a hop, and its latency where the
 * path goes on to the next rank. No edge moves slower than the slowest hop, and no path meets more latency than the
 * slowest stretch of S hops: the fold, which pays just these two, is never below. Staying at the slowest port gives one
 * of them, going round the other: it is never above their sum, so never more than twice. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double same = 1e-6, rounding = 1e-9;

static const enum dl_op ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER};
static const double sizes[] = {1, 1e3, 1e6, 1e9}; /* small first: see collective_runs.h */

/* Every job twice: step, then fluid. */
static void run_both(const struct setting *setting, const struct job *jobs, size_t n, double *step_s, double *fluid_s)
{
    struct job *const both = dl_alloc(2 * n * sizeof *both);
    struct outcome *const outcomes = dl_alloc(2 * n * sizeof *outcomes);
    for (size_t i = 0; i < 2 * n; i++) {
        both[i] = jobs[i / 2];
        both[i].fluid = i % 2;
    }
    run_jobs(setting, both, 2 * n, outcomes);
    for (size_t i = 0; i < n; i++) {
        step_s[i] = outcomes[2 * i].result.time_s;
        fluid_s[i] = outcomes[2 * i + 1].result.time_s;
        ck_assert_uint_eq(outcomes[2 * i].result.bundles, outcomes[2 * i].result.messages);
        ck_assert_uint_eq(outcomes[2 * i + 1].result.messages, outcomes[2 * i].result.messages);
        ck_assert_uint_lt(outcomes[2 * i + 1].result.bundles, outcomes[2 * i].result.messages);
    }
    dl_free(both);
    dl_free(outcomes);
}

static void check_equal(const struct setting *setting, const char *algorithm, uint32_t least, uint32_t most)
{
    enum { most_jobs = 512 };
    static struct job jobs[most_jobs];
    static double step_s[most_jobs], fluid_s[most_jobs];
    size_t n_jobs = 0;
    for (size_t s = 0; s < DL_COUNT(sizes); s++)
        for (size_t o = 0; o < DL_COUNT(ops); o++)
            for (uint32_t n = least; n <= most; n++)
                jobs[n_jobs++] =
                    (struct job){.op = ops[o], .algorithm = algorithm, .n = n, .bytes = sizes[s], .chunks = 1};
    ck_assert_uint_le(n_jobs, most_jobs);
    run_both(setting, jobs, n_jobs, step_s, fluid_s);
    for (size_t i = 0; i < n_jobs; i++)
        ck_assert_msg(fabs(fluid_s[i] - step_s[i]) <= same * step_s[i],
                      "%s %s of %u, %g bytes: fluid %.12g s, step %.12g s", dl_op_name(jobs[i].op), algorithm,
                      jobs[i].n, jobs[i].bytes, fluid_s[i], step_s[i]);
}

START_TEST(equal_ring_is_the_same_in_step_and_fluid)
{
    static const char *const gammas[] = {"transport.reduction_s_per_byte=0", "transport.reduction_s_per_byte=2.5e-11"};
    const struct setting crossbar = {
        .system = "crossbar", .engine = "simgrid", .set = {{"topo.nodes=34", gammas[_i]}, 2}};
    check_equal(&crossbar, "ring", 2, 33);
}
END_TEST

START_TEST(software_of_the_node_is_the_same_in_step_and_fluid)
{
    const struct setting node = {.system = "dgx-h100", .engine = "simgrid", .set = {{"topo.nodes=2"}, 1}};
    check_equal(&node, "rings", 2, 8);
}
END_TEST

/* What is neither ring nor tree goes round by round, as the estimate has it; off powers of two too. */
START_TEST(rounds_take_what_the_estimate_says)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    const struct setting crossbar = {
        .system = "crossbar", .engine = "simgrid", .set = {{"transport.reduction_s_per_byte=2.5e-11"}, 1}};
    enum { n_jobs = 4 };
    static const uint32_t n[n_jobs] = {2, 7, 16, 24};
    struct job jobs[n_jobs];
    struct outcome outcomes[n_jobs];
    if (a->fold != DL_FOLD_ROUNDS || a->lanes) return; /* lanes of unequal rounds do not wait for each other */
    for (int i = 0; i < n_jobs; i++)
        jobs[i] = (struct job){.op = a->op,
                               .algorithm = a->name,
                               .n = n[i],
                               .bytes = a->op == DL_BARRIER ? 0 : 1e6,
                               .chunks = 1,
                               .fluid = true};
    run_jobs(&crossbar, jobs, n_jobs, outcomes);
    for (int i = 0; i < n_jobs; i++) {
        const struct outcome *const o = &outcomes[i];
        ck_assert(o->result.folded);
        ck_assert_msg(fabs(o->result.time_s - o->estimate_s) <= same * o->estimate_s,
                      "%s %s of %u: %.12g s, estimate %.12g s", dl_op_name(a->op), a->name, n[i], o->result.time_s,
                      o->estimate_s);
    }
}
END_TEST

/* ---- unequal: two nodes of eight, 3 us inside and 14 us between them ---- */

static const char *const network_speeds[] = {"topo.network.bandwidth_bytes_per_s=5e9",
                                             "topo.network.bandwidth_bytes_per_s=50e9",
                                             "topo.network.bandwidth_bytes_per_s=400e9"};

static struct setting two_nodes(const char *network_speed)
{
    return (struct setting){
        .system = "dgx-h100",
        .transport = "ideal",
        .engine = "simgrid",
        .set = {{"transport.adds_wire_latency=false", "transport.protocols.ideal.peer.direct_s=3e-6",
                 "transport.protocols.ideal.peer.network_s=14e-6", network_speed},
                4}};
}

START_TEST(lone_unequal_ring_is_never_faster_in_fluid_nor_twice_as_slow)
{
    enum { n_jobs = DL_COUNT(ops) * DL_COUNT(sizes), n = 16 };
    struct job jobs[n_jobs];
    double step_s[n_jobs], fluid_s[n_jobs];
    const struct setting setting = two_nodes(network_speeds[_i]);
    for (size_t i = 0; i < n_jobs; i++)
        jobs[i] = (struct job){
            .op = ops[i % DL_COUNT(ops)], .algorithm = "ring", .n = n, .bytes = sizes[i / DL_COUNT(ops)], .chunks = 1};
    run_both(&setting, jobs, n_jobs, step_s, fluid_s);
    for (size_t i = 0; i < n_jobs; i++) {
        ck_assert_double_ge(fluid_s[i], step_s[i] * (1 - rounding));
        ck_assert_double_le(fluid_s[i], step_s[i] * 2 * (1 + rounding));
    }
}
END_TEST

/* Two rings whose ways between the nodes share NICs: in both fidelities the shared link must carry the bytes of both.
 */
START_TEST(rings_that_share_nics_are_not_faster_than_these)
{
    static const uint32_t even[] = {4, 6, 8, 10, 0}, odd[] = {5, 7, 9, 11, 0};
    const double bytes = 1e8, nic_bytes_per_s = 25e9, n = 4; /* HDR, as in the system file */
    for (int fluid = 0; fluid < 2; fluid++) {
        struct job jobs[3];
        struct outcome outcomes[3];
        const struct setting setting = {.system = "dgx-a100-hdr4", .transport = "ideal", .engine = "simgrid"};
        for (int i = 0; i < 3; i++) /* alone, then both */
            jobs[i] = (struct job){.op = DL_ALLREDUCE,
                                   .algorithm = "ring",
                                   .n = (uint32_t)n,
                                   .bytes = bytes,
                                   .chunks = 1,
                                   .device = i == 2 ? odd : even,
                                   .fluid = fluid,
                                   .with_previous = i == 2};
        run_jobs(&setting, jobs, DL_COUNT(jobs), outcomes);
        const double alone_s = outcomes[0].result.time_s;
        const double last_s = fmax(outcomes[1].result.time_s, outcomes[2].result.time_s);
        ck_assert_double_ge(last_s, 2 * 2 * (n - 1) / n * bytes / nic_bytes_per_s);
        ck_assert_double_gt(last_s, 1.5 * alone_s);
    }
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("fluid");
    TCase *const tests = tcase_create("rings");
    tcase_add_loop_test(tests, rounds_take_what_the_estimate_says, 0, (int)dl_algorithm_count());
    tcase_add_loop_test(tests, equal_ring_is_the_same_in_step_and_fluid, 0, 2);
    tcase_add_test(tests, software_of_the_node_is_the_same_in_step_and_fluid);
    tcase_add_loop_test(tests, lone_unequal_ring_is_never_faster_in_fluid_nor_twice_as_slow, 0,
                        DL_COUNT(network_speeds));
    tcase_add_test(tests, rings_that_share_nics_are_not_faster_than_these);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
