/* blocking_launches.c - where every launch waits for the device, host and device take turns, and nothing overlaps. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512}"
#define BATCH_S 3e-3
#define SOFTWARE(keys)                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-3,'collective_host_s':2e-3,"                \
    "'batch_host_s':3e-3,'attention':'flash','sends':'blocking','send_host_s':5e-3" keys "}"
#define TENSOR "{'name':'tensor','ways':2},{'name':'data'}"
#define BLOCKING ",{'name':'blocking_launches','wait_s':0}"

static const double exactly = 1e-9;

static struct step step_of(const char *head, const char *software, const char *stack)
{
    return (struct step){.system = FAST_SYSTEM, .software = software, .workload = MODEL, .head = head, .stack = stack};
}

static void open_two(struct dl_session *eager, struct dl_session *blocking, const char *head, const char *software,
                     const char *const stacks[2])
{
    const struct step one = step_of(head, software, stacks[0]), two = step_of(head, software, stacks[1]);
    open_step(eager, &one);
    open_step(blocking, &two);
}

static double sum_of(const struct dl_template *t, bool of_host)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        sum += of_host ? t->instructions[i].host_s : t->instructions[i].device_s;
    return sum;
}

START_TEST(the_time_of_the_host_adds_to_that_of_the_device)
{
    static const char *const stacks[] = {TENSOR, TENSOR BLOCKING};
    struct dl_session eager, blocking;
    open_two(&eager, &blocking, "'global_batch':8,'microbatch':2,'devices':4", SOFTWARE(""), stacks);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double batch_s = kind == DL_ITEM_F ? BATCH_S : 0; /* which the device waits for anyway */
        const double both_s = sum_of(item(&eager, kind), true) + sum_of(item(&eager, kind), false);
        check_close("host", cause_s(&blocking, kind, DL_CAUSE_HOST), sum_of(item(&eager, kind), true), exactly);
        check_close("all", sum_of(item(&blocking, kind), false) + batch_s, both_s, exactly);
        ck_assert_double_gt(cause_s(&blocking, kind, DL_CAUSE_HOST), batch_s);
    }
    dl_session_close(&eager);
    dl_session_close(&blocking);
}
END_TEST

/* Kernels and collectives take the host as long here, so that its time tells how many launches there are. */
START_TEST(each_launch_adds_the_wait_for_it)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-3,"
                                   "'collective_host_s':1e-3,'attention':'flash'}";
    static const char *const stacks[] = {TENSOR BLOCKING, TENSOR ",{'name':'blocking_launches','wait_s':1e-5}"};
    struct dl_session at_once, waiting;
    open_two(&at_once, &waiting, "'global_batch':8,'microbatch':2,'devices':4", software, stacks);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double launches = cause_s(&at_once, kind, DL_CAUSE_HOST) / 1e-3;
        ck_assert_double_gt(launches, 10);
        check_close("wait", sum_of(item(&waiting, kind), false) - sum_of(item(&at_once, kind), false), launches * 1e-5,
                    1e-6);
    }
    dl_session_close(&at_once);
    dl_session_close(&waiting);
}
END_TEST

/* Sums of tensor ranks that would go beside gradients of weights come after them, as in software that has no overlap;
 * so do those of replicas, with all that the host takes. */
START_TEST(nothing_goes_on_beside_anything)
{
    static const char *const stacks[] = {"{'name':'tensor','ways':2},{'name':'data'}" BLOCKING,
                                         "{'name':'tensor','ways':2},{'name':'data','overlap':true}" BLOCKING};
    struct step step = step_of("'global_batch':4,'microbatch':2,'devices':4", SOFTWARE(""), stacks[0]);
    struct step overlaps =
        step_of("'global_batch':4,'microbatch':2,'devices':4", SOFTWARE(",'overlaps_tensor':true"), stacks[1]);
    struct dl_session plain, other;
    step.system = overlaps.system = SLOW_SYSTEM;
    open_step(&plain, &step);
    open_step(&other, &overlaps);
    const struct training_outcome a = training_simulate(&plain, "simgrid"), b = training_simulate(&other, "simgrid");
    ck_assert(!a.err.status && !b.err.status);
    check_close("tensor", b.result.exposed_s[DL_CAUSE_TENSOR], a.result.exposed_s[DL_CAUSE_TENSOR], exactly);
    check_close("compute", b.result.exposed_s[DL_CAUSE_COMPUTE], a.result.exposed_s[DL_CAUSE_COMPUTE], exactly);
    ck_assert_double_eq(b.result.exposed_s[DL_CAUSE_INTERFERENCE], 0);
    ck_assert_double_ge(b.result.exposed_s[DL_CAUSE_HOST], a.result.exposed_s[DL_CAUSE_HOST]);
    dl_session_close(&plain);
    dl_session_close(&other);
}
END_TEST

START_TEST(what_cannot_block_is_refused)
{
    const char *const graphs = "{'name':'data'},{'name':'graphs','scope':'step'}" BLOCKING;
    const struct step both = step_of("'global_batch':8", SOFTWARE(""), graphs);
    check_refusal(&both, "test.json:/stack/2: graphs replay what is launched here; leave out one of the two");
    const struct step sends =
        step_of("'global_batch':8", "{'schema':'dlsim/software/1','source':'a test','sends':'asynchronous'}",
                "{'name':'pipeline','ways':2},{'name':'data'}" BLOCKING);
    check_refusal(&sends, "test.json:/stack/2: test sends from stage to stage without waiting, which blocking launches "
                          "rule out");
}
END_TEST

/* Stages that are not interleaved batch their sends in some software whose others do not wait. */
START_TEST(what_is_sent_in_batches_may_block)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','sends':'asynchronous',"
                                   "'batches_without_chunks':true,'attention':'flash'}";
    const char *const head = "'global_batch':8,'microbatch':2,'devices':2";
    const struct step whole = step_of(head, software, "{'name':'pipeline','ways':2},{'name':'data'}" BLOCKING);
    struct dl_session t;
    open_step(&t, &whole);
    dl_session_close(&t);
    struct step interleaved = step_of(
        head, software, "{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'},{'name':'data'}" BLOCKING);
    interleaved.workload = FOUR_BLOCKS;
    check_refusal(&interleaved, "test.json:/stack/2: test sends from stage to stage without waiting, which blocking "
                                "launches rule out");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("blocking launches");
    tcase_add_test(tests, the_time_of_the_host_adds_to_that_of_the_device);
    tcase_add_test(tests, each_launch_adds_the_wait_for_it);
    tcase_add_test(tests, nothing_goes_on_beside_anything);
    tcase_add_test(tests, what_cannot_block_is_refused);
    tcase_add_test(tests, what_is_sent_in_batches_may_block);
    Suite *const suite = suite_create("blocking launches");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
