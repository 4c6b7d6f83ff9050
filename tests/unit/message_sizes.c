/* message_sizes.c - software that sends messages above some bytes another way: what a step takes with it, told by steps
 * of software that sends all of them one way. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define WORKLOAD                                                                                                       \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':8,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':64,'tied_embedding':false}"
#define FIGURES(fraction, latency)                                                                                     \
    "'bandwidth_fraction':" fraction ",'peer':{'network_s':" latency "},'tree':{'network_s':" latency "}"
#define SLOW FIGURES("0.5", "1e-5")
#define FAST FIGURES("1", "1e-6")
#define PROTOCOL(keys) "transport.protocols=[{'name':'one'," keys "}]"
#define SLOW_ABOVE(bytes) PROTOCOL(FAST ",'above':{'bytes':" bytes ",'bandwidth_fraction':0.5,'network_s':1e-5}")
#define SEND_BYTES "8192" /* of a microbatch of 1: 32 x 64 activations of 4 bytes */

static const char *const stacks[] = {"{'name':'pipeline','ways':8}", "{'name':'data'}",
                                     "{'name':'pipeline','ways':2},{'name':'tensor','ways':2},{'name':'data'}"};
static const char *const fidelities[] = {"fluid", "step"};

static double step_s(const char *set, int which)
{
    struct dl_session s;
    const struct training_inputs in = {.system = IDEAL_SYSTEM("1e9", "1e-6"),
                                       .device = IDEAL_DEVICE,
                                       .software = "ideal",
                                       .workload = WORKLOAD,
                                       .set = set};
    training_open_stack(&s, in, "'devices':8,'global_batch':32,'microbatch':1,'precision':'fp32'",
                        stacks[which % (int)DL_COUNT(stacks)]);
    stop_unless(!s.err.status, s.err.text);
    s.request.fidelity = fidelities[which / (int)DL_COUNT(stacks)];
    const struct training_outcome out = training_simulate(&s, "simgrid");
    stop_unless(!out.err.status, out.err.text);
    dl_session_close(&s);
    return out.result.step_s;
}

START_TEST(all_messages_above_or_none_are_messages_of_one_kind)
{
    const double slow_s = step_s(PROTOCOL(SLOW), _i), fast_s = step_s(PROTOCOL(FAST), _i);
    ck_assert_double_gt(slow_s, fast_s);
    ck_assert_double_eq(step_s(SLOW_ABOVE("1"), _i), slow_s);
    ck_assert_double_eq(step_s(SLOW_ABOVE("1e12"), _i), fast_s);
}
END_TEST

/* The last bytes that go the usual way are those of the limit. */
START_TEST(sends_of_the_limit_go_the_usual_way_and_larger_ones_do_not)
{
    ck_assert_double_eq(step_s(SLOW_ABOVE(SEND_BYTES), 0), step_s(PROTOCOL(FAST), 0));
    ck_assert_double_eq(step_s(SLOW_ABOVE("8191"), 0), step_s(PROTOCOL(SLOW), 0));
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("message_sizes");
    TCase *const tests = tcase_create("steps");
    tcase_add_loop_test(tests, all_messages_above_or_none_are_messages_of_one_kind, 0,
                        (int)(DL_COUNT(stacks) * DL_COUNT(fidelities)));
    tcase_add_test(tests, sends_of_the_limit_go_the_usual_way_and_larger_ones_do_not);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
