/* remedies.c - what would make a step fit is what fits when it is done. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/memory/remedies.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define MODEL_WITH(keys)                                                                                               \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':16,'hidden':512,'heads':8,"          \
    "'seq':512,'vocab':4096" keys "}"
#define MODEL MODEL_WITH("")
#define SYSTEM IDEAL_SYSTEM("1e9", "0")

static struct dl_session training;

static void open_job_of(const char *workload, const char *head, const char *stack)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = PLAIN_SOFTWARE, .workload = workload};
    ck_assert_msg(!training_open_stack(&training, inputs, head, stack), "%s", training.err.text);
}

static void open_job(const char *head, const char *stack) { open_job_of(MODEL, head, stack); }

static double peak(void)
{
    double most = 0;
    for (uint32_t i = 0; i < training.job.setting.ways[DL_AXIS_PIPELINE]; i++)
        most = fmax(most, training.memory[i].peak);
    return most;
}

static double peak_of(const char *head, const char *stack)
{
    open_job(head, stack);
    const double bytes = peak();
    dl_session_close(&training);
    return bytes;
}

static struct dl_remedies find(double memory_bytes)
{
    struct dl_remedies found;
    training.device.memory_bytes = memory_bytes;
    dl_remedies_find(&(struct dl_remedy_request){.strategy = training.strategy_doc,
                                                 .workload = training.workload_doc,
                                                 .n_devices = training.job.n_devices,
                                                 .software = &training.software,
                                                 .device = &training.device,
                                                 .estimator = &training.estimator,
                                                 .placement = training.request.placement},
                     training.arena, &found);
    return found;
}

static double promised(const struct dl_remedies *found, const char *change)
{
    for (size_t i = 0; i < found->n; i++)
        if (strcmp(found->items[i].change, change) == 0) return found->items[i].peak;
    ck_abort_msg("'%s' is not among the %zu remedies", change, found->n);
    return 0;
}

#define HEAD "'devices':4,'global_batch':16,'microbatch':4"
#define STACK "{'name':'data'}"

static const struct {
    const char *change, *head, *stack;
} promises[] = {
    {"recompute selective", HEAD ",'recompute':'selective'", STACK},
    {"microbatch 2", "'devices':4,'global_batch':16,'microbatch':2", STACK},
    {"tensor 2 ways", HEAD, STACK ",{'name':'tensor','ways':2}"},
    {"pipeline 2 ways", HEAD, STACK ",{'name':'pipeline','ways':2}"},
    {"offload of activations", HEAD, STACK ",{'name':'offload','activations':1}"},
};

/* Done by hand, each change gives the promised peak. */
START_TEST(a_remedy_keeps_its_promise)
{
    const double done = peak_of(promises[_i].head, promises[_i].stack);
    open_job(HEAD, STACK);
    const double before = peak();
    ck_assert_double_lt(done, before);
    struct dl_remedies found = find(done); /* so that nothing smaller is needed */
    ck_assert_double_eq(promised(&found, promises[_i].change), done);
    for (size_t i = 0; i < found.n; i++) ck_assert(found.items[i].fits && found.items[i].peak <= done);
    dl_remedies_release(&found);
    dl_session_close(&training);
}
END_TEST

/* Sequence-parallel ranks on hosts that are ahead: what lingers counts, where communicators are made late. */
#define HOLDING                                                                                                        \
    "{'schema':'dlsim/software/1','source':'a test','attention':'flash','host_s_per_launch':1e-12,"                    \
    "'drains_at_batches':false,'drains_at_end':false,'launch_queue':1e6}"
#define SEQUENCES STACK ",{'name':'tensor','ways':2,'sequence':true}"

static double peak_with_beside(const char *head, double *beside)
{
    const struct training_inputs inputs = {
        .system = SYSTEM, .device = IDEAL_DEVICE, .software = HOLDING, .workload = MODEL};
    ck_assert_msg(!training_open_stack(&training, inputs, head, SEQUENCES), "%s", training.err.text);
    *beside = training.memory[0].beside;
    return training.memory[0].peak + *beside;
}

START_TEST(a_remedy_counts_what_lingers)
{
    double beside;
    const double done = peak_with_beside("'devices':4,'global_batch':16,'microbatch':2", &beside);
    dl_session_close(&training);
    ck_assert_double_gt(beside, 0);
    ck_assert_double_gt(peak_with_beside(HEAD, &beside), done);
    struct dl_remedies found = find(done), fewer = find(done - 1);
    ck_assert_double_eq(promised(&found, "microbatch 2"), done);
    for (size_t i = 0; i < fewer.n; i++) ck_assert_str_ne(fewer.items[i].change, "microbatch 2");
    dl_remedies_release(&found);
    dl_remedies_release(&fewer);
    dl_session_close(&training);
}
END_TEST

/* What no single change gives, several do; and what nothing gives is said to be not enough. */
START_TEST(changes_come_together_where_one_is_not_enough)
{
    open_job(HEAD, STACK);
    struct dl_remedies single = find(peak() * 0.99), several = {0};
    double least = peak();
    for (size_t i = 0; i < single.n; i++) least = fmin(least, single.items[i].peak);
    several = find(least / 8);
    ck_assert_uint_ge(several.n, 1);
    ck_assert(several.items[0].fits && strstr(several.items[0].change, " and "));
    dl_remedies_release(&several);
    several = find(1);
    ck_assert_uint_eq(several.n, 1);
    ck_assert(!several.items[0].fits && several.items[0].peak > 1 && several.items[0].peak < least);
    dl_remedies_release(&several);
    dl_remedies_release(&single);
    dl_session_close(&training);
}
END_TEST

