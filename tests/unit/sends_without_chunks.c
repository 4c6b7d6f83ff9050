/* sends_without_chunks.c - software whose sends are batched where stages are not interleaved. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define SOFTWARE(keys)                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a test','attention':'flash','host_s_per_launch':1e-6," keys "}"
#define BATCHES SOFTWARE("'sends':'asynchronous','batches_without_chunks':true")
#define BATCHED SOFTWARE("'sends':'batched','drains_at_sends':true")
#define ASYNCHRONOUS SOFTWARE("'sends':'asynchronous'")
#define WHOLE "{'name':'pipeline','ways':2},{'name':'data'}"
#define INTERLEAVED "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'},{'name':'data'}"

static struct dl_step step_of(const char *software, const char *stack, double *step_s)
{
    struct dl_session t;
    open_step(&t, &(struct step){.software = software,
                                 .workload = FOUR_BLOCKS,
                                 .head = "'global_batch':8,'microbatch':2,'devices':2",
                                 .stack = stack});
    const struct dl_step step = dl_lowered_step(&t.lowered, &t.job.setting);
    *step_s = training_simulate(&t, "simgrid").result.step_s;
    dl_session_close(&t);
    return step;
}

/* As software that always does, or never. */
START_TEST(whole_stages_batch_their_sends)
{
    static const struct {
        const char *stack, *as;
        enum dl_sends sends;
    } cases[] = {{WHOLE, BATCHED, DL_SENDS_BATCHED}, {INTERLEAVED, ASYNCHRONOUS, DL_SENDS_ASYNCHRONOUS}};
    double step_s, same_s;
    const struct dl_step step = step_of(BATCHES, cases[_i].stack, &step_s);
    ck_assert(step.sends == cases[_i].sends && step.drains_at_sends == (cases[_i].sends == DL_SENDS_BATCHED));
    step_of(cases[_i].as, cases[_i].stack, &same_s);
    ck_assert_double_eq(step_s, same_s);
}
END_TEST

/* A stage that sends, and then works on what it has already, goes on meanwhile unless sends are batched. */
START_TEST(who_batches_waits)
{
    double batched_s, asynchronous_s;
    step_of(BATCHES, WHOLE, &batched_s);
    step_of(ASYNCHRONOUS, WHOLE, &asynchronous_s);
    ck_assert_double_gt(batched_s, asynchronous_s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("sends_without_chunks");
    tcase_add_loop_test(tests, whole_stages_batch_their_sends, 0, 2);
    tcase_add_test(tests, who_batches_waits);
    Suite *const suite = suite_create("sends_without_chunks");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
