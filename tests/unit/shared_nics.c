/* shared_nics.c - what priced collectives may hide that overlap on the same NICs, against what a step is made of. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/plan/plan.h"
#include "sim/report/shared_nics.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

/* Two nodes of four devices with a NIC each. */
#define TWO_NODES                                                                                                      \
    "{'schema':'dlsim/system/1','source':'a test','nodes':2,'transport':'ideal','node':{'device':'a test',"            \
    "'devices':4,'parts':[{'kind':'switch','bandwidth_bytes_per_s':1e9,'latency_s':0,'link':'ideal'}],"                \
    "'nics':{'count':4,'attach':['device0','device1','device2','device3'],'bandwidth_bytes_per_s':1e8,'latency_s':0,"  \
    "'link':'ideal'}},'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e15,'latency_s':0}}"

static struct dl_run_report report_of(const struct dl_session *t, const struct dl_training_result *result)
{
    return (struct dl_run_report){.topology = t->machine.topology,
                                  .job = &t->job,
                                  .lowered = &t->lowered,
                                  .device_of_rank = t->device_of_rank,
                                  .result = *result};
}

static double shared_s(const struct dl_session *t, const struct dl_training_result *result)
{
    const struct dl_run_report report = report_of(t, result);
    return dl_shared_nics_s(&report);
}

/* With experts over both nodes, and only then, they meet sums over replicas that overlap with work; simulated, they
 * have their share of the NICs already. */
START_TEST(what_overlaps_on_nics_is_told)
{
    static const struct {
        const char *stack;
        bool is_priced, shares;
    } cases[] = {
        {"{'name':'expert','ways':8},{'name':'data','overlap':true}", true, true},
        {"{'name':'expert','ways':8},{'name':'data','overlap':true}", false, false},
        {"{'name':'expert','ways':4},{'name':'data','overlap':true}", true, false},
        {"{'name':'expert','ways':8},{'name':'data','overlap':false}", true, false},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.system = TWO_NODES,
                                 .workload = SMALL_EXPERTS("8", ""),
                                 .head = "'global_batch':16,'microbatch':2,'devices':8",
                                 .stack = cases[_i].stack});
    if (cases[_i].is_priced) dl_plan_nothing(&t.lowered);
    const struct training_outcome outcome = training_simulate(&t, "analytic");
    ck_assert(outcome.result.complete);
    const double shared = shared_s(&t, &outcome.result);
    ck_assert(cases[_i].shares ? shared > 0 : shared == 0);
    dl_session_close(&t);
}
END_TEST

static double open_and_run(struct dl_session *t, const char *stack, bool is_priced, const char *engine, double *shared)
{
    open_step(t, &(struct step){.system = TWO_NODES,
                                .workload = SMALL_EXPERTS("8", ""),
                                .head = "'global_batch':32,'microbatch':2,'devices':8",
                                .stack = stack});
    if (is_priced) dl_plan_nothing(&t->lowered);
    const struct training_outcome outcome = training_simulate(t, engine);
    *shared = shared_s(t, &outcome.result);
    dl_session_close(t);
    return outcome.result.step_s;
}

START_TEST(simulated_steps_take_no_more)
{
    static const char *const stacks[] = {
        "{'name':'expert','ways':8},{'name':'data','overlap':true}",
        "{'name':'expert','ways':8,'overlap':true},{'name':'data','overlap':true}",
        "{'name':'expert','ways':8},{'name':'data','overlap':true},{'name':'zero','stage':2}",
        "{'name':'expert','ways':4},{'name':'tensor','ways':2,'sequence':true},{'name':'data','overlap':true}",
    };
    struct dl_session t;
    double most, none;
    const double priced_s = open_and_run(&t, stacks[_i], true, "analytic", &most);
    const double simulated_s = open_and_run(&t, stacks[_i], false, "simgrid", &none);
    ck_assert_double_gt(most, 0);
    ck_assert_double_gt(simulated_s, 1.0001 * priced_s);
    ck_assert_double_le(simulated_s, 1.0001 * (priced_s + most));
}
END_TEST

/* Tokens that go to nodes first are priced by every engine. */
START_TEST(another_engine_is_named_only_where_it_helps)
{
    static const char *const stacks[] = {"{'name':'expert','ways':8},{'name':'data','overlap':true}",
                                         "{'name':'expert','ways':8,'dispatch':'to_nodes'},"
                                         "{'name':'data','overlap':true}"};
    struct dl_session t;
    open_step(&t, &(struct step){.system = TWO_NODES,
                                 .workload = SMALL_EXPERTS("8", ""),
                                 .head = "'global_batch':32,'microbatch':2,'devices':8",
                                 .stack = stacks[_i]});
    dl_plan_nothing(&t.lowered);
    const struct training_outcome outcome = training_simulate(&t, "analytic");
    struct dl_run_report report = report_of(&t, &outcome.result);
    report.is_alone = true;
    FILE *const out = stdout;
    char *text = NULL;
    size_t n;
    stdout = open_memstream(&text, &n);
    dl_shared_nics_print(&report);
    fclose(stdout);
    stdout = out;
    ck_assert_ptr_nonnull(strstr(text, "up to"));
    ck_assert((strstr(text, "simgrid") != NULL) == (_i == 0));
    free(text);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("shared_nics");
    tcase_add_loop_test(tests, what_overlaps_on_nics_is_told, 0, 4);
    tcase_add_loop_test(tests, simulated_steps_take_no_more, 0, 4);
    tcase_add_loop_test(tests, another_engine_is_named_only_where_it_helps, 0, 2);
    Suite *const suite = suite_create("shared_nics");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
