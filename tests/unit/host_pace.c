/* host_pace.c - what parts of a block take of the host, against times that were measured beside an H200
 * (kernels/torch/host_pace.py). */
#include <math.h>

#include "tests/unit/priced_device.h"

static double number(json_t *row, const char *key) { return json_number_value(json_object_get(row, key)); }

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
    tcase_add_test(tests, parts_of_a_block_take_their_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
