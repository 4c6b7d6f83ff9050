/* narrow_products.c - products whose operands are quantised: which they are, what casts cost, and what is gathered. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

#define TOKENS 64 /* 2 samples of 32 */
#define HIDDEN 64
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512,'bias':false" more "}"
#define BATCH(precision) "'global_batch':2,'microbatch':2,'precision':'" precision "'"
#define FP8_DEVICE                                                                                                     \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e12,'bf16':1e12,"      \
    "'fp8':2e12,'mxfp8':4e12,'nvfp4':8e12},'memory_bytes':1e18,'memory_bytes_per_s':1e15,'launch_s':0,'figures':{"     \
    "'compute_fraction':1,'bandwidth_fraction':1}}"
#define SHARED_DEVICE                                                                                                  \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e12,'bf16':1e12},"     \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e15,'launch_s':0,'taken_by_exchanges_fraction':0.5,"                    \
    "'taken_by_sends_fraction':0.25,'figures':{'compute_fraction':1,'bandwidth_fraction':1}}"
#define SOFTWARE(keys) "{'schema':'dlsim/software/1','source':'a test','attention':'flash'" keys "}"
#define OPERANDS_IN(precision, keys) ",'operands':[{'precision':'" precision "','moves':3,'launches':2" keys "}]"
#define OPERANDS(keys) OPERANDS_IN("fp8", keys)
#define FREE_IN(precision) "{'precision':'" precision "','moves':0,'launches':0}"
#define FREE SOFTWARE(",'operands':[" FREE_IN("fp8") "," FREE_IN("nvfp4") "]")

static const double exactly = 1e-9, memory_bytes_per_s = 1e15;

static void open_narrow(struct dl_session *t, const char *software, const char *head, const char *workload)
{
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .device = FP8_DEVICE,
                                .software = software,
                                .workload = workload,
                                .head = head,
                                .stack = "{'name':'data'}"});
}

/* Bound by arithmetic: linear layers of blocks have the narrow rate, attention, router and logits that of bf16. */
START_TEST(only_linear_layers_of_blocks_are_narrow)
{
    static const struct {
        const char *precision;
        double faster;
    } precisions[] = {{BATCH("fp8"), 2}, {BATCH("nvfp4"), 8}};
    const double narrow_rate = precisions[_i].faster;
    const struct {
        const char *name;
        double faster;
    } kernels[] = {{"qkv", narrow_rate}, {"proj", narrow_rate}, {"expert_fc1", narrow_rate},
                   {"attention", 1},     {"router", 1},         {"logits", 1}};
    struct dl_session wide, narrow;
    open_narrow(&wide, SOFTWARE(""), BATCH("bf16"), MODEL(",'experts':4,'top_k':2"));
    open_narrow(&narrow, FREE, precisions[_i].precision, MODEL(",'experts':4,'top_k':2"));
    for (size_t i = 0; i < DL_COUNT(kernels); i++)
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
            ck_assert_msg(kernels_s(&wide, kind, kernels[i].name) > 0, "%s", kernels[i].name);
            check_close(kernels[i].name, kernels_s(&wide, kind, kernels[i].name),
                        kernels[i].faster * kernels_s(&narrow, kind, kernels[i].name), exactly);
        }
    dl_session_close(&wide);
    dl_session_close(&narrow);
}
END_TEST

/* Forward what the layer is given, backward the gradient of what it gave, each once; logits and others stay. */
START_TEST(casts_move_each_operand_once)
{
    static const struct {
        const char *name;
        double inputs, outputs;
    } layers[] = {
        {"qkv", HIDDEN, 3 * HIDDEN}, {"fc1", HIDDEN, 4 * HIDDEN}, {"fc2", 4 * HIDDEN, HIDDEN}, {"logits", 0, 0}};
    const double element_s = 3 * activation_bytes / memory_bytes_per_s, blocks = 2;
    struct dl_session free, costly;
    open_narrow(&free, FREE, BATCH("fp8"), MODEL(""));
    open_narrow(&costly, SOFTWARE(OPERANDS("")), BATCH("fp8"), MODEL(""));
    for (size_t i = 0; i < DL_COUNT(layers); i++)
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
            check_close(layers[i].name, kernels_s(&costly, kind, layers[i].name),
                        kernels_s(&free, kind, layers[i].name) +
                            blocks * TOKENS * element_s * (kind == DL_ITEM_F ? layers[i].inputs : layers[i].outputs),
                        exactly);
    dl_session_close(&free);
    dl_session_close(&costly);
}
END_TEST

