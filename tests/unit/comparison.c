/* comparison.c - two reports of runs: what moves both does not tell them apart. */
#include <math.h>
#include <string.h>

#include "sim/report/comparison.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_json docs[8];
static size_t n_docs;

static void begin(void)
{
    arena = dl_arena_new();
    n_docs = 0;
}

static void end(void)
{
    for (size_t i = 0; i < n_docs; i++) json_decref(docs[i].value);
    dl_arena_free(arena);
}

#define CONSTANT(path, value, low, high, elasticity)                                                                   \
    "{\"path\": \"" path "\", \"value\": " value ", \"low\": " low ", \"high\": " high ", \"elasticity\": " elasticity \
    ", \"if_less\": " elasticity ", \"if_more\": " elasticity "}"

static struct dl_told_run run_of(const char *samples_per_s, const char *system, const char *constants)
{
    const char *const text = dl_arena_format(
        arena,
        "{\"samples_per_s\": %s, \"sensitivity\": [%s], \"discrepancy\": {\"software\": \"s\", \"system\": \"%s\", "
        "\"experts\": false, \"half_width\": 0.2, \"ratio_half_width\": 0.05}}",
        samples_per_s, constants, system);
    struct dl_told_run run;
    struct dl_error err = {0};
    struct dl_json *const doc = &docs[n_docs++];
    ck_assert_msg(!dl_json_parse(text, strlen(text), "run.json", arena, doc, &err), "%s", err.text);
    ck_assert_msg(!dl_told_run_read(*doc, arena, &run, &err), "%s", err.text);
    return run;
}

START_TEST(a_run_against_itself_is_as_fast_whatever_its_constants)
{
    const struct dl_told_run run = run_of("7", "x", CONSTANT("device.rate", "10", "5", "20", "-0.9"));
    const struct dl_comparison c = dl_compare_runs(&run, &run, arena);
    ck_assert_double_eq(c.speedup.step_s, 1);
    ck_assert(c.speedup.constants_s_low == 1 && c.speedup.constants_s_high == 1);
    ck_assert_double_eq_tol(c.speedup.step_s_high, exp(0.05), 1e-12); /* two runs of the model may still differ */
    ck_assert(!dl_told_apart(&c));
}
END_TEST

/* The rate may be 10 % more or less: the first's speed moves with it by 8 %, the second's by 5 %, their ratio by 3 %.
 */
START_TEST(what_both_share_counts_by_its_difference)
{
    const struct dl_told_run a = run_of("5", "x", CONSTANT("device.rate", "10", "9", "11", "-0.8")),
                             b = run_of("6", "x", CONSTANT("device.rate", "10", "9", "11", "-0.5"));
    const struct dl_comparison c = dl_compare_runs(&a, &b, arena), back = dl_compare_runs(&b, &a, arena);
    ck_assert_double_eq_tol(c.speedup.step_s, 1.2, 1e-12);
    ck_assert_double_eq_tol(c.speedup.constants_s_high, 1.2 * 1.03, 1e-12);
    ck_assert_double_eq_tol(c.speedup.items[0].elasticity, -0.3, 1e-12); /* a better device helps the first more */
    ck_assert_double_eq_tol(c.speedup.step_s_high, 1.2 * exp(hypot(log(1.03), 0.05)), 1e-12);
    ck_assert(dl_told_apart(&c) && dl_told_apart(&back));
    ck_assert_double_eq_tol(back.speedup.step_s, 1 / 1.2, 1e-12);
    ck_assert_double_eq_tol(back.speedup.constants_s_high * back.speedup.step_s, 1.03 / (1.2 * 1.2), 1e-12);
}
END_TEST

START_TEST(of_two_machines_each_errs_by_itself)
{
    const struct dl_told_run a = run_of("5", "x", CONSTANT("device.rate", "10", "9", "11", "-1")),
                             b = run_of("6", "y", CONSTANT("device.rate", "20", "18", "22", "-1"));
    const struct dl_comparison c = dl_compare_runs(&a, &b, arena);
    ck_assert_uint_eq(c.speedup.n, 2);
    ck_assert_double_eq_tol(c.half_width, hypot(0.2, 0.2), 1e-12);
    ck_assert_double_eq_tol(c.speedup.constants_s_high, 1.2 * (1 + hypot(0.1, 0.1)), 1e-12);
    ck_assert(!dl_told_apart(&c));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("comparison");
    TCase *const tests = tcase_create("comparison");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_run_against_itself_is_as_fast_whatever_its_constants);
    tcase_add_test(tests, what_both_share_counts_by_its_difference);
    tcase_add_test(tests, of_two_machines_each_errs_by_itself);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
