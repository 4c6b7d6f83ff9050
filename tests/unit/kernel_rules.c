/* kernel_rules.c - what a framework makes of a kernel: the first rule that fits, more moved, casts beside it. */
#include <string.h>

#include "strategies/kernel_rules.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static json_t *value;
static struct dl_kernel_rules rules;

static void open_rules_of(bool fused, const char *text)
{
    struct dl_error err = {0};
    arena = dl_arena_new();
    value = json_loads(text, 0, NULL);
    ck_assert_msg(!dl_kernel_rules_read((struct dl_json){.value = value, .where = "test"}, fused, arena, &rules, &err),
                  "%s", err.text);
}

static void open_rules(const char *text) { open_rules_of(false, text); }

static void close_rules(void)
{
    json_decref(value);
    dl_arena_free(arena);
}

static const struct dl_numbers mixed = {DL_WIDTHS_MIXED, DL_FP16}, fp32 = {DL_WIDTHS_FP32, DL_FP32};
static const struct dl_kernel norm = {.kind = DL_KERNEL_MEMORY, .name = "norm1", .operation = "layernorm"};

START_TEST(the_first_rule_that_fits_counts)
{
    open_rules("[{\"operation\": \"layernorm\", \"pass\": \"weight_gradient\", \"launches\": 5},"
               " {\"operation\": \"layernorm\", \"launches\": 2, \"numbers\": \"mixed\"},"
               " {\"operation\": \"layernorm\", \"launches\": 1}]");
    struct dl_kernel gradient = norm;
    gradient.pass = DL_PASS_WEIGHT_GRADIENT;
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, mixed)->launches, 2);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, fp32)->launches, 1);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &gradient, fp32)->launches, 5);
    const struct dl_kernel other = {.kind = DL_KERNEL_GEMM, .name = "qkv"};
    ck_assert_ptr_null(dl_kernel_rule_for(&rules, &other, mixed));
    close_rules();
}
END_TEST

START_TEST(a_rule_may_be_for_one_precision)
{
    open_rules("[{\"operation\": \"layernorm\", \"launches\": 3, \"numbers\": \"bf16\"},"
               " {\"operation\": \"layernorm\", \"launches\": 4, \"numbers\": \"fp32\"},"
               " {\"operation\": \"layernorm\", \"launches\": 5, \"numbers\": \"mxfp8\"},"
               " {\"operation\": \"layernorm\", \"launches\": 6, \"numbers\": \"fp8\"},"
               " {\"operation\": \"layernorm\", \"launches\": 7, \"numbers\": \"nvfp4\"},"
               " {\"operation\": \"layernorm\", \"launches\": 2}]");
    const struct dl_numbers bf16 = {DL_WIDTHS_MIXED, DL_BF16}, tf32 = {DL_WIDTHS_FP32, DL_TF32},
                            fp8 = {DL_WIDTHS_MIXED, DL_FP8}, mxfp8 = {DL_WIDTHS_MIXED, DL_MXFP8},
                            nvfp4 = {DL_WIDTHS_MIXED, DL_NVFP4};
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, mixed)->launches, 2);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, tf32)->launches, 2);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, fp32)->launches, 4);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, bf16)->launches, 3);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, fp8)->launches, 6);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, mxfp8)->launches, 5);
    ck_assert_double_eq(dl_kernel_rule_for(&rules, &norm, nvfp4)->launches, 7);
    close_rules();
}
END_TEST

/* y[m, n] = x[m, k] w[k, n]: forward reads the weights, their gradient is m x n of a product with the tokens inside. */
START_TEST(weights_are_cast_beside_a_product)
{
    open_rules("[{\"operation\": \"gemm\", \"launches\": 2, \"weight_moves\": 3}]");
    const double tokens = 1000, inputs = 30, outputs = 70, weights = 2 * inputs * outputs;
    const struct dl_kernel forward = {.kind = DL_KERNEL_GEMM, .batch = 2, .m = tokens, .n = outputs, .k = inputs};
    const struct dl_kernel gradient = {
        .kind = DL_KERNEL_GEMM, .pass = DL_PASS_WEIGHT_GRADIENT, .batch = 2, .m = inputs, .n = outputs, .k = tokens};
    struct dl_kernel scores = forward;
    scores.module = DL_MODULE_CORE_ATTENTION; /* a product of activations has no weights */
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &forward).elements, 3 * weights);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &gradient).elements, 3 * weights);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &scores).elements, 0);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &norm).elements, 0);
    close_rules();
}
END_TEST

