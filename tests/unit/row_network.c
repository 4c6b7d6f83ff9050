/* row_network.c - jobs that measured their network run on one that is as slow. */
#include "sim/collective/choose.h"
#include "tests/unit/row_fixture.h"
#include "topologies/placement.h"

enum { devices = 64, nodes = 8 };
static const double tested_bytes = 1 << 30;

static double collective_s(enum dl_op op, const struct dl_texts *set)
{
    struct dl_machine m = {0};
    struct dl_group group;
    struct dl_estimator estimator;
    struct dl_choice choice;
    uint32_t device[devices];
    ck_assert_msg(!dl_machine_open((struct dl_input){.name = "p5"}, set, arena, &m, &err), "%s", err.text);
    ck_assert(!dl_place(m.topology, "even", 0, devices, device, &err));
    dl_group_init(&group, m.topology, device, devices, arena);
    ck_assert_msg(!dl_machine_use_transport(&m, NULL, nodes, set, arena, &err), "%s", err.text);
    dl_estimator_init(&estimator, m.topology, &m.transport, m.bytes_per_s);
    const struct dl_wish wish = {
        .op = op, .algorithm = "auto", .protocol = "auto", .group = &group, .bytes = tested_bytes};
    ck_assert_msg(!dl_choose(&estimator, &wish, arena, &choice, &err), "%s", err.text);
    dl_estimator_release(&estimator);
    dl_machine_close(&m);
    return choice.estimate.time_s;
}

/* An all-reduce that takes no time was not measured. */
static struct dl_session_request measured_both(double gather_s, double reduce_s)
{
    const double moved = tested_bytes * (devices - 1) / devices;
    const struct dl_training_row row = {.topo = "p5",
                                        .devices = devices,
                                        .tested = {.bytes = tested_bytes,
                                                   .allgather_bytes_per_s = moved / gather_s,
                                                   .allreduce_bytes_per_s = reduce_s > 0 ? 2 * moved / reduce_s : 0}};
    struct dl_session_request request = {.engine = "analytic"};
    ck_assert_msg(!dl_row_network(&row, arena, &request, &err), "%s", err.text);
    return request;
}

static struct dl_session_request measured(double gather_s) { return measured_both(gather_s, 0); }

/* The machine then takes what the job took, and one that is as fast as expected stays as it is. */
START_TEST(a_slow_network_has_slow_hops)
{
    const double expected_s = collective_s(DL_ALLGATHER, &(struct dl_texts){.n = 0}), more_s = nodes * 0.25e-3;
    const struct dl_session_request as_expected = measured(0.99 * expected_s), slow = measured(expected_s + more_s);
    ck_assert_uint_eq(as_expected.set.n, 0);
    ck_assert_uint_ge(slow.set.n, 1);
    ck_assert_double_eq_tol(collective_s(DL_ALLGATHER, &slow.set), expected_s + more_s, 1e-3 * more_s);
}
END_TEST

/* What an all-reduce takes even with hops as slow as those of the all-gather is the rate of the network. */
START_TEST(a_slow_all_reduce_has_a_slow_rate)
{
    const struct dl_texts none = {.n = 0};
    const double gather_s = collective_s(DL_ALLGATHER, &none) + nodes * 0.25e-3;
    const struct dl_session_request hops = measured(gather_s);
    const double with_hops_s = collective_s(DL_ALLREDUCE, &hops.set), reduce_s = 1.5 * with_hops_s;
    const struct dl_session_request slow = measured_both(gather_s, reduce_s),
                                    as_expected = measured_both(gather_s, 0.9 * with_hops_s);
    ck_assert_double_gt(with_hops_s, collective_s(DL_ALLREDUCE, &none));
    ck_assert_uint_eq(slow.set.n, hops.set.n + 1);
    ck_assert_ptr_nonnull(strstr(slow.set.items[hops.set.n], "transport.efficiency.efa2="));
    ck_assert_double_eq_tol(collective_s(DL_ALLREDUCE, &slow.set), reduce_s, 1e-3 * reduce_s);
    ck_assert_uint_eq(as_expected.set.n, hops.set.n);
}
END_TEST

START_TEST(what_no_network_takes_is_the_hosts)
{
    const double seconds = 20e-3;
    const struct dl_session_request slow = measured(seconds);
    double each_s;
    ck_assert_uint_eq(slow.set.n, 1);
    ck_assert_int_eq(sscanf(slow.set.items[0], "software.collective_rank_host_s=%lf", &each_s), 1);
    ck_assert_double_eq_tol(each_s, seconds / devices, 1e-12);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("networks of rows");
    TCase *const tests = tcase_create("networks of rows");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_slow_network_has_slow_hops);
    tcase_add_test(tests, a_slow_all_reduce_has_a_slow_rate);
    tcase_add_test(tests, what_no_network_takes_is_the_hosts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