/* A key that is short for a strategy may have a fact, which goes with it. */
START_TEST(a_key_with_a_fact_gives_way)
{
    const double done = peak_of(HEAD ",'recompute':'full'", STACK);
    open_job(HEAD ",'recompute':'none','facts':{'recompute':'assumed: a test'}", STACK);
    struct dl_remedies found = find(done);
    (void)promised(&found, "recompute full");
    dl_remedies_release(&found);
    dl_session_close(&training);
}
END_TEST

/* Of eight heads with two of keys and values: a rank has one of the eight at least, and may have a copy of the two. */
START_TEST(tensor_ranks_share_no_head)
{
    static const double fractions[] = {0.9, 0.5, 0.25, 0.1, 1e-9}; /* of the memory that it takes */
    open_job_of(MODEL_WITH(",'kv_heads':2"), HEAD, STACK);
    const double all = peak();
    for (size_t i = 0; i < DL_COUNT(fractions); i++) {
        struct dl_remedies found = find(all * fractions[i]);
        for (size_t j = 0; j < found.n; j++) {
            const char *const tensor = strstr(found.items[j].change, "tensor ");
            if (tensor) ck_assert_msg(atoi(tensor + strlen("tensor ")) <= 8, "%s", found.items[j].change);
        }
        dl_remedies_release(&found);
    }
    dl_session_close(&training);
}
END_TEST

/* A list names the devices of a run: more than these it has no place for. */
START_TEST(a_listed_run_gets_no_more_devices)
{
    open_job("'devices':1,'global_batch':16,'microbatch':4", STACK);
    for (int listed = 0; listed < 2; listed++) {
        bool has_more = false;
        if (listed) training.request.placement = "list:0";
        struct dl_remedies found = find(peak() * 0.99);
        for (size_t i = 0; i < found.n; i++) has_more |= strstr(found.items[i].change, " devices") != NULL;
        ck_assert_uint_gt(found.n, 0);
        ck_assert_int_eq(has_more, !listed);
        dl_remedies_release(&found);
    }
    dl_session_close(&training);
}
END_TEST

static bool is_found(const struct dl_remedies *found, const char *part)
{
    for (size_t i = 0; i < found->n; i++)
        if (strstr(found->items[i].change, part)) return true;
    return false;
}

/* What the software lacks is no remedy, but for a run that has it already. */
START_TEST(software_does_what_it_can)
{
    static const char *const reliefs[] = {"tensor",       "pipeline",     "zero stage 1",
                                          "zero stage 2", "zero stage 3", "offload"};
    static const struct {
        const char *software, *stack;
        bool finds[DL_COUNT(reliefs)];
    } runs[] = {
        {"'batch_host_s':0", STACK, {true, true, true, false, false, true}},
        {"'lacks':['tensor','zero 1']", STACK, {false, true, false, true, false, true}},
        {"'lacks':['pipeline','zero 1','zero 2','zero 3']", STACK, {true, false, false, false, false, true}},
        {"'lacks':['tensor','zero 1']",
         "{'name':'tensor','ways':2},{'name':'data'}",
         {true, true, false, true, false, true}},
        {"'lacks':['zero 2']",
         "{'name':'data'},{'name':'zero','overlap':true}",
         {true, true, false, false, true, true}},
        {"'lacks':['offload']", STACK ",{'name':'input','from':'memory'}", {true, true, true, false, false, false}},
    };
    char software[500];
    snprintf(software, sizeof software, "{'schema':'dlsim/software/1','source':'a test',%s}", runs[_i].software);
    const struct training_inputs inputs = {.system = SYSTEM,
                                           .device = IDEAL_DEVICE,
                                           .software = software,
                                           .workload = MODEL_WITH(",'samples':{'count':1000,'stored_bytes':1e6}")};
    ck_assert_msg(!training_open_stack(&training, inputs, HEAD, runs[_i].stack), "%s", training.err.text);
    struct dl_remedies found = find(peak() * 0.99);
    for (size_t i = 0; i < DL_COUNT(reliefs); i++)
        ck_assert_msg(is_found(&found, reliefs[i]) == runs[_i].finds[i], "%s with %s", reliefs[i], runs[_i].software);
    dl_remedies_release(&found);
    dl_session_close(&training);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("remedies");
    TCase *const tests = tcase_create("remedies");
    tcase_add_loop_test(tests, a_remedy_keeps_its_promise, 0, (int)DL_COUNT(promises));
    tcase_add_test(tests, a_remedy_counts_what_lingers);
    tcase_add_test(tests, changes_come_together_where_one_is_not_enough);
    tcase_add_test(tests, a_key_with_a_fact_gives_way);
    tcase_add_test(tests, tensor_ranks_share_no_head);
    tcase_add_test(tests, a_listed_run_gets_no_more_devices);
    tcase_add_loop_test(tests, software_does_what_it_can, 0, 5);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
