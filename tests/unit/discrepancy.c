/* discrepancy.c - the model's own errors: whose spread counts, and how wide an interval it makes. */

#include "sim/core/files.h"
#include "sim/report/sensitivity.h"
#include "tests/known_families.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

/* Of software a on system x there are three families, on y one. Each entry has ten rows. */
static const struct known known[] = {
    {{"a", "x", false, DL_DOMAIN_TOKENS, "F"}, 0.02, 0.03}, {{"a", "x", false, DL_DOMAIN_TOKENS, "G"}, -0.01, 0.04},
    {{"a", "x", false, DL_DOMAIN_TOKENS, "H"}, 0.05, 0.05}, {{"a", "y", false, DL_DOMAIN_TOKENS, "I"}, 0.1, 0.02},
    {{"b", "y", false, DL_DOMAIN_TOKENS, "J"}, 0.9, 0.3},   {{"b", "z", false, DL_DOMAIN_TOKENS, "J"}, 0.2, 0.1},
    {{"c", "y", true, DL_DOMAIN_TOKENS, "K"}, 0.3, 0.05},
};

static struct dl_discrepancy read_as(json_t *entries, struct dl_setup setup)
{
    return read_entries_as(entries, setup, arena);
}

static struct dl_discrepancy find_without(const char *family, const char *software, const char *system, bool experts)
{
    json_t *const entries = json_array();
    for (size_t i = 0; i < DL_COUNT(known); i++) json_array_append_new(entries, entry_json(&known[i], 10));
    json_object_set_new(json_array_get(entries, 0), "ratio_rows", json_integer(60));
    json_object_set_new(json_array_get(entries, 0), "ratio_spread", json_real(0.02));
    return read_as(entries, (struct dl_setup){software, system, experts, DL_DOMAIN_TOKENS, family});
}

static struct dl_discrepancy find(const char *software, const char *system, bool experts)
{
    return find_without(NULL, software, system, experts);
}

/* ---- the second way: the rows themselves, five a spread above and five below the bias of their entry ---- */

struct expected {
    double bias, spread, degrees;
    int64_t n;
};

static double mean_of_family(const char *family, double power, double about)
{
    double sum = 0;
    int n = 0;
    for (size_t i = 0; i < DL_COUNT(known); i++)
        for (int row = 0; row < 10 && !strcmp(known[i].of.family, family); row++, n++)
            sum += pow(known[i].bias + (row % 2 ? 1 : -1) * known[i].spread - about, power);
    return sum / n;
}

/* Families by their letters. */
static struct expected expect(const char *families)
{
    struct expected e = {.n = (int64_t)strlen(families)};
    const double n = (double)e.n;
    double effects = 0, rows = 0;
    for (const char *f = families; *f; f++) e.bias += mean_of_family((char[]){*f, 0}, 1, 0) / n;
    for (const char *f = families; *f; f++) {
        const double mean = mean_of_family((char[]){*f, 0}, 1, 0);
        effects += pow(mean - e.bias, 2) / (n - 1) * (n + 1) / n;
        rows += mean_of_family((char[]){*f, 0}, 2, mean) / n;
    }
    e.spread = sqrt(effects + rows);
    e.degrees = pow(effects + rows, 2) / (pow(effects, 2) / (n - 1) + pow(rows, 2) / n);
    return e;
}

static void check(struct dl_discrepancy found, const char *families)
{
    const struct expected e = expect(families);
    ck_assert_int_eq(found.families, e.n);
    ck_assert_double_eq_tol(found.bias, e.bias, 1e-12);
    ck_assert_double_eq_tol(found.spread, e.spread, 1e-12);
    ck_assert_double_eq_tol(found.degrees, e.degrees, 1e-9);
}

START_TEST(three_families_of_its_own_are_enough)
{
    const struct dl_discrepancy d = find("a", "x", false);
    check(d, "FGH");
    ck_assert(d.by_own && d.own.rows == 30);
    ck_assert_double_eq_tol(d.own.bias, 0.02, 1e-12);
}
END_TEST

