/* automodel.c - steps of Qwen3 30B by NeMo AutoModel that its software file was not derived from.
 *
 * github.com/NVIDIA-NeMo/Automodel: docs/deepep_vs_hybridep_benchmark.md (22 July 2026), 8 and 16 H100, of which the
 * file has the kernels that send tokens and not the steps; MFSDP-qwen3-moe/analysis_mfsdp_vs_automodel.md (8 April
 * 2026), 32 H100. Parameters stay gathered from micro-batch to micro-batch, which is stage 1 of ZeRO here. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

static const struct {
    const char *head, *expert;
    double step_s, error; /* that is said of it, rounded up */
} published[] = {
    {"'global_batch':128,'microbatch':4,'precision':'bf16','devices':8", "{'name':'expert','ways':8,'even':true}",
     5.366, 0.075},
    {"'global_batch':256,'microbatch':2,'precision':'bf16','devices':16", "{'name':'expert','ways':16,'even':true}",
     5.906, 0.135},
    {"'global_batch':128,'microbatch':2,'precision':'bf16','devices':32", "{'name':'expert','ways':8,'even':true}",
     1.623, 0.025},
};

START_TEST(a_published_step_is_within_what_is_said)
{
    struct dl_session t;
    char stack[200];
    snprintf(stack, sizeof stack,
             "%s,{'name':'data','overlap':true},{'name':'zero'},{'name':'recompute','mode':'full'}",
             published[_i].expert);
    training_open_stack(
        &t, (struct training_inputs){.system = "dgx-h100", .software = "automodel", .workload = "qwen3-30b-a3b"},
        published[_i].head, stack);
    ck_assert_msg(!t.err.status, "%s", t.err.text);
    const struct training_outcome out = training_simulate(&t, "analytic");
    ck_assert_msg(!out.err.status, "%s", out.err.text);
    check_close("step", out.result.step_s, published[_i].step_s, published[_i].error);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("automodel");
    tcase_add_loop_test(tests, a_published_step_is_within_what_is_said, 0, DL_COUNT(published));
    Suite *const suite = suite_create("automodel");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
