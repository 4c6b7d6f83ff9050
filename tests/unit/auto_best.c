/* auto_best.c - what `auto` chooses is simulated to take no longer than 1.05 times the best: a sample of all kinds of
 * networks, node interiors and transports. auto_best_long.c has all systems. */
#include "tests/unit/auto_best.h"
#include "tests/unit/suite.h"

static const char *const sample[] = {"crossbar", "aurora",    "tpu-v3",   "tpu-v4",     "tpu-v5e-multislice",
                                     "cori",     "fugaku",    "cs2",      "localhost",  "sn40l",
                                     "frontier", "dgx1-v100", "dgx-h100", "perlmutter", "summit"};
static const double sizes[] = {1e4, 1e6, 1e8}; /* small first: see collective_runs.h */

START_TEST(auto_is_as_fast_as_the_best) { check_auto(sample[_i], 16, sizes, DL_COUNT(sizes)); }
END_TEST

int main(void)
{
    Suite *const s = suite_create("auto_best");
    TCase *const tests = tcase_create("systems");
    tcase_add_loop_test(tests, auto_is_as_fast_as_the_best, 0, (int)DL_COUNT(sample));
    suite_add_tcase(s, tests);
    return run_suite(s);
}
