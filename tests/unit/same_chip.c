/* same_chip.c - an H100 is the chip of an H200 with slower memory: nothing is faster on it, and what one kernel does is
 * nearly as fast. */
#include "tests/unit/analytic_run.h"

enum { h100, h200, n_machines };
static const char *const machines[n_machines] = {"dgx-h100", "dgx-h200"};

/* Seconds of an update of a model's parameters, by one kernel or by those of torch._foreach. */
static void update_s(const char *software, double seconds[n_machines])
{
    for (int i = 0; i < n_machines; i++) {
        struct dl_arena *const arena = dl_arena_new();
        struct dl_session s;
        const struct analytic_run run = {
            .topo = machines[i],
            .workload = "gpt2-1.5b",
            .software = software,
            .head = "\"devices\":1,\"global_batch\":4,\"microbatch\":4,\"precision\":\"bf16\",",
            .stack = ""};
        ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
        seconds[i] = s.report.result.exposed_s[DL_CAUSE_OPTIMIZER];
        dl_session_close(&s);
        dl_arena_free(arena);
    }
}

/* Megatron-Core's Adam is one kernel: the H200's times of torch._foreach, which goes through memory eight times, are
 * not its own. */
START_TEST(one_kernel_updates_as_fast_on_both)
{
    double seconds[n_machines];
    update_s("megatron-core", seconds);
    ck_assert_double_lt(seconds[h200], 1.1 * seconds[h100]);
}
END_TEST

/* AdamW of PyTorch as it comes moves 20 values for each parameter, not 7, on devices that were not timed, too. */
START_TEST(many_kernels_update_slower_with_slower_memory)
{
    double eager[n_machines], fused[n_machines];
    update_s("pytorch-eager", eager);
    update_s("torchtitan", fused);
    ck_assert_double_gt(eager[h100], 1.1 * eager[h200]);
    ck_assert_double_gt(eager[h100], 1.3 * fused[h100]); /* though states in bf16 are half as large as those in fp32 */
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("same chip");
    TCase *const tests = tcase_create("same chip");
    tcase_add_test(tests, one_kernel_updates_as_fast_on_both);
    tcase_add_test(tests, many_kernels_update_slower_with_slower_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