/* A bias that is added to the result of one product only, whatever other rule there is for products. */
START_TEST(a_kernel_is_meant_by_its_own_name_too)
{
    open_rules("[{\"operation\": \"qkv\", \"launches\": 2, \"result_moves\": 2, \"rate\": 0.5},"
               " {\"operation\": \"gemm\", \"launches\": 1, \"weight_moves\": 3}]");
    const double tokens = 1000, inputs = 30, outputs = 70;
    const struct dl_kernel qkv = {
        .kind = DL_KERNEL_GEMM, .name = "qkv", .batch = 1, .m = tokens, .n = outputs, .k = inputs};
    struct dl_kernel other = qkv;
    other.name = "fc1";
    ck_assert_ptr_eq(dl_kernel_rule_for(&rules, &qkv, mixed), &rules.rules[0]);
    ck_assert_ptr_eq(dl_kernel_rule_for(&rules, &other, mixed), &rules.rules[1]);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &qkv).elements, 2 * tokens * outputs);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[1], &other).elements, 3 * inputs * outputs);
    ck_assert_double_eq(rules.rules[0].rate, 0.5);
    ck_assert_double_eq(rules.rules[1].rate, 1);
    close_rules();
}
END_TEST

/* FlashAttention of the first version has kernels for heads of 32, 64 and 128. */
START_TEST(heads_are_padded_to_those_that_there_are_kernels_for)
{
    static const double sizes[][2] = {{16, 32}, {32, 32}, {48, 64}, {64, 64}, {80, 128}, {128, 128}, {192, 192}};
    open_rules("[{\"operation\": \"attention\", \"launches\": 1, \"head_sizes\": [32, 64, 128]}]");
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const struct dl_kernel attention = {
            .kind = DL_KERNEL_ATTENTION, .batch = 2, .m = 64, .n = 64, .k = sizes[i][0]};
        ck_assert_double_eq(dl_kernel_head_size(&rules.rules[0], &attention), sizes[i][1]);
    }
    close_rules();
}
END_TEST

/* Fused kernels that take four matrices at once. */
START_TEST(a_rule_may_be_for_numbers_that_do_not_divide)
{
    open_rules("[{\"operation\": \"softmax\", \"unless_multiple_of\": 4, \"launches\": 6},"
               " {\"operation\": \"softmax\", \"launches\": 1}]");
    for (int matrices = 1; matrices <= 12; matrices++) {
        const struct dl_kernel softmax = {.kind = DL_KERNEL_MEMORY, .name = "softmax", .batch = matrices};
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &softmax, mixed)->launches, matrices % 4 ? 6 : 1);
    }
    close_rules();
}
END_TEST

/* Sums of few columns are bound by their instructions, those of many by memory. */
START_TEST(a_rule_may_be_for_narrow_rows)
{
    open_rules("[{\"operation\": \"bias\", \"widest\": 512, \"launches\": 3, \"unit_s\": 1e-9},"
               " {\"operation\": \"bias\", \"launches\": 1}]");
    for (int width = 64; width <= 4096; width *= 2) {
        const struct dl_kernel bias = {.kind = DL_KERNEL_MEMORY, .name = "bias", .n = width};
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &bias, mixed)->launches, width <= 512 ? 3 : 1);
    }
    close_rules();
}
END_TEST

/* Convolutions by cuDNN, where those of single pixels are products. */
START_TEST(a_rule_may_be_for_windows)
{
    open_rules("[{\"operation\": \"conv\", \"windowed\": true, \"launches\": 3},"
               " {\"operation\": \"conv\", \"launches\": 1}]");
    for (int window = 0; window <= 7; window++) {
        const struct dl_kernel conv = {.kind = DL_KERNEL_CONV, .name = "conv1", .window = window};
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &conv, mixed)->launches, window > 1 ? 3 : 1);
    }
    close_rules();
}
END_TEST

