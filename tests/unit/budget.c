/* budget.c - errors that are made of known parts are found to be of these parts; and which constants were fitted. */
#include "sim/report/budget.h"

#include <check.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { n_rows = 40 };
static struct dl_compared rows[n_rows];
static const struct dl_compared *list[n_rows];
static gsl_rng *dice;

static double draw(double from, double to) { return from + (to - from) * gsl_rng_uniform(dice); }

/* Steps of any length, of which each part is up to a third. */
static void begin(void)
{
    dice = dl_random_new(7, "budget", 0);
    for (size_t i = 0; i < n_rows; i++) {
        rows[i] = (struct dl_compared){.id = "x", .source = "", .model = "", .assumed = "", .knows_parts = true};
        rows[i].measured_s = rows[i].predicted_s = draw(1, 100);
        for (int part = 0; part < DL_N_PARTS; part++) rows[i].added_s[part] = draw(0, 0.3) * rows[i].predicted_s;
        list[i] = &rows[i];
    }
}

static void end(void) { gsl_rng_free(dice); }

/* As if a part took so many times what it adds. */
static void scale_part(int part, double factor)
{
    for (size_t i = 0; i < n_rows; i++) rows[i].measured_s += (factor - 1) * rows[i].added_s[part];
}

static void add_noise(double fraction)
{
    for (size_t i = 0; i < n_rows; i++) rows[i].measured_s *= 1 + draw(-fraction, fraction);
}

static double sum_of_shares(const struct dl_budget *b)
{
    double sum = b->unexplained;
    for (int part = 0; part < DL_N_PARTS; part++) sum += b->parts[part].share;
    return sum;
}

START_TEST(one_wrong_part_is_the_whole_error)
{
    static const double factors[] = {1.1, 0.7};
    const double factor = factors[_i / DL_N_PARTS];
    const int wrong = _i % DL_N_PARTS;
    scale_part(wrong, factor);
    const struct dl_budget b = dl_budget_of(list, n_rows);
    ck_assert_double_eq_tol(b.parts[wrong].factor, factor, 1e-12);
    ck_assert_double_eq_tol(b.parts[wrong].factor_together, factor, 1e-9);
    ck_assert_double_eq_tol(b.parts[wrong].share, 1, 1e-12);
    ck_assert(b.mape > 0.01 && b.parts[wrong].mape < 1e-12 && b.unexplained < 1e-12 && b.left_mape < 1e-9);
}
END_TEST

/* The difference of two steps that differ by rounding. */
START_TEST(a_part_that_adds_nothing_explains_nothing)
{
    for (size_t i = 0; i < n_rows; i++) {
        rows[i].added_s[1] = 1e-14 * rows[i].predicted_s;
        rows[i].measured_s *= 1.05;
    }
    const struct dl_budget b = dl_budget_of(list, n_rows);
    ck_assert_double_eq(b.parts[1].factor, 1);
    ck_assert_double_eq(b.parts[1].share, 0);
}
END_TEST

/* For each row there is one with the same parts and the opposite error, so that no factor helps. */
START_TEST(noise_is_unexplained)
{
    for (size_t i = 0; i < n_rows; i += 2) {
        const double error = draw(0.01, 0.2), measured_s = rows[i].measured_s;
        memcpy(rows[i + 1].added_s, rows[i].added_s, sizeof rows[i].added_s);
        rows[i + 1].measured_s = measured_s;
        rows[i].predicted_s = measured_s * (1 + error);
        rows[i + 1].predicted_s = measured_s * (1 - error);
    }
    const struct dl_budget b = dl_budget_of(list, n_rows);
    ck_assert_double_eq_tol(b.unexplained, 1, 1e-12);
    ck_assert_double_eq_tol(b.left_mape, b.mape, 1e-12);
    for (int part = 0; part < DL_N_PARTS; part++) ck_assert_double_eq_tol(b.parts[part].factor, 1, 1e-12);
}
END_TEST

/* Squares that the best factors of all parts leave, of those of the errors, by singular values. */
static double left_by_gsl(void)
{
    gsl_matrix *const x = gsl_matrix_alloc(n_rows, DL_N_PARTS), *const covariance =
                                                                    gsl_matrix_alloc(DL_N_PARTS, DL_N_PARTS);
    gsl_vector *const y = gsl_vector_alloc(n_rows), *const factors = gsl_vector_alloc(DL_N_PARTS);
    gsl_multifit_linear_workspace *const work = gsl_multifit_linear_alloc(n_rows, DL_N_PARTS);
    double all = 0, left;
    for (size_t i = 0; i < n_rows; i++) {
        const double lacks = -dl_compared_error(&rows[i]);
        gsl_vector_set(y, i, lacks);
        all += lacks * lacks;
        for (size_t part = 0; part < DL_N_PARTS; part++)
            gsl_matrix_set(x, i, part, rows[i].added_s[part] / rows[i].measured_s);
    }
    gsl_multifit_linear(x, y, factors, covariance, &left, work);
    gsl_multifit_linear_free(work);
    gsl_matrix_free(x);
    gsl_matrix_free(covariance);
    gsl_vector_free(y);
    gsl_vector_free(factors);
    return left / all;
}

START_TEST(all_parts_together_leave_what_least_squares_leave)
{
    for (int part = 0; part < DL_N_PARTS; part++) scale_part(part, 1.2 + 0.2 * part);
    add_noise(0.02);
    const struct dl_budget b = dl_budget_of(list, n_rows);
    for (int part = 0; part < DL_N_PARTS; part++) ck_assert_double_gt(b.parts[part].share, 0);
    ck_assert_double_eq_tol(b.unexplained, left_by_gsl(), 1e-9);
    ck_assert_double_eq_tol(sum_of_shares(&b), 1, 1e-12);
}
END_TEST

