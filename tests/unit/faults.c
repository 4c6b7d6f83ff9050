/* faults.c - collectives on networks whose links slow down, fail and come back. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double exactly = 1e-9;

#define SYSTEM(nodes, network)                                                                                         \
    "{\"schema\":\"dlsim/system/1\",\"source\":\"a test\",\"nodes\":" nodes ",\"transport\":\"ideal\","                \
    "\"node\":{\"device\":\"xeon-core\",\"devices\":1,\"parts\":[]},\"network\":{\"link\":\"ideal\"," network "}}"
#define CHANGE(link, at_s, fraction) "{\"link\":\"" link "\",\"at_s\":" at_s ",\"bandwidth_fraction\":" fraction "}"

static struct outcome run_with(const char *system, const char *links, const struct job *job)
{
    struct outcome outcome;
    run_jobs(&(struct setting){.system = "test.json", .text = system, .links = links, .engine = "simgrid"}, job, 1,
             &outcome);
    return outcome;
}

static void check_close(double is, double should)
{
    ck_assert_msg(fabs(is - should) <= exactly * fabs(should), "is %.17g, not %.17g", is, should);
}

/* ---- one message over two ways: closed forms ---- */

/* Vertices 0 and 1 are the devices; a way of 1 GB/s and a longer one of 0.5 GB/s over the switch 2. */
#define TWO_WAYS                                                                                                       \
    SYSTEM("2", "\"kind\":\"graph\",\"bandwidth_bytes_per_s\":1e9,\"latency_s\":0,\"switches\":1,"                     \
                "\"links\":[[0,1],[0,2,0.5e9,0],[2,1,0.5e9,0]]")
#define ONE_WAY SYSTEM("2", "\"kind\":\"graph\",\"bandwidth_bytes_per_s\":1e9,\"latency_s\":0,\"links\":[[0,1]]")
#define SHORT_WAY "node0.device0 -> node1.device0"

static const struct job message = {.op = DL_SENDRECV, .algorithm = "direct", .n = 2, .bytes = 1e9, .chunks = 1};

START_TEST(what_is_left_of_a_message_goes_another_way)
{
    const struct outcome o = run_with(TWO_WAYS, CHANGE(SHORT_WAY, "0.25", "0"), &message);
    check_close(o.result.time_s, 0.25 + 0.75 / 0.5);
    ck_assert_str_eq(o.limiting_link, "node0.device0 -> switch0");
    check_close(o.busiest_link_s, 0.75 / 0.5);
}
END_TEST

START_TEST(new_messages_take_a_way_that_works)
{
    check_close(run_with(TWO_WAYS, CHANGE(SHORT_WAY, "0", "0"), &message).result.time_s, 2);
    check_close(run_with(TWO_WAYS, CHANGE(SHORT_WAY, "0", "0") "," CHANGE(SHORT_WAY, "0", "1"), &message).result.time_s,
                1);
}
END_TEST

START_TEST(without_another_way_a_message_waits)
{
    const struct outcome o =
        run_with(ONE_WAY, CHANGE(SHORT_WAY, "0.25", "0") "," CHANGE(SHORT_WAY, "3.25", "1"), &message);
    check_close(o.result.time_s, 1 + 3);
    ck_assert_str_eq(o.limiting_link, SHORT_WAY);
    check_close(o.busiest_link_s, 1 + 3);
}
END_TEST

/* Of two failed ways the one that comes back first is taken. */
START_TEST(what_waits_takes_the_first_way_that_comes_back)
{
    const struct outcome o =
        run_with(TWO_WAYS,
                 CHANGE(SHORT_WAY, "0.25", "0") "," CHANGE("node0.device0 -> switch0", "0.25", "0") "," CHANGE(
                     "node0.device0 -> switch0", "1", "1") "," CHANGE(SHORT_WAY, "100", "1"),
                 &message);
    check_close(o.result.time_s, 1 + 0.75 / 0.5);
}
END_TEST

/* A fixed route stays, slow as it is; the bytes before the change crossed a whole link. */
START_TEST(a_slow_link_is_busy_by_what_it_could_carry)
{
    const struct outcome o = run_with(TWO_WAYS, CHANGE(SHORT_WAY, "0.25", "0.1"), &message);
    check_close(o.result.time_s, 0.25 + 0.75 / 0.1);
    ck_assert_str_eq(o.limiting_link, SHORT_WAY);
    check_close(o.busiest_link_s, o.result.time_s);
    const struct outcome late = run_with(TWO_WAYS, CHANGE(SHORT_WAY, "5", "0.1"), &message);
    check_close(late.result.time_s, 1);
    check_close(late.busiest_link_s, 1);
}
END_TEST