/* Under autocast a norm is done in fp32 and its result cast; dropout is apart where a residual has it. */
START_TEST(a_rule_may_tell_what_is_done_instead_and_beside)
{
    open_rules("[{\"operation\": \"residual\", \"dropout\": true, \"launches\": 2, \"as\": \"mixed_add\","
               " \"moves\": 0.5, \"beside\": \"dropout\", \"beside_moves\": 0.25},"
               " {\"operation\": \"residual\", \"launches\": 1},"
               " {\"operation\": \"layernorm\", \"launches\": 2, \"wide\": true, \"beside_moves\": 1.5}]");
    struct dl_kernel residual = {.kind = DL_KERNEL_MEMORY, .name = "residual", .elements = 1000}, wide = norm;
    ck_assert_ptr_eq(dl_kernel_rule_for(&rules, &residual, mixed), &rules.rules[1]);
    residual.drops = true;
    ck_assert_ptr_eq(dl_kernel_rule_for(&rules, &residual, mixed), &rules.rules[0]);
    const struct dl_kernel instead = dl_kernel_instead(&rules.rules[0], &residual, 1);
    ck_assert_str_eq(dl_kernel_operation(&instead), "mixed_add");
    ck_assert_double_eq(instead.elements, 500);
    const struct dl_kernel beside = dl_kernel_beside(&rules.rules[0], &residual);
    ck_assert_str_eq(dl_kernel_operation(&beside), "dropout");
    ck_assert_double_eq(beside.elements, 250);
    wide.elements = 1000;
    const struct dl_kernel cast = dl_kernel_beside(&rules.rules[2], &wide);
    ck_assert(rules.rules[2].is_wide && !rules.rules[1].is_wide);
    ck_assert_str_eq(dl_kernel_operation(&cast), "cast");
    ck_assert_double_eq(cast.elements, 1500);
    close_rules();
}
END_TEST

/* Gradients of queries, keys and values are put together, as these were split. */
START_TEST(results_of_attention_may_be_moved)
{
    open_rules("[{\"operation\": \"attention\", \"launches\": 4, \"result_moves\": 2, \"beside\": \"copy\"}]");
    const double heads = 12, length = 100, size = 64, shared = 0.25, queries = heads * length * size;
    struct dl_kernel k = {.kind = DL_KERNEL_ATTENTION, .batch = heads, .m = length, .n = length, .k = size};
    k.kv_share = shared;
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &k).elements, 2 * queries);
    k.backward = true;
    const struct dl_kernel beside = dl_kernel_beside(&rules.rules[0], &k);
    ck_assert_double_eq(beside.elements, 2 * (queries + 2 * shared * queries));
    ck_assert_str_eq(dl_kernel_operation(&beside), "copy");
    close_rules();
}
END_TEST

/* 3 x 3 windows that move by one: the product has nine columns for each channel of a pixel, memory has it once. */
START_TEST(pixels_are_moved_once_however_many_windows_hold_them)
{
    open_rules("[{\"operation\": \"conv\", \"launches\": 1, \"operand_moves\": 2, \"result_moves\": 3}]");
    const double groups = 4, pixels = 100, channels = 8, filters = 16, window = 3;
    const double given = groups * pixels * channels, made = groups * pixels * filters;
    struct dl_kernel k = {.kind = DL_KERNEL_CONV, .batch = groups, .window = window, .stride = 1};
    k.m = pixels, k.n = filters, k.k = channels * window * window;
    ck_assert_double_eq_tol(dl_kernel_beside(&rules.rules[0], &k).elements, 2 * given + 3 * made, 1e-9);
    k.pass = DL_PASS_INPUT_GRADIENT, k.n = channels * window * window, k.k = filters;
    ck_assert_double_eq_tol(dl_kernel_beside(&rules.rules[0], &k).elements, 2 * made + 3 * given, 1e-9);
    close_rules();
}
END_TEST

