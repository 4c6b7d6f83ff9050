/* recompute_results.c - results that blocks keep beside their input: not done again, and counted by hand. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <string.h>

#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a "                                                                        \
    "test','kind':'transformer','layers':2,'hidden':64,'heads':4,'kv_heads':2,"                                        \
    "'seq':32,'vocab':64,'ffn':128,'norm':'rmsnorm','activation':'swiglu','positions':'rotary','bias':false,"          \
    "'dropout':false}"

enum { tokens = 32, hidden = 64, head_size = 16, heads = 4, kv_heads = 2, ffn = 128, tensor_ways = 2 };

static const double exactly = 1e-12;

static const struct results_case {
    const char *results;
    double inside, outside; /* elements of a token that are kept, and that tensor parallelism divides or not */
    const char *kernels;
} cases[] = {
    {"'qkv'", (heads + 2 * kv_heads) * head_size, 0, " qkv "},
    {"'context'", heads *head_size, 0, " attention "},
    {"'projection'", 0, hidden, " projection "},
    {"'fc1'", 2 * ffn, 0, " fc1 "},
    {"'qkv','projection'", (heads + 2 * kv_heads) * head_size, hidden, " qkv projection "},
};

static void open_case(struct dl_session *t, const char *results, uint32_t ways)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','attention':'flash'}";
    char stack[300];
    snprintf(stack, sizeof stack,
             "{'name':'pipeline','ways':2},{'name':'tensor','ways':%u},{'name':'recompute','mode':'full'%s%s%s}", ways,
             results ? ",'kept_results':[" : "", results ? results : "", results ? "]" : "");
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .software = software,
                                .workload = MODEL,
                                .head = "'global_batch':8,'microbatch':1",
                                .stack = stack});
}

static double forward_s(const struct dl_template *forward, const char *kernels)
{
    double sum = 0;
    for (size_t i = 0; i < forward->n_instructions; i++) {
        char word[80];
        snprintf(word, sizeof word, " %s ", forward->instructions[i].name);
        if (!kernels || strstr(kernels, word)) sum += forward->instructions[i].device_s;
    }
    return sum;
}

/* The second stage has the head, too. */
START_TEST(what_is_kept_is_not_done_again)
{
    struct dl_session t, plain;
    open_case(&t, cases[_i].results, 1);
    open_case(&plain, NULL, 1);
    const struct dl_position *const p = &t.lowered.positions[0], *const all = &plain.lowered.positions[0];
    const double spared = forward_s(&p->items[DL_ITEM_F], cases[_i].kernels);
    ck_assert_double_gt(spared, 0);
    check_close(cases[_i].results,
                all->items[DL_ITEM_B].total.by_cause[DL_CAUSE_RECOMPUTE] -
                    p->items[DL_ITEM_B].total.by_cause[DL_CAUSE_RECOMPUTE],
                spared, 1e-9);
    dl_session_close(&t);
    dl_session_close(&plain);
}
END_TEST

START_TEST(what_is_kept_takes_memory)
{
    for (uint32_t ways = 1; ways <= tensor_ways; ways++) {
        struct dl_session t, plain;
        open_case(&t, cases[_i].results, ways);
        open_case(&plain, NULL, ways);
        const double kept = activation_bytes * tokens * (cases[_i].inside / ways + cases[_i].outside);
        check_close(cases[_i].results, saved_bytes(&t, 1) - saved_bytes(&plain, 1), kept, exactly);
        const double again = allocated(&plain, DL_TENSOR_RECOMPUTED, 1) - allocated(&t, DL_TENSOR_RECOMPUTED, 1);
        check_close(cases[_i].results, again, kept, exactly);
        dl_session_close(&t);
        dl_session_close(&plain);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("recompute_results");
    tcase_add_loop_test(tests, what_is_kept_is_not_done_again, 0, (int)DL_COUNT(cases));
    tcase_add_loop_test(tests, what_is_kept_takes_memory, 0, (int)DL_COUNT(cases));
    Suite *const suite = suite_create("recompute_results");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
