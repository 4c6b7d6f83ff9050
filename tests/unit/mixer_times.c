/* mixer_times.c - kernels beside the scan of a mixer, and a router without fusion, on the figures of an H200 against
 * times that were measured on one. */
#include "sim/cost/operations.h"
#include "strategies/kernel_rules.h"
#include "tests/unit/priced_device.h"

static double number(const json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

static double price_of(const struct dl_kernel *k)
{
    open_device("h200");
    device.measured = NULL;
    return dl_price(&device, k, DL_BF16).seconds;
}

static void check_within(const char *what, double found, double expected, double within)
{
    ck_assert_msg(found > (1 - within) * expected && found < (1 + within) * expected, "%s: %.4g s, measured %.4g s",
                  what, found, expected);
}

static json_t *rows_of(const char *table)
{
    load("validation/measured", table);
    return json_deep_copy(json_object_get(doc.value, "rows"));
}

/* A row a step; wider groups than 1,024 take longer, and memory counts. */
START_TEST(norms_take_the_time_of_their_rows)
{
    json_t *const rows = rows_of("mixers"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "what")), "norm") != 0) continue;
        const double width = number(row, "width"), n = number(row, "tokens") * number(row, "groups");
        struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "gated_norm", .elements = 3 * n * width};
        k.products_per_element = n / (width <= 512 ? 2 : 1) / k.elements;
        check_within("norm", price_of(&k), number(row, "backward_s"), width <= 1024 ? 0.15 : 0.5);
    }
    json_decref(rows);
}
END_TEST

START_TEST(copies_and_sums_take_instructions)
{
    json_t *const rows = rows_of("mixers"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *const what = json_string_value(json_object_get(row, "what"));
        const bool copies = strcmp(what, "samples_first") == 0, fp32 = strcmp(what, "sum_parts") == 0;
        if (!copies && !fp32) continue;
        const double n = number(row, "tokens") * number(row, "width");
        const struct dl_kernel k = {.kind = DL_KERNEL_MEMORY,
                                    .name = what,
                                    .elements = (fp32 ? 4 : 2) * n,
                                    .products_per_element = fp32 ? 1.0 / 4 : 1.0 / 2};
        check_within(what, price_of(&k), number(row, copies ? "forward_s" : "backward_s"), 0.1);
    }
    json_decref(rows);
}
END_TEST

/* Launches are no part of this: up to two million scores (8,192 tokens, 128 experts) are measured to take longer, by
 * half and more. */
START_TEST(a_plain_router_takes_the_time_of_its_operations)
{
    json_t *const rows = rows_of("plain_router"), *row;
    const struct dl_numbers numbers = {DL_WIDTHS_MIXED, DL_BF16};
    const double launches_count = 2e6; /* up to so many scores */
    struct dl_kernel_rules rules;
    size_t i;
    load("strategies/software", "megatron-bridge-plain-router");
    json_array_remove(json_object_get(doc.value, "kernels"), 2); /* those of the software that it is like */
    dl_kernel_rules_read(dl_json_member(doc, "kernels", arena), false, arena, &rules, &err);
    check_ok();
    json_array_foreach(rows, i, row)
    {
        const double scores = number(row, "tokens") * number(row, "experts");
        struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "top_k", .elements = 4 * scores};
        struct dl_kernel done = dl_kernel_instead(dl_kernel_rule_for(&rules, &k, numbers), &k, 1);
        check_within("forward", price_of(&done), number(row, "forward_s"), scores > launches_count ? 0.17 : 0.35);
        k.pass = DL_PASS_INPUT_GRADIENT, k.elements = 6 * scores;
        done = dl_kernel_instead(dl_kernel_rule_for(&rules, &k, numbers), &k, 1);
        check_within("backward", price_of(&done), number(row, "backward_s"), scores > launches_count ? 0.2 : 0.45);
    }
    json_decref(rows);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("mixer_times");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, norms_take_the_time_of_their_rows);
    tcase_add_test(tests, copies_and_sums_take_instructions);
    tcase_add_test(tests, a_plain_router_takes_the_time_of_its_operations);
    Suite *const suite = suite_create("mixer_times");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
