/* wide_blocks.c - in nvfp4: narrow copies of weights, casts, and blocks at the ends of a model that stay wide. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/narrow_steps.h"

/* Two copies of 9/16 of a byte for each weight of a block; embedding, logits and gradients have none. */
START_TEST(weights_may_have_narrow_copies_beside_them)
{
    struct dl_session plain, copied, wide;
    open_narrow(&plain, SOFTWARE(OPERANDS_IN("nvfp4", "")), BATCH("nvfp4"), MODEL(""));
    open_narrow(&copied, SOFTWARE(OPERANDS_IN("nvfp4", ",'weight_copies':2")), BATCH("nvfp4"), MODEL(""));
    open_narrow(&wide, SOFTWARE(OPERANDS_IN("nvfp4", ",'weight_copies':2")), BATCH("bf16"), MODEL(""));
    const double blocks = 2, weights = 12.0 * HIDDEN * HIDDEN + 4 * HIDDEN; /* with norms */
    check_close("copies", copied.memory[0].parameters - plain.memory[0].parameters, blocks * weights * 2 * 9 / 16,
                exactly);
    check_close("bf16", wide.memory[0].parameters, plain.memory[0].parameters, exactly);
    check_close("gradients", copied.memory[0].gradients, plain.memory[0].gradients, exactly);
    dl_session_close(&plain);
    dl_session_close(&copied);
    dl_session_close(&wide);
}
END_TEST

/* MLPerf's recipe in nvfp4 makes both copies of an operand at once: 2.7 in place of 3.5 moves. Its 8B has attention in
 * fp8, faster by 1.19, beside which 3.75 activations move for each result. */
START_TEST(casts_of_mlperf_in_nvfp4_move_less)
{
    struct dl_session bridge, plain, attention;
    open_narrow(&bridge, "megatron-bridge", BATCH("nvfp4"), MODEL(""));
    open_narrow(&plain, "mlperf-nvfp4", BATCH("nvfp4"), MODEL(""));
    open_narrow(&attention, "mlperf-nvfp4-fp8-attention", BATCH("nvfp4"), MODEL(""));
    const double blocks = 2, element_s = blocks * TOKENS * HIDDEN * activation_bytes / memory_bytes_per_s;
    check_close("fc2", kernels_s(&bridge, DL_ITEM_F, "fc2") - kernels_s(&plain, DL_ITEM_F, "fc2"),
                (3.5 - 2.7) * 4 * element_s, 1e-6);
    check_close("memory", bridge.memory[0].parameters, plain.memory[0].parameters, exactly);
    check_close("attention", kernels_s(&attention, DL_ITEM_F, "attention"),
                kernels_s(&plain, DL_ITEM_F, "attention") / 1.19 + 3.75 * element_s, 1e-6);
    dl_session_close(&bridge);
    dl_session_close(&plain);
    dl_session_close(&attention);
}
END_TEST

#define WIDE_FIRST BATCH("nvfp4") ",'wide_first_blocks':1"
#define WIDE_LAST BATCH("nvfp4") ",'wide_last_blocks':1"

static double mean(double a, double b) { return (a + b) / 2; }

/* One of two blocks is as in bf16, the other as in nvfp4: products and casts, what is kept, copies of weights. */
START_TEST(blocks_at_the_ends_may_stay_wide)
{
    static const char *const heads[] = {WIDE_FIRST, WIDE_LAST};
    static const char *const names[] = {"qkv", "fc1", "fc2", "norm1", "attention", "logits"};
    static const char software[] = SOFTWARE(OPERANDS_IN("nvfp4", ",'saved':true,'weight_copies':2"));
    struct dl_session wide, narrow, partly;
    open_narrow(&wide, software, BATCH("bf16"), MODEL(""));
    open_narrow(&narrow, software, BATCH("nvfp4"), MODEL(""));
    open_narrow(&partly, software, heads[_i], MODEL(""));
    for (size_t i = 0; i < DL_COUNT(names); i++)
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
            check_close(names[i], kernels_s(&partly, kind, names[i]),
                        mean(kernels_s(&wide, kind, names[i]), kernels_s(&narrow, kind, names[i])), exactly);
    check_close("parameters", partly.memory[0].parameters, mean(wide.memory[0].parameters, narrow.memory[0].parameters),
                exactly);
    check_close("activations", partly.memory[0].activations,
                mean(wide.memory[0].activations, narrow.memory[0].activations), exactly);
    const size_t at = _i == 0 ? 1 : 2;
    ck_assert(partly.model.layers[at].is_wide && !partly.model.layers[3 - at].is_wide);
    check_close("saved", saved_bytes(&partly, at), saved_bytes(&wide, at), exactly);
    dl_session_close(&wide);
    dl_session_close(&narrow);
    dl_session_close(&partly);
}
END_TEST

