/* same_chip.c - an H100 is the chip of an H200 with slower memory: attention and PyTorch's own kernels are no faster on
 * it, and what one kernel does is nearly as fast. */
#include "tests/unit/analytic_run.h"

enum { h100, h200, n_machines };
static const char *const machines[n_machines] = {"dgx-h100", "dgx-h200"};

struct step {
    double all_s, update_s;
};

static void steps_of(const char *workload, const char *software, struct step steps[n_machines])
{
    for (int i = 0; i < n_machines; i++) {
        struct dl_arena *const arena = dl_arena_new();
        struct dl_session s;
        const struct analytic_run run = {
            .topo = machines[i],
            .workload = workload,
            .software = software,
            .head = "\"devices\":1,\"global_batch\":4,\"microbatch\":4,\"precision\":\"bf16\",",
            .stack = ""};
        ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
        steps[i] = (struct step){s.report.result.step_s, s.report.result.exposed_s[DL_CAUSE_OPTIMIZER]};
        dl_session_close(&s);
        dl_arena_free(arena);
    }
}

/* Megatron-Core's Adam is one kernel: the H200's times of torch._foreach, which goes through memory eight times, are
 * not its own. */
START_TEST(one_kernel_updates_as_fast_on_both)
{
    struct step steps[n_machines];
    steps_of("gpt2-1.5b", "megatron-core", steps);
    ck_assert_double_lt(steps[h200].update_s, 1.1 * steps[h100].update_s);
}
END_TEST

/* AdamW of PyTorch as it comes moves 20 values for each parameter, not 7, on devices that were not timed, too. */
START_TEST(many_kernels_update_slower_with_slower_memory)
{
    struct step eager[n_machines], fused[n_machines];
    steps_of("gpt2-1.5b", "pytorch-eager", eager);
    steps_of("gpt2-1.5b", "torchtitan", fused);
    ck_assert_double_gt(eager[h100].update_s, 1.1 * eager[h200].update_s);
    ck_assert_double_gt(eager[h100].update_s,
                        1.3 * fused[h100].update_s); /* though states in bf16 are half as large as those in fp32 */
}
END_TEST

/* Rotary embeddings by many kernels and attention are bound by the chip, and take as long as on the H200 at least. */
START_TEST(eager_steps_are_no_faster_with_slower_memory)
{
    static const char *const software[] = {"pytorch-eager", "pytorch-compiled"};
    for (size_t i = 0; i < DL_COUNT(software); i++) {
        struct step steps[n_machines];
        steps_of("llama2-7b", software[i], steps);
        ck_assert_double_gt(steps[h100].all_s, steps[h200].all_s);
        ck_assert_double_lt(steps[h100].all_s, 4.8 / 3.35 * steps[h200].all_s);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("same chip");
    TCase *const tests = tcase_create("same chip");
    tcase_add_test(tests, one_kernel_updates_as_fast_on_both);
    tcase_add_test(tests, many_kernels_update_slower_with_slower_memory);
    tcase_add_test(tests, eager_steps_are_no_faster_with_slower_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
