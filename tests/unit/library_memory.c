/* library_memory.c - what software keeps beside the layers is part of the peak: workspaces of libraries, as many as
 * callers, each as the device has; operands of weight gradients that wait for the end of a step. */
#include "tests/unit/analytic_run.h"

#define MODEL                                                                                                          \
    "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":4,\"hidden\":1024,"    \
    "\"heads\":16,\"seq\":1024,\"vocab\":8192"

static struct dl_memory_use use_of_model(const char *model, const char *software, uint32_t stage, const char *callers,
                                         const char *each, struct dl_arena *arena)
{
    const struct analytic_run r = {.topo = "dgx-h100",
                                   .workload = model,
                                   .software = software,
                                   .head = "\"devices\":2,\"global_batch\":4,\"microbatch\":1,",
                                   .stack = "{\"name\":\"pipeline\",\"ways\":2}",
                                   .set = {callers, callers ? each : NULL}};
    struct dl_session s;
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    const struct dl_memory_use use = s.memory[stage];
    dl_session_close(&s);
    return use;
}

static struct dl_memory_use use_of(const char *software, uint32_t stage, const char *callers, const char *each,
                                   struct dl_arena *arena)
{
    return use_of_model(MODEL "}", software, stage, callers, each, arena);
}

START_TEST(each_caller_keeps_one)
{
    struct dl_arena *const arena = dl_arena_new();
    for (uint32_t stage = 0; stage < 2; stage++) {
        const struct dl_memory_use none = use_of("megatron-core", stage, "software.gemm_workspaces=0", NULL, arena),
                                   five = use_of("megatron-core", stage, "software.gemm_workspaces=5",
                                                 "device.gemm_workspace_bytes=1e7", arena);
        ck_assert_double_eq(five.workspace, none.workspace + 5e7);
        ck_assert_double_eq(five.peak, none.peak + 5e7);
    }
    dl_arena_free(arena);
}
END_TEST

/* Two of PyTorch's threads and Transformer Engine, 32 MiB each on Hopper. */
START_TEST(a_hopper_keeps_three_of_megatron_core)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_memory_use none = use_of("megatron-core", 0, "software.gemm_workspaces=0", NULL, arena),
                               usual = use_of("megatron-core", 0, NULL, NULL, arena);
    ck_assert_double_eq(usual.peak, none.peak + 3 * 32 * 1024 * 1024.0);
    dl_arena_free(arena);
}
END_TEST

/* Products of a group are launched on streams with workspaces of their own; the first stage has no experts here. */
START_TEST(streams_of_experts_keep_their_own)
{
    static const char model[] = MODEL ",\"experts\":4,\"top_k\":2,\"dense_layers\":2}";
    static const double streams[] = {0, 4};
    struct dl_arena *const arena = dl_arena_new();
    for (uint32_t stage = 0; stage < 2; stage++) {
        const struct dl_memory_use none = use_of_model(model, "megatron-core", stage, "software.group_workspaces=0",
                                                       NULL, arena),
                                   usual = use_of_model(model, "megatron-core", stage, NULL, NULL, arena);
        ck_assert_double_eq(usual.peak, none.peak + streams[stage] * 32 * 1024 * 1024);
    }
    dl_arena_free(arena);
}
END_TEST

START_TEST(sizes_that_software_sets_are_those_on_every_device)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_memory_use usual = use_of("megatron-core", 0, NULL, NULL, arena),
                               own = use_of("megatron-core", 0, "software.own_workspace_bytes=1e7", NULL, arena);
    ck_assert_double_eq(own.workspace, usual.workspace + 1e7);
    dl_arena_free(arena);
}
END_TEST

/* Of four micro-batches: what the last one's are made of is there anyway. */
START_TEST(weight_gradients_of_the_head_that_wait_keep_what_they_are_made_of)
{
    static const struct {
        const char *set;
        double micros;
    } cases[] = {{"software.deferred_head_gradients=2", 2}, {"software.deferred_head_gradients=100", 3}};
    struct dl_arena *const arena = dl_arena_new();
    const double bytes = 2, tokens = 1024, hidden = 1024, vocab = 8192;
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        const double each = bytes * tokens * (hidden + vocab);
        ck_assert_double_eq(use_of("megatron-core", 1, cases[i].set, NULL, arena).peak,
                            use_of("megatron-core", 1, NULL, NULL, arena).peak + cases[i].micros * each);
        ck_assert_double_eq(use_of("megatron-core", 0, cases[i].set, NULL, arena).peak,
                            use_of("megatron-core", 0, NULL, NULL, arena).peak);
    }
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("library_memory");
    TCase *const tests = tcase_create("workspaces");
    tcase_add_test(tests, each_caller_keeps_one);
    tcase_add_test(tests, a_hopper_keeps_three_of_megatron_core);
    tcase_add_test(tests, streams_of_experts_keep_their_own);
    tcase_add_test(tests, sizes_that_software_sets_are_those_on_every_device);
    tcase_add_test(tests, weight_gradients_of_the_head_that_wait_keep_what_they_are_made_of);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