/* A quarter of the units is kept for communication: it takes no more of kernels beside it, and memory is as fast. */
START_TEST(what_is_kept_for_communication_slows_arithmetic_alone)
{
    static const struct {
        const char *name;
        double longer;
    } kernels[] = {{"qkv", 4.0 / 3}, {"attention", 4.0 / 3}, {"fc1", 4.0 / 3}, {"norm", 1}};
    struct dl_session all, rest;
    struct step step = {
        .system = FAST_SYSTEM, .device = SHARED_DEVICE, .software = SOFTWARE(""), .workload = MODEL("")};
    step.head = BATCH("bf16");
    step.stack = "{'name':'data'}";
    open_step(&all, &step);
    step.software = SOFTWARE(",'communication_fraction':0.25,'kernels':[{'operation':'qkv','launches':1}]");
    open_step(&rest, &step);
    for (size_t i = 0; i < DL_COUNT(kernels); i++)
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
            ck_assert_msg(kernels_s(&all, kind, kernels[i].name) > 0, "%s", kernels[i].name);
            check_close(kernels[i].name, kernels_s(&rest, kind, kernels[i].name),
                        kernels[i].longer * kernels_s(&all, kind, kernels[i].name), exactly);
        }
    ck_assert_double_eq(all.device.taken_by_exchanges_fraction, 0.5);
    ck_assert_double_eq(rest.device.taken_by_exchanges_fraction + rest.device.taken_by_sends_fraction, 0);
    dl_session_close(&all);
    dl_session_close(&rest);
}
END_TEST

/* Where kernels mask what lies outside of windows, they take as long as without any, and no more is asked of them. */
START_TEST(attention_may_go_beyond_windows)
{
    struct dl_session skips, masks, whole;
    open_narrow(&skips, SOFTWARE(""), BATCH("bf16"), MODEL(",'window':8"));
    open_narrow(&masks,
                SOFTWARE(",'kernels':[{'operation':'attention','pass':'input_gradient','launches':1,"
                         "'windowed':true,'ignores_windows':true}]"),
                BATCH("bf16"), MODEL(",'window':8"));
    open_narrow(&whole, SOFTWARE(""), BATCH("bf16"), MODEL(""));
    check_close("forward", kernels_s(&masks, DL_ITEM_F, "attention"), kernels_s(&skips, DL_ITEM_F, "attention"),
                exactly);
    check_close("backward", kernels_s(&masks, DL_ITEM_B, "attention"), kernels_s(&whole, DL_ITEM_B, "attention"),
                exactly);
    ck_assert_double_gt(kernels_s(&whole, DL_ITEM_B, "attention"), kernels_s(&skips, DL_ITEM_B, "attention"));
    dl_session_close(&skips);
    dl_session_close(&masks);
    dl_session_close(&whole);
}
END_TEST

/* Grouped products of Megatron-Bridge do them on the way. */
START_TEST(activations_of_experts_may_be_part_of_products)
{
    static const char gated[] = MODEL(",'experts':4,'top_k':2,'activation':'swiglu'");
    struct dl_session apart, fused;
    open_narrow(&apart, "megatron-bridge", BATCH("mxfp8"), gated);
    open_narrow(&fused, "megatron-bridge-fused", BATCH("mxfp8"), gated);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        ck_assert_double_gt(kernels_s(&apart, kind, "activation"), 0);
        ck_assert_double_eq(kernels_s(&fused, kind, "activation"), 0);
    }
    dl_session_close(&apart);
    dl_session_close(&fused);
}
END_TEST

/* A norm in fp32, whose result is cast: 2 of 2 bytes become 2 of 4, and 4 are read and 2 written. */
START_TEST(what_is_done_in_fp32_moves_its_bytes_on_every_device)
{
    static const char *const devices[] = {
        FP8_DEVICE, "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'bf16':1e12},"
                    "'memory_bytes':1e18,'memory_bytes_per_s':1e15,'launch_s':0,'figures':{'compute_fraction':1,"
                    "'bandwidth_fraction':1}}"};
    struct step plain = {.system = FAST_SYSTEM, .device = devices[_i], .software = SOFTWARE(""), .workload = MODEL("")};
    plain.head = BATCH("bf16");
    plain.stack = "{'name':'data'}";
    struct step wide = plain;
    wide.software = SOFTWARE(",'kernels':[{'operation':'layernorm','pass':'forward','launches':2,'wide':true,"
                             "'beside_moves':1.5}]");
    struct dl_session narrow_norms, wide_norms;
    open_step(&narrow_norms, &plain);
    open_step(&wide_norms, &wide);
    check_close("norm1", kernels_s(&wide_norms, DL_ITEM_F, "norm1"),
                (2 + 1.5) * kernels_s(&narrow_norms, DL_ITEM_F, "norm1"), exactly);
    check_close("norm1 backward", kernels_s(&wide_norms, DL_ITEM_B, "norm1"),
                kernels_s(&narrow_norms, DL_ITEM_B, "norm1"), exactly);
    dl_session_close(&narrow_norms);
    dl_session_close(&wide_norms);
}
END_TEST