START_TEST(with_fewer_nobody_is_surer_than_all_families_are)
{
    const struct dl_discrepancy few = find("a", "y", false), none = find("d", "y", false);
    check(few, "FGHIJK");
    check(none, "FGHIJK");
    check(find("d", "y", true), "FGHIJK");
    ck_assert(few.own.rows == 10 && !few.by_own && none.own.rows == 0);
    ck_assert_double_eq_tol(few.own.bias, 0.1, 1e-12);
    ck_assert_double_eq_tol(few.own.spread, 0.02, 1e-12);
    const struct dl_open open = dl_discrepancy_open(&none), as_wide = dl_discrepancy_open(&few);
    ck_assert(open.low == as_wide.low && open.high == as_wide.high); /* its own rows lie within */
}
END_TEST

START_TEST(families_that_something_was_fitted_to_tell_nothing_of_strangers)
{
    for (size_t n_in_sight = 1; n_in_sight < 5; n_in_sight++) {
        json_t *const entries = json_array();
        for (size_t i = 0; i < DL_COUNT(known); i++) {
            json_t *const entry = entry_json(&known[i], 10);
            json_object_set_new(entry, "in_sight", json_boolean(i < n_in_sight));
            json_array_append_new(entries, entry);
        }
        const struct dl_discrepancy stranger =
            read_as(json_incref(entries), (struct dl_setup){"d", "y", false, DL_DOMAIN_TOKENS, NULL});
        check(stranger, n_in_sight < 4 ? &"FGHIJK"[n_in_sight] : "FGHIJK"); /* two are not enough */
        check(read_as(entries, (struct dl_setup){"a", "x", false, DL_DOMAIN_TOKENS, NULL}), "FGH");
    }
}
END_TEST

/* First predictions tell of strangers alone, or also of software of which a family is known on the system; those of
 * machines that were chosen because little was known of them tell of strangers alone. */
START_TEST(first_predictions_of_little_known_machines_tell_of_strangers)
{
    for (int strange = 0; strange < 2; strange++) {
        json_t *const entries = json_array();
        for (size_t i = 0; i < DL_COUNT(known); i++) {
            json_t *const entry = entry_json(&known[i], 10);
            if (i < 3) json_object_set_new(entry, "blind", json_true());
            if (i < 3 && strange) json_object_set_new(entry, "strange", json_true());
            json_array_append_new(entries, entry);
        }
        const struct dl_discrepancy stranger =
            read_as(json_incref(entries), (struct dl_setup){"d", "y", false, DL_DOMAIN_TOKENS, NULL});
        check(stranger, "FGH");
        ck_assert(stranger.by_blind);
        check(read_as(entries, (struct dl_setup){"a", "y", false, DL_DOMAIN_TOKENS, NULL}), strange ? "IJK" : "FGHIJK");
    }
}
END_TEST

START_TEST(own_rows_that_err_by_more_widen_the_interval_to_their_side)
{
    const struct dl_discrepancy bad = find("b", "y", false), none = find("d", "y", false);
    const struct dl_open open = dl_discrepancy_open(&none), wider = dl_discrepancy_open(&bad);
    const double t_10 = 2.228139; /* Student's, from a table */
    ck_assert(wider.low == open.low && wider.middle == open.middle && wider.high > open.high);
    ck_assert_double_eq_tol(wider.high, 0.9 + t_10 * 0.3, 1e-6);
}
END_TEST

START_TEST(a_family_that_is_left_out_does_not_count)
{
    const struct dl_discrepancy d = find_without("H", "a", "x", false);
    check(d, "FGIJK");
    ck_assert(d.own.rows == 20);
    check(find_without("K", "d", "y", true), "FGHIJ");
}
END_TEST

/* The 97.5 % quantiles of Student's t with 1, 5 and very many degrees of freedom, from tables. */
START_TEST(few_families_make_a_wide_interval)
{
    static const struct {
        double degrees, t;
    } quantiles[] = {{1, 12.7062}, {5, 2.5706}, {100000000, 1.95996}};
    for (size_t i = 0; i < DL_COUNT(quantiles); i++) {
        const struct dl_discrepancy d = {.bias = 0.2, .spread = 0.1, .degrees = quantiles[i].degrees};
        const struct dl_open open = dl_discrepancy_open(&d);
        ck_assert_double_eq_tol(open.middle, 0.2, 1e-12);
        ck_assert_double_eq_tol(open.high, 0.2 + 0.1 * quantiles[i].t, 1e-5);
        ck_assert_double_eq_tol(open.low, 0.2 - 0.1 * quantiles[i].t, 1e-5);
        ck_assert_double_eq_tol(dl_discrepancy_half_width(&d), 0.1 * quantiles[i].t, 1e-5);
    }
    ck_assert_double_eq(dl_discrepancy_half_width(&(struct dl_discrepancy){.spread = 0.1}), 0);
}
END_TEST

