/* discrepancy.c - the model's own errors: whose spread counts, and how wide an interval it makes. */
#include <math.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/report/discrepancy.h"
#include "sim/report/sensitivity.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

/* Of software a on system x there are three families, on y one. */
#define ENTRY(family, software, system, spread)                                                                        \
    "{\"family\": \"" family "\", \"software\": \"" software "\", \"system\": \"" system                               \
    "\", \"rows\": 10, \"spread\": " spread
static const char file
    [] = "{\"schema\": \"dlsim/discrepancy/1\", \"source\": \"a test\", \"measured\": [" ENTRY("F", "a", "x", "0.03") ", \"ratio_rows\": 60, \"ratio_spread\": 0.02}, " ENTRY(
        "G", "a", "x",
        "0.04") "}, " ENTRY("H", "a", "x",
                            "0.05") "}, " ENTRY("I", "a", "y",
                                                "0.02") "}, " ENTRY("J", "b", "y",
                                                                    "0.3") "}, " ENTRY("J", "b", "z",
                                                                                       "0.1") "}, " ENTRY("K", "c", "y",
                                                                                                          "0.5") ", "
                                                                                                                 "\"exp"
                                                                                                                 "erts"
                                                                                                                 "\": "
                                                                                                                 "true}"
                                                                                                                 "]}";

static struct dl_discrepancy find_without(const char *family, const char *software, const char *system, bool experts)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_discrepancy found;
    const struct dl_setup setup = {software, system, experts, family};
    ck_assert_msg(!dl_json_parse(file, strlen(file), "test.json", arena, &doc, &err), "%s", err.text);
    ck_assert_msg(!dl_discrepancy_read(doc, &setup, arena, &found, &err), "%s", err.text);
    ck_assert(!strcmp(found.of.software, software) && !strcmp(found.of.system, system) && found.of.experts == experts);
    json_decref(doc.value);
    return found;
}

static struct dl_discrepancy find(const char *software, const char *system, bool experts)
{
    return find_without(NULL, software, system, experts);
}

static double root_mean(const double *spreads, size_t n)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += spreads[i] * spreads[i];
    return sqrt(squares / (double)n);
}

static const double of_j = 0.22360679774997896; /* of its two systems, with as many rows: the root of 0.05 */

START_TEST(three_families_of_its_own_are_enough)
{
    const struct dl_discrepancy d = find("a", "x", false);
    ck_assert_double_eq_tol(d.spread, root_mean((double[]){0.03, 0.04, 0.05}, 3), 1e-12);
    ck_assert(d.families == 3 && d.own_rows == 30 && d.own_spread == d.spread);
}
END_TEST

START_TEST(with_fewer_nobody_is_surer_than_all_families_are)
{
    const double all = root_mean((double[]){0.03, 0.04, 0.05, 0.02, of_j, 0.5}, 6);
    const struct dl_discrepancy few = find("a", "y", false), none = find("d", "y", false), bad = find("b", "y", false);
    ck_assert_double_eq_tol(few.spread, all, 1e-12);
    ck_assert(few.families == 6 && few.own_rows == 10 && few.own_spread == 0.02);
    ck_assert_double_eq_tol(none.spread, all, 1e-12);
    ck_assert(none.own_rows == 0);
    ck_assert_double_eq_tol(bad.spread, 0.3, 1e-12);                  /* its own rows are worse */
    ck_assert_double_eq_tol(find("d", "y", true).spread, 0.5, 1e-12); /* as are those of experts */
}
END_TEST

START_TEST(a_family_that_is_left_out_does_not_count)
{
    const struct dl_discrepancy d = find_without("H", "a", "x", false);
    ck_assert_double_eq_tol(d.spread, root_mean((double[]){0.03, 0.04, 0.02, of_j, 0.5}, 5), 1e-12);
    ck_assert(d.families == 5 && d.own_rows == 20);
    ck_assert_double_eq_tol(find_without("K", "d", "y", true).spread,
                            root_mean((double[]){0.03, 0.04, 0.05, 0.02, of_j}, 5), 1e-12);
}
END_TEST

/* The 97.5 % quantiles of Student's t with 1, 5 and very many degrees of freedom, from tables. */
START_TEST(few_families_make_a_wide_interval)
{
    static const struct {
        int64_t rows;
        double t;
    } known[] = {{1, 12.7062}, {5, 2.5706}, {100000000, 1.95996}};
    for (size_t i = 0; i < DL_COUNT(known); i++) {
        const struct dl_discrepancy d = {.spread = 0.1, .families = known[i].rows};
        ck_assert_double_eq_tol(dl_discrepancy_half_width(&d), 0.1 * known[i].t, 1e-5);
    }
    ck_assert_double_eq(dl_discrepancy_half_width(&(struct dl_discrepancy){.spread = 0.1}), 0);
}
END_TEST

