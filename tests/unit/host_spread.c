/* host_spread.c - hosts that do not take the same time for the same step: ranks wait for the last of them, unless the
 * device sets the pace. Hosts of a machine may all be slower than the one that software was timed on. */
#include "tests/unit/divided_step.h"

#define SOFTWARE(launch_s, spread)                                                                                     \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':" launch_s ",'collective_host_s':" launch_s    \
    ",'host_spread_fraction':" spread "}"
#define MLP "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[512,1024,512]}"

/* On so many ranks that sum gradients in no time, with a value of --set or none. */
static double step_with_s(const char *set, const char *software, const char *engine, uint32_t n)
{
    char head[100];
    struct dl_session t;
    snprintf(head, sizeof head, "'global_batch':%u,'microbatch':1,'precision':'fp16','devices':%u", n, n);
    const struct training_inputs inputs = {
        .system = FAST_SYSTEM, .device = IDEAL_DEVICE, .software = software, .workload = MLP, .set = set};
    training_open_stack(&t, inputs, head, "{'name':'data'}");
    ck_assert_msg(!t.err.status, "%s", t.err.text);
    const double seconds = training_simulate(&t, engine).result.step_s;
    dl_session_close(&t);
    return seconds;
}

static double step_s(const char *software, const char *engine, uint32_t n)
{
    return step_with_s(NULL, software, engine, n);
}

static const char *const engines[] = {"simgrid", "analytic"};

/* E max(x, y) = 2 P(z < deviation / sqrt 2) of two that are lognormal with mean 1. */
START_TEST(two_ranks_wait_for_the_slower_host)
{
    const double spread = 0.14, deviation = sqrt(log1p(spread * spread)), slower = erfc(-deviation / 2);
    const double all_alike_s = step_s(SOFTWARE("1", "0"), engines[_i], 2);
    ck_assert_double_eq_tol(step_s(SOFTWARE("1", "0.14"), engines[_i], 2) / all_alike_s, slower, 1e-6);
    ck_assert_double_gt(step_s(SOFTWARE("1", "0.14"), engines[_i], 4) / all_alike_s, slower);
    ck_assert_double_eq(step_s(SOFTWARE("1", "0.14"), engines[_i], 1), step_s(SOFTWARE("1", "0"), engines[_i], 1));
}
END_TEST

START_TEST(a_device_that_sets_the_pace_does_not_notice)
{
    ck_assert_double_eq_tol(
        step_s(SOFTWARE("1e-12", "1"), engines[_i], 4) / step_s(SOFTWARE("1e-12", "0"), engines[_i], 4), 1, 1e-3);
}
END_TEST

START_TEST(a_slow_host_takes_so_many_times_as_long)
{
    static const char slow[] = "topo.node.host.slowdown=3";
    ck_assert_double_eq_tol(step_with_s(slow, SOFTWARE("0.25", "0"), engines[_i], 2),
                            step_s(SOFTWARE("0.75", "0"), engines[_i], 2), 1e-9);
    ck_assert_double_eq_tol(step_with_s(slow, SOFTWARE("0.25", "0.14"), engines[_i], 2),
                            step_s(SOFTWARE("0.75", "0.14"), engines[_i], 2), 1e-9);
}
END_TEST

/* Every key with such a name. */
START_TEST(whatever_software_takes_of_the_host_is_slowed)
{
    size_t n, n_of_hosts = 0;
    const struct dl_field *const fields = dl_software_fields(&n);
    for (size_t i = 0; i < n; i++) {
        if (!strstr(fields[i].key, "host_s") || strstr(fields[i].key, "host_spread")) continue;
        struct dl_software software = {0};
        ck_assert_uint_le(fields[i].offset + sizeof(double), sizeof software);
        double *const seconds = (double *)((char *)&software + fields[i].offset);
        *seconds = 1;
        dl_software_slow_hosts(&software, 3);
        ck_assert_msg(*seconds == 3, "%s", fields[i].key);
        n_of_hosts++;
    }
    ck_assert_uint_gt(n_of_hosts, 10);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("host_spread");
    tcase_add_loop_test(tests, two_ranks_wait_for_the_slower_host, 0, DL_COUNT(engines));
    tcase_add_loop_test(tests, a_device_that_sets_the_pace_does_not_notice, 0, DL_COUNT(engines));
    tcase_add_loop_test(tests, a_slow_host_takes_so_many_times_as_long, 0, DL_COUNT(engines));
    tcase_add_test(tests, whatever_software_takes_of_the_host_is_slowed);
    Suite *const suite = suite_create("host_spread");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
