/* battery_strategies.c - every strategy of the table alone, by its examples; battery_stacks.c puts them together. */
#define _GNU_SOURCE /* fork, pipe */
#include "strategies/operators.h"
#include "tests/unit/battery_alone.h"
#include "tests/unit/strategy_examples.h"

START_TEST(every_strategy_has_an_example)
{
    const char *const name = dl_strategy_get((size_t)_i)->name;
    size_t n = 0;
    for (size_t i = 0; i < examples.n; i++) n += strcmp(examples.items[i].strategy, name) == 0;
    ck_assert_msg(n > 0, "strategy %s has no line in tests/unit/strategy_examples.h", name);
}
END_TEST

/* One for each way in which ranks can share matrices. */
START_TEST(every_operator_has_an_example)
{
    char grid[40];
    snprintf(grid, sizeof grid, "'grid':'%s'", dl_grids[_i]);
    size_t n = 0;
    for (size_t i = 0; i < examples.n; i++) {
        const char *const entry = examples.items[i].entry;
        const bool is_said = strstr(entry, "'grid'") != NULL;
        if (strcmp(examples.items[i].strategy, "tensor") == 0)
            n += is_said ? strstr(entry, grid) != NULL : _i == DL_GRID_LINE;
    }
    ck_assert_msg(n > 0, "operator %s, tensor ranks as %s, has no line in tests/unit/strategy_examples.h",
                  dl_operator_on((enum dl_grid)_i)->name, dl_grids[_i]);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("battery_strategies");
    TCase *const table = tcase_create("table");
    tcase_add_loop_test(table, every_strategy_has_an_example, 0, (int)dl_strategy_count());
    tcase_add_loop_test(table, every_operator_has_an_example, 0, DL_N_GRIDS);
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, battery_alone("alone", examples));
    return run_suite(suite);
}
