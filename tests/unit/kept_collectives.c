/* kept_collectives.c - what collectives of ranks in lockstep take stays with the estimator: the next configuration that
 * has them chooses nothing anew, and gets what a new estimator would give. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>

#include "sim/collective/kept.h"
#include "strategies/lower.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

static void lower(struct dl_session *t, struct dl_estimator *e, struct dl_lowered *out)
{
    dl_lower(&(struct dl_lower_request){.job = &t->job,
                                        .model = &t->model,
                                        .device = &t->device,
                                        .estimator = e,
                                        .device_of_rank = t->device_of_rank},
             t->arena, out, &t->err);
    ck_assert_msg(!t->err.status, "%s", t->err.text);
}

START_TEST(collectives_in_lockstep_are_chosen_once)
{
    struct dl_session t;
    struct dl_lowered again, anew;
    struct dl_estimator own;
    const struct training_inputs in = {
        .system = "selene", .device = "a100-80", .software = "megatron-2021", .workload = "gpt-22b"};
    ck_assert(!training_open_stack(&t, in, "'devices':8,'global_batch':8",
                                   "{'name':'tensor','ways':4,'sequence':true},{'name':'pipeline','ways':2},"
                                   "{'name':'data'}"));
    const size_t n = t.estimator.kept ? dl_kept_count(t.estimator.kept) : 0;
    ck_assert_uint_gt(n, 0);
    lower(&t, &t.estimator, &again);
    ck_assert_uint_eq(dl_kept_count(t.estimator.kept), n);
    dl_estimator_init(&own, t.machine.topology, &t.machine.transport, t.machine.bytes_per_s);
    own.fluid = t.estimator.fluid;
    own.by_message = t.estimator.by_message;
    lower(&t, &own, &anew);
    ck_assert_uint_eq(again.n_calls, anew.n_calls);
    for (size_t i = 0; i < anew.n_calls; i++) {
        ck_assert(again.calls[i].alone_s == anew.calls[i].alone_s);
        ck_assert(again.calls[i].n_bundles == anew.calls[i].n_bundles);
    }
    dl_lowered_release(&again, 2);
    dl_lowered_release(&anew, 2);
    dl_estimator_release(&own);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("kept_collectives");
    tcase_add_test(tests, collectives_in_lockstep_are_chosen_once);
    Suite *const suite = suite_create("kept_collectives");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
