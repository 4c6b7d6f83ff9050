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

static const char file[] = "{\"schema\": \"dlsim/discrepancy/1\", \"source\": \"a test\","
                           " \"measured\": [{\"software\": \"a\", \"system\": \"x\", \"rows\": 100, \"spread\": 0.05,"
                           "                 \"ratio_rows\": 60, \"ratio_spread\": 0.03},"
                           "                {\"software\": \"a\", \"system\": \"y\", \"rows\": 5, \"spread\": 0.1}],"
                           " \"elsewhere\": {\"rows\": 30, \"spread\": 0.25}}";

static struct dl_discrepancy find(const char *software, const char *system, bool experts)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_discrepancy found;
    const struct dl_setup setup = {software, system, experts};
    ck_assert_msg(!dl_json_parse(file, strlen(file), "test.json", arena, &doc, &err), "%s", err.text);
    ck_assert_msg(!dl_discrepancy_read(doc, &setup, arena, &found, &err), "%s", err.text);
    ck_assert(!strcmp(found.of.software, software) && !strcmp(found.of.system, system) && found.of.experts == experts);
    json_decref(doc.value);
    return found;
}

START_TEST(rows_of_the_software_on_the_system_count_and_those_of_others_where_there_are_none)
{
    ck_assert_double_eq(find("a", "x", false).spread, 0.05);
    ck_assert_double_eq(find("a", "y", false).spread, 0.1);
    ck_assert(!find("a", "x", false).elsewhere);
    static const struct dl_setup unseen[] = {{"a", "z", false}, {"b", "x", false}, {"a", "x", true}};
    for (size_t i = 0; i < DL_COUNT(unseen); i++) {
        const struct dl_discrepancy d = find(unseen[i].software, unseen[i].system, unseen[i].experts);
        ck_assert(d.elsewhere && d.spread == 0.25 && d.rows == 30);
    }
}
END_TEST

/* The 97.5 % quantiles of Student's t with 1, 5 and very many degrees of freedom, from tables. */
START_TEST(few_rows_make_a_wide_interval)
{
    static const struct {
        int64_t rows;
        double t;
    } known[] = {{1, 12.7062}, {5, 2.5706}, {100000000, 1.95996}};
    for (size_t i = 0; i < DL_COUNT(known); i++) {
        const struct dl_discrepancy d = {.spread = 0.1, .rows = known[i].rows};
        ck_assert_double_eq_tol(dl_discrepancy_half_width(&d), 0.1 * known[i].t, 1e-5);
    }
    ck_assert_double_eq(dl_discrepancy_half_width(&(struct dl_discrepancy){.spread = 0.1}), 0);
}
END_TEST

START_TEST(where_nobody_saw_ratios_two_steps_err_by_themselves)
{
    const struct dl_discrepancy seen = find("a", "x", false), unseen = find("a", "y", false);
    ck_assert_double_lt(dl_discrepancy_ratio_half_width(&seen), dl_discrepancy_half_width(&seen));
    ck_assert_double_eq_tol(dl_discrepancy_ratio_half_width(&unseen),
                            hypot(dl_discrepancy_half_width(&unseen), dl_discrepancy_half_width(&unseen)), 1e-12);
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

START_TEST(entries_are_of_shipped_files_and_nobody_is_surer_of_what_was_never_measured)
{
    struct dl_json doc;
    struct dl_error err = {0};
    struct dl_discrepancy d;
    size_t i;
    json_t *entry;
    ck_assert_msg(!dl_json_load(dl_shipped("validation/discrepancy.json", arena), arena, &doc, &err), "%s", err.text);
    ck_assert_msg(!dl_discrepancy_read(doc, &(struct dl_setup){"", "", false}, arena, &d, &err), "%s", err.text);
    json_t *const measured = json_object_get(doc.value, "measured");
    ck_assert_uint_gt(json_array_size(measured), 0);
    double squares = 0;
    json_array_foreach(measured, i, entry)
    {
        check_names(entry);
        squares += pow(json_number_value(json_object_get(entry, "spread")), 2);
    }
    ck_assert_double_gt(d.spread, sqrt(squares / (double)json_array_size(measured)));
    json_decref(doc.value);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("discrepancy");
    TCase *const tests = tcase_create("discrepancy");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, rows_of_the_software_on_the_system_count_and_those_of_others_where_there_are_none);
    tcase_add_test(tests, few_rows_make_a_wide_interval);
    tcase_add_test(tests, where_nobody_saw_ratios_two_steps_err_by_themselves);
    tcase_add_test(tests, the_model_and_the_constants_add_as_squares_of_logarithms);
    tcase_add_test(tests, an_interval_on_one_side_gets_two_and_one_down_to_nothing_stays);
    tcase_add_test(tests, entries_are_of_shipped_files_and_nobody_is_surer_of_what_was_never_measured);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
