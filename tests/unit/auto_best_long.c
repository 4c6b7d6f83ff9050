/* auto_best_long.c - as auto_best.c, on all shipped systems, in groups of several sizes. */
#include "tests/unit/auto_best.h"
#include "tests/unit/suite.h"

static const uint32_t groups[] = {4, 8, 12, 16, 24, 32};
static const double sizes[] = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}; /* small first: see collective_runs.h */
static const char **names;

START_TEST(auto_is_as_fast_as_the_best)
{
    check_auto(names[(size_t)_i / DL_COUNT(groups)], groups[(size_t)_i % DL_COUNT(groups)], sizes, DL_COUNT(sizes));
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    const int n_systems = (int)dl_list_folder("topologies/systems", arena, &names);
    Suite *const s = suite_create("auto_best_long");
    TCase *const tests = tcase_create("systems");
    tcase_add_loop_test(tests, auto_is_as_fast_as_the_best, 0, n_systems * (int)DL_COUNT(groups));
    suite_add_tcase(s, tests);
    const int failed = run_suite(s);
    dl_arena_free(arena);
    return failed;
}
