/* rings_beside_rings.c - two rings that share the NICs of their nodes, estimated and simulated: latencies pass while
 * the NIC moves, but what the NIC moves takes its time. */
#include <check.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

#define BYTES_PER_S "1e9"
/* Four nodes of four devices with one NIC. */
#define ONE_NIC                                                                                                        \
    "{\"schema\":\"dlsim/system/1\",\"source\":\"a test\",\"nodes\":4,\"transport\":\"ideal\",\"node\":{\"device\":"   \
    "\"v100\",\"devices\":4,\"parts\":[{\"kind\":\"switch\",\"bandwidth_bytes_per_s\":1e12,\"latency_s\":1e-5,"        \
    "\"link\":\"ideal\"}],\"nics\":{\"count\":1,\"attach\":[\"nvswitch0\"],\"bandwidth_bytes_per_s\":" BYTES_PER_S     \
    ",\"latency_s\":1e-5,\"link\":\"ideal\"}},\"network\":{\"kind\":\"crossbar\",\"link\":\"ideal\","                  \
    "\"bandwidth_bytes_per_s\":1e12,\"latency_s\":1e-5}}"
enum { n_ranks = 8, n_groups = 2 };
static const uint32_t devices[n_groups][n_ranks + 1] = {{0, 1, 4, 5, 8, 9, 12, 13, 2}, {2, 3, 6, 7, 10, 11, 14, 15, 0}};

static void run(double bytes, size_t n, struct outcome *outcomes)
{
    const struct setting setting = {.system = "a test", .text = ONE_NIC, .engine = "simgrid"};
    struct job jobs[n_groups];
    for (size_t i = 0; i < n; i++)
        jobs[i] = (struct job){.op = DL_ALLREDUCE,
                               .algorithm = "ring",
                               .n = n_ranks,
                               .bytes = bytes,
                               .chunks = 1,
                               .device = devices[i],
                               .with_previous = i > 0};
    run_jobs(&setting, jobs, n, outcomes);
}

START_TEST(a_crowded_ring_takes_as_long_as_simulated)
{
    const double bytes = 1e6, rounding = 1e-9;
    const double nic_s = 2. * (n_ranks - 1) / n_ranks * bytes / strtod(BYTES_PER_S, NULL);
    struct outcome alone[n_groups], both[n_groups];
    run(bytes, 1, alone);
    run(bytes, n_groups, both);
    ck_assert_double_eq_tol(alone->estimate_s, alone->result.time_s, rounding * alone->result.time_s);
    ck_assert_double_eq_tol(both->crowded_s, both->result.time_s, rounding * both->result.time_s);
    ck_assert_double_ge(both->crowded_s, n_groups * nic_s);
    ck_assert_double_eq_tol(both->crowded_s - both->estimate_s, nic_s, rounding * nic_s);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("rings_beside_rings");
    TCase *const tests = tcase_create("rings");
    tcase_add_test(tests, a_crowded_ring_takes_as_long_as_simulated);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
