/* free_running.c - steps without a barrier between them: what a run looks at by itself is a step among others. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>

#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define GPT                                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':8,'hidden':512,'heads':8,"           \
    "'seq':128,'vocab':1024,'tied_embedding':false}"

static double step_s(const char *schedule, const char *set, uint64_t iterations)
{
    struct dl_session s;
    char stack[100];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':4,'schedule':'%s'}", schedule);
    training_open_stack(&s,
                        (struct training_inputs){.system = IDEAL_SYSTEM("1e18", "0"),
                                                 .device = IDEAL_DEVICE,
                                                 .software = "ideal",
                                                 .workload = GPT,
                                                 .set = set},
                        "'devices':4,'global_batch':8,'microbatch':1,'precision':'bf16'", stack);
    ck_assert_msg(!s.err.status, "%s", s.err.text);
    if (iterations) s.request.iterations = iterations;
    const struct training_outcome out = training_simulate(&s, "simgrid");
    dl_session_close(&s);
    ck_assert_msg(!out.err.status, "%s", out.err.text);
    return out.result.step_s;
}

/* Stages of zb-2p end one after the other, as they began: each goes on with the next step at once. Of 1f1b the first
 * ends last, and holds all others up. */
START_TEST(without_a_barrier_steps_run_into_each_other)
{
    static const char *const schedules[] = {"1f1b", "zb-2p"};
    const char *const schedule = schedules[_i], free_running[] = "software.step_barrier=false";
    const double rounding = 1e-9, by_itself_s = step_s(schedule, free_running, 0);
    const double fourth_s = step_s(schedule, free_running, 4), held_s = step_s(schedule, NULL, 0);
    ck_assert_double_eq_tol(by_itself_s, fourth_s, rounding * fourth_s);
    if (_i)
        ck_assert_double_lt(by_itself_s, (1 - rounding) * held_s);
    else
        ck_assert_double_eq_tol(by_itself_s, held_s, rounding * held_s);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("free_running");
    TCase *const tests = tcase_create("free_running");
    tcase_add_loop_test(tests, without_a_barrier_steps_run_into_each_other, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