/* Two rows: of 10 s one part adds 3 and 1 s; measured 8 and 10. */
START_TEST(means_are_those_by_hand)
{
    for (size_t i = 0; i < 2; i++) {
        rows[i].predicted_s = 10;
        rows[i].measured_s = i ? 10 : 8;
        memset(rows[i].added_s, 0, sizeof rows[i].added_s);
        rows[i].added_s[DL_PART_HOST] = i ? 1 : 3;
    }
    const struct dl_budget b = dl_budget_of(list, 2);
    const struct dl_part_budget *const host = &b.parts[DL_PART_HOST];
    const double change = -(2.0 / 8 * 3 / 8) / (9.0 / 64 + 1.0 / 100);
    ck_assert_double_eq_tol(b.mape, 0.125, 1e-15);
    ck_assert_double_eq_tol(host->added, 0.2, 1e-15);
    ck_assert_double_eq_tol(host->ideal_mape, (1.0 / 8 + 0.1) / 2, 1e-15);
    ck_assert_double_eq_tol(host->factor, 1 + change, 1e-12);
    ck_assert_double_eq_tol(host->mape, (fabs(2.0 / 8 + change * 3 / 8) + fabs(change) / 10) / 2, 1e-12);
    ck_assert(b.parts[DL_PART_NETWORK].factor == 1 && b.parts[DL_PART_NETWORK].ideal_mape == b.mape);
}
END_TEST

START_TEST(programs_are_told_what_people_are)
{
    scale_part(DL_PART_NETWORK, 1.3);
    const struct dl_budget b = dl_budget_of(list, n_rows);
    json_t *const json = dl_budget_json(&b);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "n")), n_rows);
    ck_assert_double_eq(json_real_value(json_object_get(json, "unexplained")), b.unexplained);
    for (int part = 0; part < DL_N_PARTS; part++) {
        const json_t *const told = json_object_get(json, dl_step_part_name((enum dl_step_part)part));
        ck_assert_double_eq(json_real_value(json_object_get(told, "factor")), b.parts[part].factor);
        ck_assert_double_eq(json_real_value(json_object_get(told, "share")), b.parts[part].share);
        ck_assert_double_eq(json_real_value(json_object_get(told, "added")), b.parts[part].added);
    }
    json_decref(json);
}
END_TEST

START_TEST(a_part_cannot_take_less_than_nothing)
{
    for (size_t i = 0; i < n_rows; i++) rows[i].measured_s -= 1.5 * rows[i].added_s[DL_PART_SCHEDULE];
    ck_assert_double_eq(dl_budget_of(list, n_rows).parts[DL_PART_SCHEDULE].factor, 0);
}
END_TEST

START_TEST(few_rows_prove_nothing)
{
    scale_part(DL_PART_COMPUTE, 1.1);
    ck_assert_double_eq(dl_budget_of(list, 1).unexplained, 1);
    for (size_t i = 0; i < n_rows; i++) rows[i].knows_parts = false;
    ck_assert_uint_eq(dl_budget_of(list, n_rows).n, 0);
}
END_TEST

/* ---- constants ---- */

#define FIT(half)                                                                                                      \
    "{\"grade\": \"fitted\", \"to\": \"validation_rows\", \"half\": \"" half                                           \
    "\", \"rows\": \"all\", \"source\": \"a test\"}"
#define FITTED FIT("fit")
#define CHOSEN FIT("both")

static struct dl_constants read_constants(const char *text, struct dl_arena *arena)
{
    struct dl_constants c = {.arena = arena};
    struct dl_json doc;
    struct dl_error err = {0};
    ck_assert_msg(!dl_json_parse(text, strlen(text), "a.json", arena, &doc, &err), "%s", err.text);
    dl_constants_add(&c, doc);
    json_decref(doc.value);
    return c;
}

START_TEST(constants_that_saw_steps_are_counted_once)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_constants one = read_constants(
        "{\"a\": 1, \"b\": true, \"c\": 2, \"facts\": {\"a\": " FITTED ", \"b\": " CHOSEN
        ", \"c\": \"measured: by hand\", \"*\": " FITTED "},"
        "\"list\": [{\"d\": 3, \"facts\": {\"d\": " FITTED "}}, {\"d\": 3, \"facts\": {\"d\": " FITTED "}}]}",
        arena);
    ck_assert(one.n == 3 && one.n_chosen == 1);
    struct dl_constants both =
        read_constants("{\"in\": {\"a\": 1, \"d\": 4, \"facts\": {\"a\": " FITTED ", \"d\": " FITTED "}}}", arena);
    ck_assert_uint_eq(both.n, 2);
    dl_constants_join(&both, &one);
    ck_assert(both.n == 4 && both.n_chosen == 1); /* a = 1 is shared, d is 3 and 4 */
    json_t *const json = dl_constants_json(&both);
    ck_assert_uint_eq(json_array_size(json), 4);
    json_decref(json);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("budget");
    TCase *const tests = tcase_create("budget");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, one_wrong_part_is_the_whole_error, 0, 2 * DL_N_PARTS);
    tcase_add_test(tests, a_part_that_adds_nothing_explains_nothing);
    tcase_add_test(tests, noise_is_unexplained);
    tcase_add_test(tests, all_parts_together_leave_what_least_squares_leave);
    tcase_add_test(tests, means_are_those_by_hand);
    tcase_add_test(tests, programs_are_told_what_people_are);
    tcase_add_test(tests, a_part_cannot_take_less_than_nothing);
    tcase_add_test(tests, few_rows_prove_nothing);
    tcase_add_test(tests, constants_that_saw_steps_are_counted_once);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