START_TEST(a_rule_may_be_for_grouped_queries)
{
    open_rules("[{\"operation\": \"attention\", \"launches\": 5, \"grouped_queries\": true},"
               " {\"operation\": \"attention\", \"launches\": 3}]");
    for (int parts = 1; parts <= 4; parts++) {
        const struct dl_kernel k = {.kind = DL_KERNEL_ATTENTION, .name = "attention", .kv_share = 1. / parts};
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &k, mixed)->launches, parts > 1 ? 5 : 3);
    }
    close_rules();
}
END_TEST

START_TEST(a_rule_may_be_for_rotated_parts)
{
    open_rules("[{\"operation\": \"rotary\", \"launches\": 5, \"rotated_parts\": true},"
               " {\"operation\": \"rotary\", \"launches\": 3}]");
    for (int parts = 0; parts <= 1; parts++) {
        const struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "rotary", .rotates_parts = parts};
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &k, mixed)->launches, parts ? 5 : 3);
    }
    close_rules();
}
END_TEST

START_TEST(a_rule_may_be_for_a_fused_optimizer)
{
    const struct dl_kernel update = {.kind = DL_KERNEL_MEMORY, .name = "adam"};
    for (int fused = 0; fused <= 1; fused++) {
        open_rules_of(fused, "[{\"operation\": \"adam\", \"launches\": 0.5, \"fused\": true},"
                             " {\"operation\": \"adam\", \"launches\": 1}]");
        ck_assert_double_eq(dl_kernel_rule_for(&rules, &update, mixed)->launches, fused ? 0.5 : 1);
        close_rules();
    }
}
END_TEST

/* A product casts its input of m x k and keeps the copy; others keep so much for each element or result. */
START_TEST(kernels_may_keep_more)
{
    const double m = 40, n = 30, k = 20, heads = 3, length = 8, size = 4;
    const struct dl_kernel product = {.kind = DL_KERNEL_GEMM, .name = "up", .batch = 1, .m = m, .n = n, .k = k},
                           function = {.kind = DL_KERNEL_MEMORY, .name = "swiglu", .elements = 300},
                           attention = {
                               .kind = DL_KERNEL_ATTENTION, .batch = heads, .m = length, .n = length, .k = size};
    open_rules("[{\"operation\": \"up\", \"launches\": 2, \"operand_moves\": 3, \"saved_bytes\": 2}]");
    ck_assert(rules.any_saves);
    ck_assert_double_eq(dl_kernel_beside(&rules.rules[0], &product).elements, 3 * m * k);
    ck_assert_double_eq(dl_kernel_saves(&rules.rules[0], &product), 2 * m * k);
    ck_assert_double_eq(dl_kernel_saves(&rules.rules[0], &function), 2 * 300);
    ck_assert_double_eq(dl_kernel_saves(&rules.rules[0], &attention), 2 * heads * length * size);
    close_rules();
}
END_TEST

START_TEST(a_rule_may_be_for_experts_or_biases)
{
    open_rules("[{\"operation\": \"fc1\", \"bias\": true, \"launches\": 3},"
               " {\"operation\": \"fc1\", \"experts\": true, \"launches\": 2},"
               " {\"operation\": \"fc1\", \"launches\": 1}]");
    for (int has_bias = 0; has_bias <= 1; has_bias++)
        for (int of_experts = 0; of_experts <= 1; of_experts++) {
            struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .name = "fc1", .has_bias = has_bias};
            k.by.batch = of_experts ? DL_BY_EXPERT : 0;
            ck_assert_double_eq(dl_kernel_rule_for(&rules, &k, mixed)->launches, has_bias ? 3 : of_experts ? 2 : 1);
        }
    close_rules();
}
END_TEST

/* A kernel that is bound by its instructions has its own; beside a product they go through what it makes, or through
 * the gradient of that. */