static double launches_of(const struct dl_session *t, const char *name)
{
    double host_s = 0;
    for (size_t i = 0; i < item(t, DL_ITEM_F)->n_instructions; i++) {
        const struct dl_instruction *const in = &item(t, DL_ITEM_F)->instructions[i];
        if (strcmp(in->name, name) == 0) host_s += in->host_s;
    }
    return host_s / 1e-3;
}

/* What is launched for experts without Python in between; as any launch if nothing is said of it. */
START_TEST(launches_of_a_group_have_a_time_of_their_own)
{
    static const char software[] = SOFTWARE(",'host_s_per_launch':1e-3,'host_s_per_group_launch':5e-4" OPERANDS(""));
    const double blocks = 2, experts = 4;
    struct dl_session t;
    open_narrow(&t, software, BATCH("fp8"), MODEL(",'experts':4,'top_k':2"));
    check_close("qkv", launches_of(&t, "qkv"), blocks * 3, exactly);
    check_close("experts", launches_of(&t, "expert_fc1"), blocks * experts * 3 / 2, exactly);
    dl_session_close(&t);
}
END_TEST

/* One product and two casts; experts have theirs one by one. */
START_TEST(casts_and_products_of_experts_are_launched_one_by_one)
{
    static const char software[] = SOFTWARE(",'host_s_per_launch':1e-3" OPERANDS(""));
    const double blocks = 2, experts = 4;
    struct dl_session fp8, bf16;
    open_narrow(&fp8, software, BATCH("fp8"), MODEL(",'experts':4,'top_k':2"));
    open_narrow(&bf16, software, BATCH("bf16"), MODEL(",'experts':4,'top_k':2"));
    check_close("qkv", launches_of(&fp8, "qkv"), blocks * 3, exactly);
    check_close("router", launches_of(&fp8, "router"), blocks, exactly);
    check_close("experts", launches_of(&fp8, "expert_fc1"), blocks * experts * 3, exactly);
    check_close("without casts", launches_of(&bf16, "expert_fc1"), blocks * experts, exactly);
    dl_session_close(&fp8);
    dl_session_close(&bf16);
}
END_TEST

/* Tokens that tensor ranks gather are one byte wide instead of two but for the logits, sums stay. In nvfp4 they have 4
 * bits and a byte for each 16. */
START_TEST(operands_may_be_gathered_narrow)
{
    static const struct {
        const char *head, *software[2];
        double share;
    } cases[] = {{BATCH("fp8") ",'devices':2", {SOFTWARE(OPERANDS("")), SOFTWARE(OPERANDS(",'gathered':true"))}, 0.5},
                 {BATCH("nvfp4") ",'devices':2",
                  {SOFTWARE(OPERANDS_IN("nvfp4", "")), SOFTWARE(OPERANDS_IN("nvfp4", ",'gathered':true"))},
                  9.0 / 32}};
    const char *const *const software = cases[_i].software;
    double bytes[2];
    for (size_t i = 0; i < DL_COUNT(cases[_i].software); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.device = FP8_DEVICE,
                                     .software = software[i],
                                     .workload = MODEL(""),
                                     .head = cases[_i].head,
                                     .stack = "{'name':'tensor','ways':2,'sequence':true}"});
        bytes[i] = kernels_s(&t, DL_ITEM_F, "allgather") * SLOW_BYTES_PER_S;
        check_close("sums", kernels_s(&t, DL_ITEM_F, "reducescatter") * SLOW_BYTES_PER_S,
                    5 * TOKENS * HIDDEN * activation_bytes / 2, exactly); /* two a block, and the embedding */
        dl_session_close(&t);
    }
    const double of_blocks = 4, of_logits = 1;
    check_close("narrow", bytes[1] / bytes[0], (of_blocks * cases[_i].share + of_logits) / (of_blocks + of_logits),
                exactly);
}
END_TEST

/* Transformer Engine keeps what linear layers are given in fp8: per token and width 1 byte, not 2, for qkv and fc1, 4
 * for fc2; what attention gives to the projection it needs itself, so a copy of 1 more. What norms, attention and
 * activations keep stays as it is. */
