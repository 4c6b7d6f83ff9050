/* battery_strategies.c - every strategy of the table alone, by its examples; battery_stacks.c puts them together. */
#define _GNU_SOURCE /* fork, pipe */
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

int main(void)
{
    Suite *const suite = suite_create("battery_strategies");
    TCase *const table = tcase_create("table");
    tcase_add_loop_test(table, every_strategy_has_an_example, 0, (int)dl_strategy_count());
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, battery_alone("alone", examples));
    return run_suite(suite);
}
