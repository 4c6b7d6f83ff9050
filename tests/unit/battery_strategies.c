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

/* The first choice is what a file means that does not say it. */
static bool chooses(const struct example *e, const struct dl_operator_family *family, size_t choice)
{
    char key[40], said[80];
    snprintf(key, sizeof key, "'%s':", family->key);
    snprintf(said, sizeof said, "'%s':'%s'", family->key, family->choices[choice]);
    if (strcmp(e->strategy, family->strategy) != 0) return false;
    return strstr(e->entry, key) ? strstr(e->entry, said) != NULL : choice == 0;
}

START_TEST(every_operator_has_an_example)
{
    const struct dl_operator_family *const family = &dl_operator_families[_i];
    for (size_t choice = 0; choice < family->n; choice++) {
        size_t n = 0;
        for (size_t i = 0; i < examples.n; i++) n += chooses(&examples.items[i], family, choice);
        ck_assert_msg(n > 0, "operator %s, %s %s, has no line in tests/unit/strategy_examples.h",
                      family->operators[choice]->name, family->key, family->choices[choice]);
    }
    ck_assert_ptr_null(family->choices[family->n]);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("battery_strategies");
    TCase *const table = tcase_create("table");
    tcase_add_loop_test(table, every_strategy_has_an_example, 0, (int)dl_strategy_count());
    tcase_add_loop_test(table, every_operator_has_an_example, 0, DL_N_OPERATOR_FAMILIES);
    suite_add_tcase(suite, table);
    suite_add_tcase(suite, battery_alone("alone", examples));
    return run_suite(suite);
}
