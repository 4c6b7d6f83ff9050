/* grouped_host.c - what an expert takes of the host in a grouped linear layer beside launches: rules of
 * `megatron-bridge` against times that were measured beside an H200 by likeness (kernels/torch/grouped_host.py). */
#include <math.h>

#include "strategies/kernel_rules.h"
#include "tests/unit/priced_device.h"

struct line {
    double each_s, alone_s; /* of an expert, of all together */
};

/* By least squares over all numbers of experts. */
static struct line measured_s(const char *precision, const char *pass)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    json_t *row;
    size_t i;
    load("validation/measured", "grouped_host");
    json_array_foreach(json_object_get(doc.value, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "precision")), precision) != 0) continue;
        const double experts = json_number_value(json_object_get(row, "experts"));
        const double seconds = json_number_value(json_object_get(row, pass));
        n++, x += experts, y += seconds, xx += experts * experts, xy += experts * seconds;
    }
    const double each_s = (n * xy - x * y) / (n * xx - x * x);
    return (struct line){each_s, (y - each_s * x) / n};
}

/* Of both passes backward one product launches for all that is not a launch. */
static double said_s(enum dl_precision precision, enum dl_kernel_pass pass)
{
    const struct dl_kernel k = {.kind = DL_KERNEL_GEMM, .name = "expert_fc1", .pass = pass, .by.batch = DL_BY_EXPERT};
    const struct dl_numbers numbers = {DL_WIDTHS_MIXED, precision};
    struct dl_kernel_rules rules;
    load("strategies/software", "megatron-bridge");
    dl_kernel_rules_read(dl_json_member(doc, "kernels", arena), false, arena, &rules, &err);
    check_ok();
    const struct dl_kernel_rule *const rule = dl_kernel_rule_for(&rules, &k, numbers);
    const double launch_s = json_number_value(json_object_get(doc.value, "host_s_per_group_launch"));
    return rule ? (dl_kernel_launches(rule, 1) - 1) * launch_s : 0;
}

static const struct {
    const char *name;
    enum dl_precision precision;
} cases[] = {{"bf16", DL_BF16}, {"mxfp8", DL_MXFP8}};
static const char *const keys[] = {"forward_s", "backward_s"};

START_TEST(an_expert_takes_its_time_beside_launches)
{
    const double within = 0.05;
    for (int i = 0; i < 2; i++) {
        const double found = said_s(cases[_i].precision, i ? DL_PASS_WEIGHT_GRADIENT : DL_PASS_FORWARD);
        const double each = measured_s(cases[_i].name, keys[i]).each_s;
        ck_assert_msg(found > (1 - within) * each && found < (1 + within) * each, "%s, %s: %.4g s, measured %.4g s",
                      cases[_i].name, keys[i], found, each);
    }
}
END_TEST

/* The mean of both precisions and passes, less the launch that each time holds and what autograd takes backward. */
START_TEST(a_call_takes_its_time_for_all_experts)
{
    const double launch_s = 10e-6, autograd_s = 15e-6, within = 0.05;
    double sum_s = 0;
    for (size_t i = 0; i < DL_COUNT(cases); i++)
        for (int j = 0; j < 2; j++)
            sum_s += measured_s(cases[i].name, keys[j]).alone_s - launch_s - (j ? autograd_s : 0);
    load("strategies/software", "megatron-bridge");
    const double found_s = json_number_value(json_object_get(doc.value, "group_host_s"));
    const double wanted_s = sum_s / (2 * DL_COUNT(cases));
    ck_assert_msg(fabs(found_s / wanted_s - 1) < within, "%.4g s, measured %.4g s", found_s, wanted_s);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("grouped_host");
    TCase *const tests = tcase_create("grouped_host");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, an_expert_takes_its_time_beside_launches, 0, DL_COUNT(cases));
    tcase_add_test(tests, a_call_takes_its_time_for_all_experts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