START_TEST(instructions_are_counted_for_each_element)
{
    const double each_s = 1e-9, tokens = 100, inputs = 30, outputs = 70;
    open_rules("[{\"operation\": \"swiglu\", \"launches\": 2, \"moves\": 2, \"unit_s\": 1e-9},"
               " {\"operation\": \"gemm\", \"launches\": 1, \"unit_s\": 1e-9}]");
    const struct dl_kernel swiglu = {.kind = DL_KERNEL_MEMORY, .name = "swiglu", .elements = 300};
    ck_assert_double_eq_tol(dl_kernel_instead(&rules.rules[0], &swiglu, 1).unit_s, 300 * each_s, 1e-20);
    ck_assert_double_eq(dl_kernel_issued(&rules.rules[0], &swiglu).unit_s, 0);
    struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .batch = 1, .m = tokens, .n = outputs, .k = inputs};
    ck_assert_double_eq_tol(dl_kernel_issued(&rules.rules[1], &k).unit_s, tokens * outputs * each_s, 1e-20);
    k.pass = DL_PASS_INPUT_GRADIENT, k.n = inputs, k.k = outputs;
    ck_assert_double_eq_tol(dl_kernel_issued(&rules.rules[1], &k).unit_s, tokens * outputs * each_s, 1e-20);
    k.pass = DL_PASS_WEIGHT_GRADIENT;
    ck_assert_double_eq(dl_kernel_issued(&rules.rules[1], &k).unit_s, 0);
    close_rules();
}
END_TEST

/* A loop over experts: so many launches for each, and a tensor of all tokens that is filled and added. */
START_TEST(what_is_done_for_each_expert_grows_with_these)
{
    open_rules(
        "[{\"operation\": \"permute\", \"each_expert\": true, \"launches\": 5, \"moves\": 2, \"expert_moves\": 4},"
        " {\"operation\": \"unpermute\", \"launches\": 5}]");
    const double tokens = 100, copies = 3;
    const struct dl_kernel permute = {
        .kind = DL_KERNEL_MEMORY, .name = "permute", .elements = (1 + copies) * tokens, .tokens = 1 / (1 + copies)};
    for (double experts = 1; experts <= 64; experts *= 4) {
        ck_assert_double_eq(dl_kernel_launches(&rules.rules[0], experts), 5 * experts);
        ck_assert_double_eq(dl_kernel_launches(&rules.rules[1], experts), 5);
        ck_assert_double_eq_tol(dl_kernel_instead(&rules.rules[0], &permute, experts).elements,
                                2 * (1 + copies) * tokens + 4 * experts * tokens, 1e-9);
        ck_assert_double_eq(dl_kernel_instead(&rules.rules[1], &permute, experts).elements, permute.elements);
    }
    close_rules();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernel_rules");
    TCase *const tests = tcase_create("kernel_rules");
    tcase_add_test(tests, the_first_rule_that_fits_counts);
    tcase_add_test(tests, what_is_done_for_each_expert_grows_with_these);
    tcase_add_test(tests, a_rule_may_be_for_one_precision);
    tcase_add_test(tests, weights_are_cast_beside_a_product);
    tcase_add_test(tests, a_kernel_is_meant_by_its_own_name_too);
    tcase_add_test(tests, a_rule_may_be_for_windows);
    tcase_add_test(tests, a_rule_may_be_for_narrow_rows);
    tcase_add_test(tests, heads_are_padded_to_those_that_there_are_kernels_for);
    tcase_add_test(tests, a_rule_may_be_for_numbers_that_do_not_divide);
    tcase_add_test(tests, a_rule_may_tell_what_is_done_instead_and_beside);
    tcase_add_test(tests, results_of_attention_may_be_moved);
    tcase_add_test(tests, pixels_are_moved_once_however_many_windows_hold_them);
    tcase_add_test(tests, a_rule_may_be_for_grouped_queries);
    tcase_add_test(tests, a_rule_may_be_for_rotated_parts);
    tcase_add_test(tests, a_rule_may_be_for_a_fused_optimizer);
    tcase_add_test(tests, kernels_may_keep_more);
    tcase_add_test(tests, a_rule_may_be_for_experts_or_biases);
    tcase_add_test(tests, instructions_are_counted_for_each_element);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
