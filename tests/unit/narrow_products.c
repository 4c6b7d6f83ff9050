/* narrow_products.c - products whose operands are quantised: which they are, what casts cost, and what is gathered. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/narrow_steps.h"

#define SHARED_DEVICE                                                                                                  \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e12,'bf16':1e12},"     \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e15,'launch_s':0,'taken_by_exchanges':" TAKEN(                          \
        "0.5") ","                                                                                                     \
               "'taken_by_sends':" TAKEN("0.25") ",'figures':{'compute_fraction':1,'bandwidth_fraction':1}}"
#define FREE_IN(precision) "{'precision':'" precision "','moves':0,'launches':0}"
#define FREE SOFTWARE(",'operands':[" FREE_IN("fp8") "," FREE_IN("nvfp4") "]")

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
    for (int i = DL_CLASS_NONE + 1; i < DL_N_CLASSES; i++) {
        ck_assert_double_eq(all.device.taken_by_exchanges.fraction[i], 0.5);
        ck_assert_double_eq(rest.device.taken_by_exchanges.fraction[i] + rest.device.taken_by_sends.fraction[i], 0);
    }
    dl_session_close(&all);
    dl_session_close(&rest);
}
END_TEST

/* Half of the blocks that the library would have: half of what the device says is taken. */
START_TEST(what_limited_collectives_take_is_less)
{
    struct dl_session half;
    open_step(&half, &(struct step){.system = FAST_SYSTEM,
                                    .device = SHARED_DEVICE,
                                    .software = SOFTWARE(",'collective_units_fraction':0.5"),
                                    .workload = MODEL(""),
                                    .head = BATCH("bf16"),
                                    .stack = "{'name':'data'}"});
    for (int i = DL_CLASS_NONE + 1; i < DL_N_CLASSES; i++) {
        ck_assert_double_eq(half.device.taken_by_exchanges.fraction[i], 0.25);
        ck_assert_double_eq(half.device.taken_by_sends.fraction[i], 0.125);
    }
    dl_session_close(&half);
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

/* Imported files name these: what they may ask for must run. */
START_TEST(software_of_imported_files_quantises)
{
    static const struct {
        const char *software, *head;
    } cases[] = {{"megatron-core", BATCH("fp8")}, {"megatron-core", BATCH("mxfp8")}, {"megatron-core", BATCH("nvfp4")},
                 {"torchtitan", BATCH("fp8")},    {"torchtitan", BATCH("mxfp8")},    {"maxtext", BATCH("fp8")}};
    struct dl_session t;
    open_narrow(&t, cases[_i].software, cases[_i].head, MODEL(""));
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
    tcase_add_test(tests, what_limited_collectives_take_is_less);
    tcase_add_test(tests, attention_may_go_beyond_windows);
    tcase_add_test(tests, activations_of_experts_may_be_part_of_products);
    tcase_add_loop_test(tests, what_is_done_in_fp32_moves_its_bytes_on_every_device, 0, 2);
    tcase_add_test(tests, casts_and_products_of_experts_are_launched_one_by_one);
    tcase_add_test(tests, launches_of_a_group_have_a_time_of_their_own);
    tcase_add_loop_test(tests, operands_may_be_gathered_narrow, 0, 2);
    tcase_add_test(tests, what_linear_layers_are_given_may_be_kept_narrow);
    tcase_add_loop_test(tests, software_of_imported_files_quantises, 0, 6);
    tcase_add_loop_test(tests, what_is_wrong_with_operands_is_said, 0, 3);
    Suite *const suite = suite_create("narrow_products");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
