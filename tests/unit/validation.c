/* validation.c - errors of predicted steps, their families and pairs, by hand. */
#include <check.h>
#include <math.h>

#include "sim/report/validation.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

#define ROW(name, which, measured, predicted)                                                                          \
    {                                                                                                                  \
        .id = name, .source = "a paper", .model = which, .assumed = "", .measured_s = measured,                        \
        .predicted_s = predicted                                                                                       \
    }

static struct dl_errors sum(const struct dl_compared *items, size_t n)
{
    const struct dl_compared *list[8];
    for (size_t i = 0; i < n; i++) list[i] = &items[i];
    return dl_sum_errors(list, n);
}

/* Errors +10 %, -20 %, 0 and +50 %. Of model A, pairs (1, 2) and (1, 4) are ordered, (2, 4) is not: 3 > 2.4; of model B
 * there is one row; the failed one, whatever it would be, is in no mean and in no pair. */
START_TEST(means_are_those_by_hand)
{
    const struct dl_compared items[] = {
        ROW("x-1", "A", 1, 1.1),
        ROW("x-2", "A", 3, 2.4),
        ROW("x-3", "B", 5, 5),
        ROW("x-4", "A", 2, 3),
        {.id = "x-5", .source = "a paper", .model = "A", .assumed = "", .measured_s = 9, .failure = "no such machine"}};
    const struct dl_errors e = sum(items, 5);
    ck_assert(e.n == 4 && e.n_failed == 1);
    ck_assert_double_eq_tol(e.mape, 0.2, 1e-15);
    ck_assert_double_eq_tol(e.bias, 0.1, 1e-15);
    ck_assert_double_eq_tol(e.max, 0.5, 1e-15);
    ck_assert_str_eq(e.worst->id, "x-4");
    ck_assert(e.n_pairs == 3 && e.n_ordered == 2);
}
END_TEST

START_TEST(pairs_are_those_that_differ_enough)
{
    const struct dl_compared near[] = {ROW("x-1", "A", 1, 2), ROW("x-2", "A", 1.15, 1)};
    const struct dl_compared apart[] = {ROW("x-1", "A", 1, 2), ROW("x-2", "A", 1.16, 1)};
    const struct dl_compared tie[] = {ROW("x-1", "A", 1, 2), ROW("x-2", "A", 3, 2)};
    const struct dl_compared other[] = {ROW("x-1", "A", 1, 2), ROW("x-2", "B", 3, 4)};
    ck_assert_uint_eq(sum(near, 2).n_pairs, 0);
    ck_assert(sum(apart, 2).n_pairs == 1 && sum(apart, 2).n_ordered == 0);
    ck_assert(sum(tie, 2).n_pairs == 1 && sum(tie, 2).n_ordered == 0); /* to call them equal is wrong too */
    ck_assert_uint_eq(sum(other, 2).n_pairs, 0);
}
END_TEST

START_TEST(rows_within_their_interval_are_counted_of_those_that_have_one)
{
    struct dl_compared items[] = {ROW("x-1", "A", 1, 1.1), ROW("x-2", "A", 1, 1.1), ROW("x-3", "A", 1, 1),
                                  ROW("x-4", "A", 1, 1)};
    items[0].low_s = 1, items[0].high_s = 1.2;
    items[1].low_s = 1.05, items[1].high_s = 1.15;
    items[3].failure = "why", items[3].high_s = 2;
    const struct dl_errors e = sum(items, DL_COUNT(items));
    ck_assert(e.n_bounded == 2 && e.n_within == 1);
}
END_TEST

START_TEST(nothing_predicted_is_no_error_of_zero)
{
    const struct dl_compared failed[] = {{.id = "x", .source = "", .model = "", .assumed = "", .failure = "why"}};
    const struct dl_errors e = sum(failed, 1);
    ck_assert(e.n == 0 && e.n_failed == 1 && isnan(e.mape) && isnan(e.bias) && isnan(e.max) && !e.worst);
}
END_TEST

START_TEST(families_are_sources_and_named_by_ids)
{
    struct dl_compared items[] = {ROW("VT-M-0001", "A", 1, 1), ROW("MPT-1", "A", 1, 1),   ROW("VT-M-0093", "A", 1, 1),
                                  ROW("MPT-2", "A", 1, 1),     ROW("alone", "A", 1, 1.5), ROW("VT-M-7", "A", 1, 1)};
    items[1].source = "benchmarks [A100]";
    items[3].source = "benchmarks [H100 80GB]";
    items[4].source = "a letter";
    items[5].source = "another paper";
    const struct dl_validation v = dl_validation_of(items, DL_COUNT(items), "simgrid", arena);
    static const char *const names[] = {"a paper", "MPT", "a letter", "another paper"}; /* of one name none has it */
    ck_assert_uint_eq(v.n_families, DL_COUNT(names));
    for (size_t i = 0; i < DL_COUNT(names); i++) ck_assert_str_eq(v.families[i].name, names[i]);
    ck_assert_str_eq(v.families[1].source, "benchmarks");
    ck_assert_uint_eq(v.families[0].n_rows, 2);
    ck_assert_ptr_eq(v.families[0].rows[1], &items[2]);
    ck_assert_double_eq_tol(dl_validation_summary(&v).mape, 0.5 / 6, 1e-15);
}
END_TEST