/* One tells no bias, and hardly a spread. */
START_TEST(one_family_alone_is_about_nothing)
{
    json_t *const entries = json_array();
    json_array_append_new(entries, entry_json(&known[0], 1));
    const struct dl_discrepancy d = read_as(entries, (struct dl_setup){"b", "y", false, DL_DOMAIN_TOKENS, NULL});
    ck_assert(d.families == 1 && d.bias == 0);
    ck_assert_double_eq_tol(d.spread, hypot(0.02, 0.03), 1e-12);
    const struct dl_discrepancy nothing =
        read_as(json_array(), (struct dl_setup){"b", "y", false, DL_DOMAIN_TOKENS, NULL});
    ck_assert(nothing.families == 0 && dl_discrepancy_half_width(&nothing) == 0);
}
END_TEST

START_TEST(ratios_are_by_own_rows_or_those_of_all)
{
    const double t_60 = 2.000298; /* Student's, from a table */
    ck_assert_double_eq_tol(dl_discrepancy_ratio_half_width(&(struct dl_discrepancy){.spread = 0.1, .degrees = 60}),
                            sqrt(2) * 0.1 * t_60, 1e-6); /* where nobody saw any, two steps err by themselves */
    const struct dl_discrepancy seen = find("a", "x", false), unseen = find("a", "y", false);
    ck_assert_double_eq_tol(dl_discrepancy_ratio_half_width(&seen), 0.02 * t_60, 1e-6);
    ck_assert(unseen.ratio_rows == 1 && unseen.ratio_spread == 0.02);
}
END_TEST

/* ---- whether it holds: families drawn with known effects, and one more that the interval does not know ---- */

enum { n_drawn = 2000 };

static bool holds_one_more(const struct drawing *d, int n_families)
{
    json_t *const entries = json_array();
    struct known family = {.of = {.software = "a", .system = "x"}};
    add_drawn(entries, d, family, n_families, "", arena);
    const struct dl_discrepancy known_now =
        read_as(entries, (struct dl_setup){"b", "y", false, DL_DOMAIN_TOKENS, NULL});
    int n;
    return holds(&known_now, draw_family(d, &family, &n));
}

/* Families that differ more than their rows do, less, and not at all. */
static const struct {
    int families;
    double of_family, of_row;
} drawn[] = {{4, 0.15, 0.05}, {10, 0.15, 0.05}, {28, 0.15, 0.05}, {28, 0.05, 0.1}, {28, 0, 0.1}};

START_TEST(the_interval_holds_95_percent_of_families_that_it_does_not_know)
{
    const double allowed = 0.02;
    int held = 0;
    const struct drawing d = {.random = dl_random_new(1, "families", (uint64_t)_i),
                              .middle = 0.1,
                              .of_family = drawn[_i].of_family,
                              .of_row = drawn[_i].of_row};
    for (int i = 0; i < n_drawn; i++) {
        dl_arena_free(arena);
        arena = dl_arena_new();
        held += holds_one_more(&d, drawn[_i].families);
    }
    ck_assert_msg(fabs(held / (double)n_drawn - 0.95) <= allowed, "%d of %d", held, n_drawn);
    gsl_rng_free(d.random);
}
END_TEST

/* Errors of measured steps contain those of their constants. */
START_TEST(the_interval_covers_what_steps_and_what_constants_leave_open)
{
    struct dl_effect e[] = {
        {.path = "x", .value = 1, .low = 0.9, .high = 1.2, .elasticity = 1, .below = 1, .above = 1}};
    struct dl_sensitivity s = dl_sensitivity_of(10, e, 1);
    dl_sensitivity_cover(&s, (struct dl_open){0});
    ck_assert(s.step_s_low == 9 && s.step_s_high == 12);
    dl_sensitivity_cover(&s, (struct dl_open){.middle = 0.1, .low = -0.05, .high = 0.5});
    ck_assert_double_eq(s.step_s_low, 9);
    ck_assert_double_eq_tol(s.step_s_high, 10 * exp(0.5), 1e-12);
    dl_sensitivity_cover(&s, (struct dl_open){.low = -0.2, .high = 0.01});
    ck_assert_double_eq_tol(s.step_s_low, 10 * exp(-0.2), 1e-12);
    ck_assert_double_eq(s.step_s_high, 12);
}
END_TEST