/* All links of the ring carry the same bytes. */
START_TEST(the_slow_link_of_a_ring_is_the_limiting_one)
{
    static const char crossbar[] = SYSTEM("4", "\"kind\":\"crossbar\",\"bandwidth_bytes_per_s\":1e9,\"latency_s\":0");
    for (int fluid = 0; fluid < 2; fluid++) {
        const struct job ring = {
            .op = DL_ALLREDUCE, .algorithm = "ring", .n = 4, .bytes = 1e9, .chunks = 1, .fluid = fluid};
        const struct outcome o = run_with(crossbar, CHANGE("switch -> node2.device0", "0", "0.5"), &ring);
        check_close(o.result.time_s, 1.5 / 0.5);
        ck_assert_str_eq(o.limiting_link, "switch -> node2.device0");
        check_close(o.busiest_link_s, o.result.time_s);
    }
}
END_TEST

/* ---- dragonflies ---- */

#define DRAGONFLY(groups, nodes, switches, links, routing)                                                             \
    SYSTEM("64", "\"kind\":\"dragonfly\",\"groups\":" groups ",\"nodes_per_group\":" nodes                             \
                 ",\"switches_per_group\":" switches ",\"links_per_group_pair\":" links                                \
                 ",\"bandwidth_bytes_per_s\":25e9,\"latency_s\":5e-7,\"routing\":\"" routing "\"")
#define BOTH(groups, nodes, switches, links)                                                                           \
    {                                                                                                                  \
        DRAGONFLY(groups, nodes, switches, links, "adaptive"), DRAGONFLY(groups, nodes, switches, links, "minimal")    \
    }

static const struct job all_to_all = {
    .op = DL_ALLTOALL, .algorithm = "direct", .n = 64, .bytes = 1 << 26, .chunks = 1, .fluid = true};

/* Every global link has as much to carry as any other: there is nothing to be won by detours. */
START_TEST(adaptive_routing_is_as_good_as_minimal_under_uniform_traffic)
{
    static const struct {
        const char *adaptive, *minimal;
    } machines[] = {BOTH("8", "8", "4", "1"),  BOTH("8", "8", "4", "2"),  BOTH("8", "8", "8", "1"),
                    BOTH("4", "16", "8", "4"), BOTH("4", "16", "8", "1"), BOTH("16", "4", "2", "1")};
    const double most = 1.05;
    const double adaptive_s = run_with(machines[_i].adaptive, NULL, &all_to_all).result.time_s;
    const double minimal_s = run_with(machines[_i].minimal, NULL, &all_to_all).result.time_s;
    ck_assert_msg(adaptive_s < most * minimal_s, "adaptive %g s, minimal %g s", adaptive_s, minimal_s);
}
END_TEST

#define GLOBAL "group0.switch0 -> group1.switch2"

static const char adaptive[] = DRAGONFLY("8", "8", "4", "1", "adaptive");
static const char minimal[] = DRAGONFLY("8", "8", "4", "1", "minimal");

/* One of 56 global links: what it does not carry is spread over all others. */
START_TEST(adaptive_routing_avoids_failed_and_slow_global_links)
{
    static const char *const links[] = {CHANGE(GLOBAL, "0", "0"), CHANGE(GLOBAL, "0.001", "0"),
                                        CHANGE(GLOBAL, "0", "0.1"), CHANGE(GLOBAL, "0.001", "0.1")};
    const double most = 1.25;
    for (int fluid = 0; fluid < 2; fluid++) {
        struct job job = all_to_all;
        job.fluid = fluid;
        const double whole_s = run_with(adaptive, NULL, &job).result.time_s;
        const double hit_s = run_with(adaptive, links[_i], &job).result.time_s;
        ck_assert_msg(hit_s < most * whole_s, "%g s, %g s with %s", whole_s, hit_s, links[_i]);
    }
}
END_TEST

/* Without the sense for load: the failed link is left out, a slow one is not. */
START_TEST(minimal_routing_avoids_failed_links_only)
{
    const double whole_s = run_with(minimal, NULL, &all_to_all).result.time_s;
    ck_assert_double_lt(run_with(minimal, CHANGE(GLOBAL, "0", "0"), &all_to_all).result.time_s, 2 * whole_s);
    const struct outcome slow = run_with(minimal, CHANGE(GLOBAL, "0", "0.1"), &all_to_all);
    ck_assert_double_gt(slow.result.time_s, 5 * whole_s);
    ck_assert_str_eq(slow.limiting_link, GLOBAL);
}
END_TEST

int main(void)
{
    enum { n_machines = 6, n_changes = 4 };
    TCase *const tests = tcase_create("faults");
    tcase_add_test(tests, what_is_left_of_a_message_goes_another_way);
    tcase_add_test(tests, new_messages_take_a_way_that_works);
    tcase_add_test(tests, without_another_way_a_message_waits);
    tcase_add_test(tests, what_waits_takes_the_first_way_that_comes_back);
    tcase_add_test(tests, a_slow_link_is_busy_by_what_it_could_carry);
    tcase_add_test(tests, the_slow_link_of_a_ring_is_the_limiting_one);
    tcase_add_loop_test(tests, adaptive_routing_is_as_good_as_minimal_under_uniform_traffic, 0, n_machines);
    tcase_add_loop_test(tests, adaptive_routing_avoids_failed_and_slow_global_links, 0, n_changes);
    tcase_add_test(tests, minimal_routing_avoids_failed_links_only);
    Suite *const suite = suite_create("faults");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
