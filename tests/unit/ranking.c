/* ranking.c - what a choice by predicted steps costs, and what is said of memory against what became of the runs. */
#include "sim/report/ranking.h"

#include <math.h>

#include "tests/unit/suite.h"

#define ROW(name, in, measured, predicted)                                                                             \
    {                                                                                                                  \
        .id = name, .source = "a paper", .model = "A", .assumed = "", .measured_s = measured,                          \
        .predicted_s = predicted, .fits = true, .cell = in                                                             \
    }

static struct dl_ranking rank(const struct dl_compared *items, size_t n)
{
    const struct dl_compared *rows[16];
    for (size_t i = 0; i < n; i++) rows[i] = &items[i];
    return dl_ranking_of(rows, n);
}

/* Spearman: 1 - 6 sum d^2 / (n (n^2 - 1)), where no two are alike. */
START_TEST(a_cell_has_the_correlation_of_its_ranks)
{
    const struct dl_compared items[] = {ROW("1", "c", 1, 10), ROW("2", "c", 2, 30), ROW("3", "c", 3, 20),
                                        ROW("4", "c", 4, 50), ROW("5", "c", 5, 40)};
    const struct dl_ranking r = rank(items, DL_COUNT(items));
    ck_assert(r.n_cells == 1 && r.n_ranked == 1);
    ck_assert_double_eq_tol(r.mean_correlation, 1 - 6.0 * 4 / (5 * 24), 1e-12);
    ck_assert_double_eq_tol(r.median_correlation, r.mean_correlation, 1e-15);
    ck_assert_double_eq_tol(r.mean_regret, 0, 1e-15);
}
END_TEST

/* Chosen for 10 s, though another takes 8; in the other cells the fastest is chosen. */
START_TEST(regret_is_what_the_choice_takes_longer)
{
    const struct dl_compared items[] = {ROW("1", "a", 10, 1), ROW("2", "b", 3, 3), ROW("3", "a", 8, 2),
                                        ROW("4", "b", 4, 7),  ROW("5", "c", 1, 1), ROW("6", "d", 5, 5),
                                        ROW("7", "d", 6, 5.5)};
    const struct dl_ranking r = rank(items, DL_COUNT(items));
    ck_assert(r.n_cells == 3 && r.n_ranked == 0); /* one run alone is no choice, two or three no ranking */
    ck_assert_double_eq_tol(r.mean_regret, 0.25 / 3, 1e-12);
    ck_assert_double_eq_tol(r.median_regret, 0, 1e-15);
    ck_assert(isnan(r.mean_correlation) && isnan(r.median_correlation));
}
END_TEST

START_TEST(what_was_not_measured_is_no_choice)
{
    struct dl_compared items[] = {ROW("1", "a", 10, 1), ROW("2", "a", NAN, 0.5), ROW("3", "a", 8, 0.1),
                                  ROW("4", "a", 9, 0.2), ROW("5", NULL, 1, 0.01)};
    items[2].failure = "why";
    items[3].quantity = DL_SPEEDUP;
    ck_assert_uint_eq(rank(items, DL_COUNT(items)).n_cells, 0);
}
END_TEST

/* Cell a: the fastest is said not to fit, and the next had run out of memory. b: the choice takes 25 % longer than the
 * best. c: all are said not to fit. d: nothing ran out of memory. */
START_TEST(a_search_chooses_by_memory_and_time)
{
    struct dl_compared items[] = {ROW("1", "a", 10, 3), ROW("2", "a", NAN, 2), ROW("3", "a", NAN, 1),
                                  ROW("4", "b", 5, 1),  ROW("5", "b", 4, 2),   ROW("6", "b", NAN, 3),
                                  ROW("7", "c", 1, 1),  ROW("8", "c", NAN, 1), ROW("9", "d", 1, 1)};
    const struct dl_compared *rows[DL_COUNT(items)];
    for (size_t i = 0; i < DL_COUNT(items); i++) {
        items[i].ran = isnan(items[i].measured_s) ? DL_RAN_OUT_OF_MEMORY : DL_RAN;
        rows[i] = &items[i];
    }
    items[2].fits = items[6].fits = items[7].fits = false;
    const struct dl_choices c = dl_choices_of(rows, DL_COUNT(items));
    ck_assert(c.n_cells == 3 && c.n_out == 1 && c.n_none == 1);
    ck_assert_double_eq_tol(c.mean_regret, 0.25, 1e-12);
    ck_assert_double_eq_tol(c.median_regret, 0.25, 1e-12);
}
END_TEST

START_TEST(memory_is_a_table_of_four)
{
    struct dl_compared items[10];
    const struct dl_compared *rows[DL_COUNT(items)];
    for (size_t i = 0; i < DL_COUNT(items); i++) {
        items[i] = (struct dl_compared)ROW("x", NULL, 1, 1);
        items[i].ran = i < 4 ? DL_RAN : i < 9 ? DL_RAN_OUT_OF_MEMORY : DL_END_NOT_SAID;
        items[i].fits = i < 3 || i == 4;
        rows[i] = &items[i];
    }
    items[8].failure = "why";
    const struct dl_memory_verdicts m = dl_memory_verdicts_of(rows, DL_COUNT(items));
    ck_assert(m.ran_fits == 3 && m.ran_does_not == 1 && m.out_fits == 1 && m.out_does_not == 3);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("ranking");
    TCase *const tests = tcase_create("ranking");
    tcase_add_test(tests, a_cell_has_the_correlation_of_its_ranks);
    tcase_add_test(tests, regret_is_what_the_choice_takes_longer);
    tcase_add_test(tests, what_was_not_measured_is_no_choice);
    tcase_add_test(tests, a_search_chooses_by_memory_and_time);
    tcase_add_test(tests, memory_is_a_table_of_four);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
