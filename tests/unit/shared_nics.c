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
    const struct dl_run_report report = {.topology = t.machine.topology,
                                         .job = &t.job,
                                         .lowered = &t.lowered,
                                         .device_of_rank = t.device_of_rank,
                                         .result = outcome.result};
    const struct dl_training_result *const r = &outcome.result;
    const double hidden_s = r->busy_s[DL_CAUSE_DATA] - r->exposed_s[DL_CAUSE_DATA];
    const double both_s = hidden_s / r->step_s * r->exposed_s[DL_CAUSE_EXPERT];
    if (cases[_i].shares) ck_assert_double_gt(both_s, 0);
    check_close("shared", dl_shared_nics_s(&report), cases[_i].shares ? both_s : 0, 1e-12);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("shared_nics");
    tcase_add_loop_test(tests, what_overlaps_on_nics_is_told, 0, 4);
    Suite *const suite = suite_create("shared_nics");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
