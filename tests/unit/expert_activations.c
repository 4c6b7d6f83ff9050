/* expert_activations.c - what Megatron-Core does beside products, above all with tokens of experts: the rules of
 * `megatron-bridge` and `nemo-2024` on the figures of an H200 against times that were measured on one. */
#include "strategies/kernel_rules.h"
#include "tests/unit/priced_device.h"

static const double within = 0.05;

static const char *software = "megatron-bridge", *table = "expert_activations";

static double measured_s(const char *what, double tokens, const char *pass)
{
    json_t *row;
    size_t i;
    load("validation/measured", table);
    json_array_foreach(json_object_get(doc.value, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "what")), what) == 0 &&
            json_number_value(json_object_get(row, "tokens")) == tokens)
            return json_number_value(json_object_get(row, pass));
    }
    ck_abort_msg("no %s of %g tokens", what, tokens);
}

/* On the H200 by its figures alone. */
static double price_of(const struct dl_kernel *k)
{
    open_device("h200");
    device.measured = NULL;
    return dl_price(&device, k, DL_BF16).seconds;
}

/* What the first rule that fits makes of a kernel; of a product only what goes beside it. */
static double done_s(struct dl_kernel k)
{
    const struct dl_numbers numbers = {DL_WIDTHS_MIXED, DL_BF16};
    struct dl_kernel_rules rules;
    load("strategies/software", software);
    dl_kernel_rules_read(dl_json_member(doc, "kernels", arena), false, arena, &rules, &err);
    check_ok();
    k.by.elements = k.by.batch = DL_BY_EXPERT;
    const struct dl_kernel_rule *const rule = dl_kernel_rule_for(&rules, &k, numbers);
    ck_assert_ptr_nonnull(rule);
    const struct dl_kernel instead = dl_kernel_instead(rule, &k, 1), beside = dl_kernel_beside(rule, &k),
                           issued = dl_kernel_issued(rule, &k);
    return (k.kind == DL_KERNEL_MEMORY ? price_of(&instead) : price_of(&issued)) + price_of(&beside);
}

static void check_within(const char *what, double found, double expected)
{
    ck_assert_msg(found > (1 - within) * expected && found < (1 + within) * expected, "%s: %.4g s, measured %.4g s",
                  what, found, expected);
}

START_TEST(a_weighted_swiglu_goes_back_by_its_instructions)
{
    const double tokens = 131072, width = 768;
    const struct dl_kernel k = {
        .kind = DL_KERNEL_MEMORY, .name = "swiglu", .pass = DL_PASS_INPUT_GRADIENT, .elements = 5 * tokens * width};
    check_within("backward", done_s(k), measured_s("weighted_swiglu", tokens, "backward_s"));
}
END_TEST

START_TEST(clamps_are_kernels_of_their_own)
{
    const double tokens = 65536, width = 2880;
    struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "clamped_swiglu", .elements = 3 * tokens * width};
    check_within("forward", done_s(k),
                 measured_s("clamps", tokens, "forward_s") + measured_s("weighted_geglu", tokens, "forward_s"));
    k.pass = DL_PASS_INPUT_GRADIENT, k.elements = 5 * tokens * width;
    check_within("backward", done_s(k),
                 measured_s("clamps", tokens, "backward_s") + measured_s("weighted_geglu", tokens, "backward_s"));
}
END_TEST

/* Backward the sum of its gradient is a kernel that the workload has. */
START_TEST(biases_are_added_expert_by_expert)
{
    const double tokens = 65536, width = 2880, experts = 2;
    struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .name = "expert_fc2", .batch = experts, .has_bias = true};
    k.m = tokens / experts, k.n = k.k = width;
    const struct dl_kernel sum = {.kind = DL_KERNEL_MEMORY, .name = "bias", .elements = tokens * width};
    check_within("forward", done_s(k), measured_s("bias", tokens, "forward_s"));
    k.pass = DL_PASS_INPUT_GRADIENT;
    check_within("backward", done_s(k) + price_of(&sum), measured_s("bias", tokens, "backward_s"));
}
END_TEST

/* Without fused kernels sums of copies go by atomic operations, and weights row by row. The first with so many tokens
 * has this width. */
START_TEST(tokens_are_moved_by_plain_operations)
{
    const double tokens = 4096, width = 6144, top_k = 2, moved = (1 + top_k) * tokens * width;
    struct dl_kernel k = {
        .kind = DL_KERNEL_MEMORY, .name = "permute", .pass = DL_PASS_INPUT_GRADIENT, .elements = moved};
    software = "nemo-2024", table = "expert_moves";
    check_within("permute, backward", done_s(k), measured_s("permute", tokens, "backward_s"));
    k.name = "unpermute", k.pass = DL_PASS_FORWARD;
    check_within("unpermute, forward", done_s(k), measured_s("unpermute", tokens, "forward_s"));
    k.pass = DL_PASS_INPUT_GRADIENT, k.elements = (1 + 2 * top_k) * tokens * width;
    check_within("unpermute, backward", done_s(k), measured_s("unpermute", tokens, "backward_s"));
}
END_TEST

/* No fused kernel knows the scale. With fewer tokens the small kernels that make cosines and sines count, too: a tenth
 * of the forward of 4,096. */
START_TEST(scaled_rotary_goes_by_parts)
{
    const double tokens = _i ? 8192 : 16384, heads = 64 + 8, width = 64;
    software = "megatron-bridge", table = "scaled_rotary";
    struct dl_kernel k = {
        .kind = DL_KERNEL_MEMORY, .name = "yarn", .operation = "rotary", .elements = 2 * tokens * heads * width};
    check_within("forward", done_s(k), measured_s("rotary", tokens, "forward_s"));
    k.pass = DL_PASS_INPUT_GRADIENT;
    check_within("backward", done_s(k), measured_s("rotary", tokens, "backward_s"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("expert_activations");
    TCase *const tests = tcase_create("expert_activations");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_weighted_swiglu_goes_back_by_its_instructions);
    tcase_add_test(tests, clamps_are_kernels_of_their_own);
    tcase_add_test(tests, biases_are_added_expert_by_expert);
    tcase_add_test(tests, tokens_are_moved_by_plain_operations);
    tcase_add_loop_test(tests, scaled_rotary_goes_by_parts, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