/* Errors of 10 %, but 30 % with two ways: these are worst. Three rows of 40 % are too few, and all have tensor 1. */
START_TEST(the_worst_group_has_something_in_common)
{
    static const char *const traits[][3] = {
        {"tensor 1", "ways 1", NULL}, {"tensor 1", "ways 2", NULL}, {"tensor 1", "ways 3", NULL}};
    struct dl_compared items[16];
    for (size_t i = 0; i < DL_COUNT(items); i++) {
        const size_t group = i < 4 ? 1 : i < 7 ? 2 : 0;
        items[i] = (struct dl_compared)ROW("x-1", "A", 1, group == 1 ? 0.7 : group == 2 ? 1.4 : 1.1);
        items[i].traits = traits[group];
    }
    const struct dl_validation v = dl_validation_of(items, DL_COUNT(items), "simgrid", arena);
    const struct dl_row_group g = dl_worst_group(&v.families[0]);
    ck_assert_str_eq(g.trait, "ways 2");
    ck_assert_uint_eq(g.n, 4);
    ck_assert_double_eq_tol(g.mape, 0.3, 1e-15);
    ck_assert_double_eq_tol(g.bias, -0.3, 1e-15);
    for (size_t i = 0; i < DL_COUNT(items); i++) items[i].predicted_s = 1.1;
    ck_assert_ptr_null(dl_worst_group(&v.families[0]).trait);
}
END_TEST

/* Each row is in one half; the halves are about as large. */
START_TEST(halves_are_halves)
{
    enum { n = 1000 };
    struct dl_compared *const items = dl_alloc(n * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct dl_compared)ROW(dl_arena_format(arena, "row-%04zu", i), "A", 1, 1 + 1e-3 * (double)i);
    const struct dl_validation v = dl_validation_of(items, n, "simgrid", arena);
    const struct dl_errors fit = dl_half_errors(&v.families[0], false), kept = dl_half_errors(&v.families[0], true);
    ck_assert_uint_eq(fit.n + kept.n, n);
    ck_assert(fit.n > 4 * n / 10 && kept.n > 4 * n / 10);
    const double mean = ((double)fit.n * fit.mape + (double)kept.n * kept.mape) / n;
    ck_assert_double_eq_tol(mean, dl_validation_summary(&v).mape, 1e-12);
    dl_free(items);
}
END_TEST

/* 8 samples in 2 s, then 32 in 4 s: twice as many a second, and 2 s more. */
START_TEST(pairs_are_compared_by_what_is_published_of_both)
{
    const struct dl_compared first = {.id = "x", .predicted_s = 2, .samples_per_s = 4, .fits = true};
    struct dl_compared second = {
        .id = "x", .quantity = DL_SPEEDUP, .measured_s = 1.6, .predicted_s = 4, .samples_per_s = 8, .fits = false};
    struct dl_compared other = second;
    dl_compare_pair(&first, &second);
    ck_assert_double_eq(second.predicted_s, 2);
    ck_assert_double_eq_tol(dl_compared_error(&second), 0.25, 1e-15);
    ck_assert(!second.fits);
    other.quantity = DL_DIFFERENCE;
    dl_compare_pair(&first, &other);
    ck_assert_double_eq(other.predicted_s, 2);
    const struct dl_compared failed = {.failure = "why"};
    dl_compare_pair(&failed, &other);
    ck_assert_str_eq(other.failure, "why");
}
END_TEST

START_TEST(what_nothing_is_published_of_is_in_no_mean)
{
    struct dl_compared items[] = {ROW("x-1", "A", 1, 1.1), ROW("x-2", "A", NAN, 7)};
    const struct dl_errors e = sum(items, 2);
    ck_assert(e.n == 1 && !e.n_failed && !e.n_pairs);
    ck_assert_double_eq_tol(e.mape, 0.1, 1e-15);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("validation");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, means_are_those_by_hand);
    tcase_add_test(tests, pairs_are_those_that_differ_enough);
    tcase_add_test(tests, rows_within_their_interval_are_counted_of_those_that_have_one);
    tcase_add_test(tests, nothing_predicted_is_no_error_of_zero);
    tcase_add_test(tests, families_are_sources_and_named_by_ids);
    tcase_add_test(tests, the_worst_group_has_something_in_common);
    tcase_add_test(tests, halves_are_halves);
    tcase_add_test(tests, pairs_are_compared_by_what_is_published_of_both);
    tcase_add_test(tests, what_nothing_is_published_of_is_in_no_mean);
    Suite *const suite = suite_create("validation");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