START_TEST(ratios_are_by_own_rows_or_those_of_all)
{
    const double t_60 = 2.000298; /* Student's, from a table */
    ck_assert_double_eq_tol(dl_discrepancy_ratio_half_width(&(struct dl_discrepancy){.spread = 0.1, .families = 60}),
                            sqrt(2) * 0.1 * t_60, 1e-6); /* where nobody saw any, two steps err by themselves */
    const struct dl_discrepancy seen = find("a", "x", false), unseen = find("a", "y", false);
    ck_assert_double_eq_tol(dl_discrepancy_ratio_half_width(&seen), 0.02 * t_60, 1e-6);
    ck_assert(unseen.ratio_rows == 1 && unseen.ratio_spread == 0.02);
}
END_TEST

START_TEST(the_model_and_the_constants_add_as_squares_of_logarithms)
{
    struct dl_effect e[] = {
        {.path = "x", .value = 1, .low = 0.9, .high = 1.2, .elasticity = 1, .below = 1, .above = 1}};
    struct dl_sensitivity s = dl_sensitivity_of(10, e, 1);
    dl_sensitivity_widen(&s, 0);
    ck_assert_double_eq_tol(s.step_s_low, 9, 1e-12);
    ck_assert_double_eq_tol(s.step_s_high, 12, 1e-12);
    dl_sensitivity_widen(&s, 0.3);
    ck_assert_double_eq_tol(s.step_s_low, 10 * exp(-hypot(log(0.9), 0.3)), 1e-12);
    ck_assert_double_eq_tol(s.step_s_high, 10 * exp(hypot(log(1.2), 0.3)), 1e-12);
    ck_assert(s.constants_s_low == 9 && s.constants_s_high == 12);
}
END_TEST

START_TEST(an_interval_on_one_side_gets_two_and_one_down_to_nothing_stays)
{
    struct dl_effect slower[] = {{.path = "x", .value = 1, .low = 1, .high = 2, .elasticity = 0.5}};
    struct dl_sensitivity s = dl_sensitivity_of(1, slower, 1);
    dl_sensitivity_widen(&s, 0.1);
    ck_assert_double_eq_tol(s.step_s_low, exp(-0.1), 1e-12);
    struct dl_effect wide[] = {{.path = "x", .value = 1, .low = -3, .high = 1, .elasticity = 1}};
    s = dl_sensitivity_of(1, wide, 1);
    dl_sensitivity_widen(&s, 0.1);
    ck_assert_double_eq(s.step_s_low, 0);
    ck_assert_double_eq_tol(s.step_s_high, exp(0.1), 1e-12);
    struct dl_sensitivity failed = dl_sensitivity_of(0, NULL, 0);
    dl_sensitivity_widen(&failed, 0.1);
    ck_assert_double_eq(failed.step_s_high, 0);
}
END_TEST

/* ---- the shipped file ---- */

static void check_names(json_t *entry)
{
    static const char *const keys[] = {"software", "system"}, *const folders[] = {"strategies/software",
                                                                                  "topologies/systems"};
    for (size_t i = 0; i < DL_COUNT(keys); i++) {
        const char *const name = json_string_value(json_object_get(entry, keys[i])), *path;
        struct dl_error err = {0};
        ck_assert_msg(!dl_find_file(folders[i], keys[i], name, arena, &path, &err), "%s", err.text);
    }
}

START_TEST(entries_are_of_shipped_files)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_discrepancy d;
    size_t i;
    json_t *entry;
    ck_assert_msg(!dl_json_load(dl_shipped("validation/discrepancy.json", arena), arena, &doc, &err), "%s", err.text);
    ck_assert_msg(!dl_discrepancy_read(doc, &(struct dl_setup){.software = "", .system = ""}, arena, &d, &err), "%s",
                  err.text);
    ck_assert_int_ge(d.families, 10);
    json_array_foreach(json_object_get(doc.value, "measured"), i, entry) check_names(entry);
    json_decref(doc.value);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("discrepancy");
    TCase *const tests = tcase_create("discrepancy");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, three_families_of_its_own_are_enough);
    tcase_add_test(tests, with_fewer_nobody_is_surer_than_all_families_are);
    tcase_add_test(tests, a_family_that_is_left_out_does_not_count);
    tcase_add_test(tests, few_families_make_a_wide_interval);
    tcase_add_test(tests, ratios_are_by_own_rows_or_those_of_all);
    tcase_add_test(tests, the_model_and_the_constants_add_as_squares_of_logarithms);
    tcase_add_test(tests, an_interval_on_one_side_gets_two_and_one_down_to_nothing_stays);
    tcase_add_test(tests, entries_are_of_shipped_files);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