START_TEST(the_model_and_the_constants_add_as_squares_of_logarithms)
{
    struct dl_effect e[] = {
        {.path = "x", .value = 1, .low = 0.9, .high = 1.2, .elasticity = 1, .below = 1, .above = 1}};
    struct dl_sensitivity s = dl_sensitivity_of(10, e, 1);
    dl_sensitivity_widen(&s, (struct dl_open){0});
    ck_assert_double_eq_tol(s.step_s_low, 9, 1e-12);
    ck_assert_double_eq_tol(s.step_s_high, 12, 1e-12);
    dl_sensitivity_widen(&s, (struct dl_open){.middle = 0.1, .low = -0.2, .high = 0.5});
    ck_assert_double_eq_tol(s.step_s_low, 10 * exp(0.1 - hypot(log(0.9), 0.3)), 1e-12);
    ck_assert_double_eq_tol(s.step_s_high, 10 * exp(0.1 + hypot(log(1.2), 0.4)), 1e-12);
    ck_assert(s.constants_s_low == 9 && s.constants_s_high == 12);
}
END_TEST

START_TEST(an_interval_on_one_side_gets_two_and_one_down_to_nothing_stays)
{
    const struct dl_open ten = {.low = -0.1, .high = 0.1};
    struct dl_effect slower[] = {{.path = "x", .value = 1, .low = 1, .high = 2, .elasticity = 0.5}};
    struct dl_sensitivity s = dl_sensitivity_of(1, slower, 1);
    dl_sensitivity_widen(&s, ten);
    ck_assert_double_eq_tol(s.step_s_low, exp(-0.1), 1e-12);
    struct dl_effect wide[] = {{.path = "x", .value = 1, .low = -3, .high = 1, .elasticity = 1}};
    s = dl_sensitivity_of(1, wide, 1);
    dl_sensitivity_widen(&s, ten);
    ck_assert_double_eq(s.step_s_low, 0);
    ck_assert_double_eq_tol(s.step_s_high, exp(0.1), 1e-12);
    struct dl_sensitivity failed = dl_sensitivity_of(0, NULL, 0);
    dl_sensitivity_widen(&failed, ten);
    ck_assert_double_eq(failed.step_s_high, 0);
}
END_TEST

/* ---- the shipped file ---- */

/* Of a first prediction the names are those of then. */
static void check_names(json_t *entry)
{
    static const char *const keys[] = {"software", "system"}, *const folders[] = {"strategies/software",
                                                                                  "topologies/systems"};
    if (json_is_true(json_object_get(entry, "blind"))) return;
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
    tcase_add_test(tests, families_that_something_was_fitted_to_tell_nothing_of_strangers);
    tcase_add_test(tests, first_predictions_of_little_known_machines_tell_of_strangers);
    tcase_add_test(tests, own_rows_that_err_by_more_widen_the_interval_to_their_side);
    tcase_add_test(tests, a_family_that_is_left_out_does_not_count);
    tcase_add_test(tests, few_families_make_a_wide_interval);
    tcase_add_test(tests, one_family_alone_is_about_nothing);
    tcase_add_test(tests, ratios_are_by_own_rows_or_those_of_all);
    tcase_add_loop_test(tests, the_interval_holds_95_percent_of_families_that_it_does_not_know, 0, DL_COUNT(drawn));
    tcase_add_test(tests, the_interval_covers_what_steps_and_what_constants_leave_open);
    tcase_add_test(tests, the_model_and_the_constants_add_as_squares_of_logarithms);
    tcase_add_test(tests, an_interval_on_one_side_gets_two_and_one_down_to_nothing_stays);
    tcase_add_test(tests, entries_are_of_shipped_files);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
