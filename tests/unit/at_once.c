/* at_once.c - messages that are under way at once: as fast as the most loaded link allows, in every fidelity.
 *
 * All messages of a direct algorithm share the links from the start, so that the most loaded link is busy until the
 * end: the time is its bytes over its bandwidth, and the latencies. */
#include <check.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double bytes = 1e9;
static const double latencies = 0.01, rounding = 1e-9; /* of the time that these bytes take */

/* Several devices of a node, with a NIC each and with one for two; nodes that are not full; more ranks than messages
 * are posted at once; adaptive routes; a mesh in the node; no nodes. */
static const struct place {
    const char *system;
    uint32_t n;
} places[] = {{"selene", 16},        {"selene", 12},   {"selene", 64}, {"dgx-a100-hdr4", 16},
              {"dgx-a100-hdr4", 21}, {"frontier", 32}, {"aurora", 12}, {"crossbar", 16}};

static struct outcome run_alone(const struct place *p, struct job job)
{
    const struct setting setting = {.system = p->system, .transport = "ideal", .engine = "simgrid"};
    struct outcome o;
    job.n = p->n;
    run_jobs(&setting, &job, 1, &o);
    return o;
}

static void check_direct(const struct dl_algorithm *a, const struct place *p)
{
    for (int fluid = 0; fluid < 2; fluid++) {
        const struct outcome o =
            run_alone(p, (struct job){.op = a->op, .algorithm = a->name, .bytes = bytes, .chunks = 1, .fluid = fluid});
        const double least_s = o.busiest_link_s * (1 - rounding), most_s = o.busiest_link_s * (1 + latencies);
        ck_assert_msg(o.result.time_s >= least_s && o.result.time_s <= most_s && o.estimate_s >= least_s &&
                          o.estimate_s <= most_s,
                      "%s %s of %u on %s, fluid %d: %.6g s, estimate %.6g s, busiest link %.6g s", dl_op_name(a->op),
                      a->name, p->n, p->system, fluid, o.result.time_s, o.estimate_s, o.busiest_link_s);
    }
}

START_TEST(direct_algorithms_take_what_the_busiest_link_takes)
{
    size_t n_direct = 0;
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i);
        if (strcmp(a->name, "direct") || a->op == DL_SENDRECV) continue;
        check_direct(a, &places[_i]);
        n_direct++;
    }
    ck_assert_uint_eq(n_direct, 8);
}
END_TEST

/* Thousands of messages on adaptive routes, whose rates are told to them a little later. */
START_TEST(messages_of_a_crowd_are_as_fast_as_their_fold)
{
    const struct place place = {"frontier", 160};
    struct job all_to_all = {.op = DL_ALLTOALL, .algorithm = "direct", .bytes = 1 << 26, .chunks = 1};
    const struct outcome step = run_alone(&place, all_to_all);
    all_to_all.fluid = true;
    const struct outcome fluid = run_alone(&place, all_to_all);
    ck_assert(!step.result.folded && fluid.result.folded);
    ck_assert_double_ge(step.result.time_s, step.busiest_link_s * (1 - rounding));
    ck_assert_msg(fabs(step.result.time_s / fluid.result.time_s - 1) < 0.1, "step %.6g s, fluid %.6g s",
                  step.result.time_s, fluid.result.time_s);
}
END_TEST

/* An inner rank of one tree is a leaf of the other: its port carries four halves of the bytes, up and down. With many
 * pieces both streams are full but for filling the pipeline, at most one piece on each of its levels up and down. */
START_TEST(double_binary_tree_fills_its_ports)
{
    enum { n = 16, chunks = 64, levels = 4 };
    const struct place crossbar = {"crossbar", n};
    const struct job tree = {
        .op = DL_ALLREDUCE, .algorithm = "double_binary_tree", .bytes = 1e8, .chunks = chunks, .by_message = true};
    const struct outcome step = run_alone(&crossbar, tree);
    ck_assert(!step.result.folded);
    ck_assert_double_ge(step.result.time_s, step.busiest_link_s * (1 - rounding));
    ck_assert_double_le(step.result.time_s, step.busiest_link_s * (1 + 2. * levels / chunks));
}
END_TEST

/* What the software pipelines can be had piece by piece: filling the pipeline takes an eighth of the time, or less. */
START_TEST(pipelined_trees_and_chains_are_the_same_piece_by_piece)
{
    static const struct {
        enum dl_op op;
        const char *algorithm;
    } pipelined[] = {{DL_ALLREDUCE, "node_tree"}, {DL_BROADCAST, "chains"}, {DL_REDUCE, "chains"}};
    static const double sizes[] = {1e4, 1e6, 1e8};
    const struct setting selene = {.system = "selene", .engine = "simgrid"};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        struct job jobs[2] = {{.op = pipelined[_i].op,
                               .algorithm = pipelined[_i].algorithm,
                               .n = 24,
                               .bytes = sizes[i],
                               .by_message = true}};
        struct outcome outcomes[2];
        jobs[1] = jobs[0];
        jobs[1].by_message = false;
        jobs[1].fluid = true;
        run_jobs(&selene, jobs, 2, outcomes);
        const double step_s = outcomes[0].result.time_s, fluid_s = outcomes[1].result.time_s;
        ck_assert(!outcomes[0].result.folded && outcomes[1].result.folded);
        ck_assert_msg(step_s >= fluid_s * (1 - latencies) && step_s <= fluid_s * (1 + 1. / 8),
                      "%s, %g bytes: step %.6g s, fluid %.6g s", pipelined[_i].algorithm, sizes[i], step_s, fluid_s);
    }
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("at_once");
    TCase *const tests = tcase_create("at_once");
    tcase_add_loop_test(tests, direct_algorithms_take_what_the_busiest_link_takes, 0, DL_COUNT(places));
    tcase_add_test(tests, messages_of_a_crowd_are_as_fast_as_their_fold);
    tcase_add_test(tests, double_binary_tree_fills_its_ports);
    tcase_add_loop_test(tests, pipelined_trees_and_chains_are_the_same_piece_by_piece, 0, 3);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