START_TEST(what_linear_layers_are_given_may_be_kept_narrow)
{
    static const struct {
        const char *software, *precision, *more;
        double less; /* bytes per token and width, of a block */
    } cases[] = {
        {SOFTWARE(OPERANDS("")), BATCH("fp8"), MODEL(""), 0},
        {SOFTWARE(OPERANDS(",'saved':true")), BATCH("bf16"), MODEL(""), 0},
        {SOFTWARE(OPERANDS(",'saved':true")), BATCH("fp8"), MODEL(""), 1 - 1 + 1 + 4},
        /* Each token at two experts, whose layers are as wide; the router keeps what it is given wide. */
        {SOFTWARE(OPERANDS(",'saved':true")), BATCH("fp8"), MODEL(",'experts':4,'top_k':2"), 1 - 1 + 2 * (1 + 4)},
        {SOFTWARE(OPERANDS(",'saved':true")), BATCH("fp8"), MODEL(",'experts':4,'top_k':2,'shared_experts':1"),
         1 - 1 + 2 * (1 + 4) + 4 - 1},
        /* 9/16 of a byte in place of 2, for qkv, fc1 and four times fc2; one more copy for the projection. */
        {SOFTWARE(OPERANDS_IN("nvfp4", ",'saved':true")), BATCH("nvfp4"), MODEL(""), 6 * (2 - 9.0 / 16) - 9.0 / 16},
    };
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session wide, t;
        open_narrow(&wide, SOFTWARE(""), BATCH("bf16"), cases[i].more);
        open_narrow(&t, cases[i].software, cases[i].precision, cases[i].more);
        const struct dl_layer *const block = &t.model.layers[1];
        ck_assert(block->is_block);
        check_close(cases[i].more, saved_bytes(&wide, 1) - saved_bytes(&t, 1), cases[i].less * TOKENS * HIDDEN,
                    exactly);
        const double blocks = 2;
        check_close("memory", wide.memory[0].activations - t.memory[0].activations,
                    blocks * cases[i].less * TOKENS * HIDDEN, exactly);
        dl_session_close(&t);
        dl_session_close(&wide);
    }
}
END_TEST

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

START_TEST(what_is_wrong_with_operands_is_said)
{
    static const struct {
        const char *software, *message;
    } bad[] = {
        {SOFTWARE(",'operands':[{'precision':'fp4','moves':3,'launches':2}]"),
         "test.json:/operands/0/precision: must be one of fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4, got 'fp4'"},
        {SOFTWARE(",'operands':[{'precision':'fp8','launches':2}]"), "test.json:/operands/0: needs the key 'moves'"},
        {SOFTWARE(OPERANDS(",'weight_copies':9")), "test.json:/operands/0/weight_copies: must be in [0, 8], got 9"},
    };
    struct dl_session t;
    try_step(&t, &(struct step){.software = bad[_i].software,
                                .workload = MODEL(""),
                                .head = BATCH("bf16"),
                                .stack = "{'name':'data'}"});
    ck_assert_str_eq(t.err.text, bad[_i].message);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("narrow_products");
    tcase_add_loop_test(tests, only_linear_layers_of_blocks_are_narrow, 0, 2);
    tcase_add_test(tests, casts_move_each_operand_once);
    tcase_add_test(tests, what_is_kept_for_communication_slows_arithmetic_alone);
    tcase_add_test(tests, attention_may_go_beyond_windows);
    tcase_add_test(tests, activations_of_experts_may_be_part_of_products);
    tcase_add_loop_test(tests, what_is_done_in_fp32_moves_its_bytes_on_every_device, 0, 2);
    tcase_add_test(tests, casts_and_products_of_experts_are_launched_one_by_one);
    tcase_add_test(tests, launches_of_a_group_have_a_time_of_their_own);
    tcase_add_loop_test(tests, operands_may_be_gathered_narrow, 0, 2);
    tcase_add_test(tests, what_linear_layers_are_given_may_be_kept_narrow);
    tcase_add_test(tests, weights_may_have_narrow_copies_beside_them);
    tcase_add_test(tests, casts_of_mlperf_in_nvfp4_move_less);
    tcase_add_loop_test(tests, blocks_at_the_ends_may_stay_wide, 0, 2);
    tcase_add_test(tests, modules_that_predict_further_are_at_neither_end);
    tcase_add_test(tests, wide_blocks_gather_as_in_bf16);
    tcase_add_loop_test(tests, what_is_wrong_with_wide_blocks_is_said, 0, 3);
    tcase_add_loop_test(tests, what_is_wrong_with_operands_is_said, 0, 3);
    Suite *const suite = suite_create("narrow_products");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