/* Two blocks and a module that predicts a further token: all blocks may be wide, and the module stays narrow. */
START_TEST(modules_that_predict_further_are_at_neither_end)
{
    static const char *const names[] = {"qkv", "fc1", "fc2"};
    static const char software[] = SOFTWARE(OPERANDS_IN("nvfp4", ",'weight_copies':2"));
    static const char model[] = MODEL(",'mtp_layers':1");
    struct dl_session wide, narrow, partly;
    open_narrow(&wide, software, BATCH("bf16"), model);
    open_narrow(&narrow, software, BATCH("nvfp4"), model);
    open_narrow(&partly, software, BATCH("nvfp4") ",'wide_last_blocks':2", model);
    ck_assert(partly.model.layers[1].is_wide && partly.model.layers[2].is_wide && !partly.model.layers[3].is_wide);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        for (size_t i = 0; i < DL_COUNT(names); i++)
            check_close(names[i], kernels_s(&partly, kind, names[i]),
                        (2 * kernels_s(&wide, kind, names[i]) + kernels_s(&narrow, kind, names[i])) / 3, exactly);
        check_close("join", kernels_s(&partly, kind, "join"), kernels_s(&narrow, kind, "join"), exactly);
        ck_assert_double_gt(kernels_s(&wide, kind, "join"), kernels_s(&narrow, kind, "join"));
    }
    dl_session_close(&wide);
    dl_session_close(&narrow);
    dl_session_close(&partly);
}
END_TEST

/* Such a module may be wide, with what it is joined by, and the blocks narrow. */
START_TEST(modules_that_predict_further_may_be_wide)
{
    static const char *const names[] = {"qkv", "fc1", "fc2", "join"};
    static const char software[] = SOFTWARE(OPERANDS_IN("nvfp4", ",'weight_copies':2"));
    struct dl_session wide, narrow, partly;
    open_narrow(&wide, software, BATCH("bf16"), MODEL(",'mtp_layers':1"));
    open_narrow(&narrow, software, BATCH("nvfp4"), MODEL(",'mtp_layers':1"));
    open_narrow(&partly, software, BATCH("nvfp4"), MODEL(",'mtp_layers':1,'mtp_wide':true"));
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        for (size_t i = 0; i < DL_COUNT(names); i++) {
            const double blocks = i < 3 ? 2 : 0, all = blocks + 1;
            check_close(names[i], kernels_s(&partly, kind, names[i]),
                        (kernels_s(&wide, kind, names[i]) + blocks * kernels_s(&narrow, kind, names[i])) / all,
                        exactly);
        }
    dl_session_close(&wide);
    dl_session_close(&narrow);
    dl_session_close(&partly);
}
END_TEST

/* What tensor ranks gather for these is as wide. */
START_TEST(wide_blocks_gather_as_in_bf16)
{
    static const char *const heads[] = {BATCH("bf16"), BATCH("nvfp4"), WIDE_LAST};
    double bytes[DL_COUNT(heads)];
    for (size_t i = 0; i < DL_COUNT(heads); i++) {
        struct dl_session t;
        char head[200];
        snprintf(head, sizeof head, "%s,'devices':2", heads[i]);
        open_step(&t, &(struct step){.device = FP8_DEVICE,
                                     .software = SOFTWARE(OPERANDS_IN("nvfp4", ",'gathered':true")),
                                     .workload = MODEL(""),
                                     .head = head,
                                     .stack = "{'name':'tensor','ways':2,'sequence':true}"});
        bytes[i] = kernels_s(&t, DL_ITEM_F, "allgather");
        dl_session_close(&t);
    }
    check_close("gathered", bytes[2], mean(bytes[0], bytes[1]), exactly);
}
END_TEST

START_TEST(what_is_wrong_with_wide_blocks_is_said)
{
    static const struct {
        const char *head, *message, *workload;
    } bad[] = {
        {BATCH("bf16") ",'wide_last_blocks':1",
         "test.json:/wide_last_blocks: is for fp8, mxfp8 and nvfp4; in bf16 all blocks are as wide", MODEL("")},
        {BATCH("nvfp4") ",'wide_first_blocks':2,'wide_last_blocks':1",
         "test.json:/wide_last_blocks: test has 2 blocks, of which 3 cannot be wide", MODEL("")},
        {BATCH("nvfp4") ",'wide_last_blocks':3",
         "test.json:/wide_last_blocks: test has 2 blocks, of which 3 cannot be wide", MODEL(",'mtp_layers':1")},
    };
    struct dl_session t;
    try_step(&t, &(struct step){.device = FP8_DEVICE,
                                .software = SOFTWARE(""),
                                .workload = bad[_i].workload,
                                .head = bad[_i].head,
                                .stack = "{'name':'data'}"});
    ck_assert_str_eq(t.err.text, bad[_i].message);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("wide_blocks");
    tcase_add_test(tests, weights_may_have_narrow_copies_beside_them);
    tcase_add_test(tests, casts_of_mlperf_in_nvfp4_move_less);
    tcase_add_loop_test(tests, blocks_at_the_ends_may_stay_wide, 0, 2);
    tcase_add_test(tests, modules_that_predict_further_are_at_neither_end);
    tcase_add_test(tests, modules_that_predict_further_may_be_wide);
    tcase_add_test(tests, wide_blocks_gather_as_in_bf16);
    tcase_add_loop_test(tests, what_is_wrong_with_wide_blocks_is_said, 0, 3);
    Suite *const suite = suite_create("wide_blocks");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
