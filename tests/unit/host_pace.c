/* host_pace.c - hosts that differ: slowdowns of machines with Grace, and what parts of a block take of the host,
 * against times that were measured beside an H200 (kernels/torch/host_pace.py). */
#include <math.h>

#include "tests/unit/priced_device.h"

static double number(json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

/* Of a linear layer of PyTorch whose results need gradients. */
static double linear_s(void)
{
    double sum_s = 0, n = 0;
    json_t *row;
    size_t i;
    load("validation/measured", "host_pace");
    json_array_foreach(json_object_get(doc.value, "linear"), i, row)
    {
        if (!json_is_true(json_object_get(row, "gradients"))) continue;
        sum_s += number(row, "host_s");
        n++;
    }
    return sum_s / n;
}

/* Published of the same layer: github.com/NVIDIA/TransformerEngine/issues/2053. */
static const struct {
    const char *system;
    double linear_s;
} hosts[] = {{"gb200-nvl72", 37.08e-6}, {"gb300-nvl72", 37.08e-6}, {"alps", 33.17e-6}};

START_TEST(a_host_is_as_slow_as_its_linear_layer)
{
    const double within = 0.01, wanted = hosts[_i].linear_s / linear_s();
    load("topologies/systems", hosts[_i].system);
    const double found = number(json_object_get(json_object_get(doc.value, "node"), "host"), "slowdown");
    ck_assert_msg(fabs(found / wanted - 1) < within, "%s: %.4g, measured %.4g", hosts[_i].system, found, wanted);
}
END_TEST

/* Both passes of a block with weight gradients by calls of their own, less the whole block. */
START_TEST(parts_of_a_block_take_their_time)
{
    const double within = 0.05;
    double sum_s = 0, n = 0;
    json_t *row;
    size_t i;
    load("validation/measured", "host_pace");
    json_array_foreach(json_object_get(doc.value, "blocks"), i, row)
    {
        sum_s += number(row, "delayed_s") - number(row, "whole_s");
        n += 2;
    }
    load("strategies/software", "megatron-bridge");
    const double found_s = number(doc.value, "overlap_host_s");
    ck_assert_msg(fabs(found_s / (sum_s / n) - 1) < within, "%.4g s, measured %.4g s", found_s, sum_s / n);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("host_pace");
    TCase *const tests = tcase_create("host_pace");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_host_is_as_slow_as_its_linear_layer, 0, DL_COUNT(hosts));
    tcase_add_test(tests, parts_of_a_block_take_their_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
