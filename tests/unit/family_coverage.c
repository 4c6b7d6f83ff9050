/* family_coverage.c - intervals hold steps of families that they do not know: by domain, drawn, and of the shipped
 * file. */
#include <gsl/gsl_cdf.h>

#include "sim/session/inputs.h"
#include "tests/known_families.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

/* ---- whose families count ---- */

static const struct known known[] = {
    {{"a", "x", false, DL_DOMAIN_TOKENS, "T1"}, 0.05, 0.03}, {{"a", "x", false, DL_DOMAIN_TOKENS, "T2"}, 0.1, 0.04},
    {{"b", "x", false, DL_DOMAIN_TOKENS, "T3"}, 0.08, 0.02}, {{"b", "x", false, DL_DOMAIN_IMAGES, "I1"}, -0.2, 0.1},
    {{"c", "x", false, DL_DOMAIN_IMAGES, "I2"}, 0.3, 0.2},   {{"d", "x", false, DL_DOMAIN_IMAGES, "I3"}, 0.1, 0.1},
    {{"e", "x", false, DL_DOMAIN_FILES, "F1"}, 0.5, 0.4},    {{"e", "z", false, DL_DOMAIN_FILES, "F2"}, 0.7, 0.5},
};

static struct dl_setup stranger_of(enum dl_domain domain)
{
    return (struct dl_setup){.software = "s", .system = "s", .domain = domain};
}

/* Of these domains: -1 of all. */
static struct dl_discrepancy by_entries_of(int64_t domain, struct dl_setup setup)
{
    json_t *const entries = json_array();
    for (size_t i = 0; i < DL_COUNT(known); i++)
        if (domain < 0 || known[i].of.domain == domain) json_array_append_new(entries, entry_json(&known[i], 10));
    return read_entries_as(entries, setup, arena);
}

START_TEST(three_families_of_a_domain_tell_it_alone)
{
    const struct dl_setup of = stranger_of((enum dl_domain)_i);
    const struct dl_discrepancy all = by_entries_of(-1, of), alone = by_entries_of(_i, of);
    ck_assert_int_eq(all.families, 3);
    ck_assert(all.bias == alone.bias && all.spread == alone.spread && all.degrees == alone.degrees);
    ck_assert_int_eq(all.kin.rows, 0);
}
END_TEST

START_TEST(a_domain_of_fewer_is_as_sure_as_all_and_wider_to_the_side_of_its_rows)
{
    const struct dl_discrepancy d = by_entries_of(-1, stranger_of(DL_DOMAIN_FILES));
    const double mean = 0.6, spread = sqrt((0.4 * 0.4 + 0.5 * 0.5) / 2 + 0.1 * 0.1), t_20 = 2.085963; /* from a table */
    ck_assert_int_eq(d.families, 8);
    ck_assert_int_eq(d.kin.rows, 20);
    ck_assert_double_eq_tol(d.kin.bias, mean, 1e-12);
    ck_assert_double_eq_tol(d.kin.spread, spread, 1e-12);
    ck_assert_double_eq_tol(dl_discrepancy_open(&d).high, mean + t_20 * spread, 1e-6);
}
END_TEST

/* Three families that were predicted blind, one of them also looked at since. */
START_TEST(software_on_a_system_without_steps_is_as_sure_as_first_predictions)
{
    static const struct known blind[] = {{{"a", "x", false, DL_DOMAIN_TOKENS, "T1"}, 0.4, 0.1},
                                         {{"f", "x", false, DL_DOMAIN_TOKENS, "B1"}, 0.2, 0.1},
                                         {{"f", "y", false, DL_DOMAIN_TOKENS, "B2"}, 0.1, 0.2}};
    struct dl_setup of = stranger_of(DL_DOMAIN_TOKENS);
    json_t *const entries = json_array(), *const alone = json_array();
    for (size_t i = 0; i < DL_COUNT(known); i++) json_array_append_new(entries, entry_json(&known[i], 10));
    for (size_t i = 0; i < DL_COUNT(blind); i++) {
        json_t *const entry = entry_json(&blind[i], 10);
        json_array_append_new(alone, json_copy(entry));
        json_object_set_new(entry, "blind", json_true());
        json_array_append_new(entries, entry);
    }
    const struct dl_discrepancy d = read_entries_as(json_incref(entries), of, arena),
                                second_way = read_entries_as(alone, of, arena);
    ck_assert(d.by_blind && d.bias == second_way.bias && d.spread == second_way.spread);
    of.family = "B1"; /* two are not enough */
    ck_assert(!read_entries_as(json_incref(entries), of, arena).by_blind);
    const struct dl_setup seen = {.software = "b", .system = "x"}, only_blind = {.software = "f", .system = "x"};
    ck_assert(!read_entries_as(json_incref(entries), seen, arena).by_blind);
    ck_assert(read_entries_as(entries, only_blind, arena).by_blind);
}
END_TEST

/* ---- drawn: two domains, of which families of one err more ---- */

enum { n_drawn = 2000, n_families = 12 };
static const double spreads[] = {[DL_DOMAIN_TOKENS] = 0.08, [DL_DOMAIN_IMAGES] = 0.4};

static bool holds_one_more_of(gsl_rng *random, enum dl_domain domain)
{
    struct drawing d = {.random = random, .middle = 0.1, .of_row = 0.05};
    struct known family = {.of = {.software = "a", .system = "x"}};
    json_t *const entries = json_array();
    for (size_t i = 0; i < DL_COUNT(spreads); i++) {
        d.of_family = spreads[i];
        family.of.domain = (int64_t)i;
        add_drawn(entries, &d, family, n_families, dl_domains[i], arena);
    }
    const struct dl_discrepancy now = read_entries_as(entries, stranger_of(domain), arena);
    int n;
    d.of_family = spreads[domain];
    return holds(&now, draw_family(&d, &family, &n));
}

START_TEST(the_interval_holds_95_percent_of_each_domain)
{
    const double allowed = 0.02;
    gsl_rng *const random = dl_random_new(1, "domains", (uint64_t)_i);
    int held = 0;
    for (int i = 0; i < n_drawn; i++) {
        dl_arena_free(arena);
        arena = dl_arena_new();
        held += holds_one_more_of(random, (enum dl_domain)_i);
    }
    ck_assert_msg(fabs(held / (double)n_drawn - 0.95) <= allowed, "%d of %d", held, n_drawn);
    gsl_rng_free(random);
}
END_TEST

/* ---- the shipped file: each family by an interval that does not know it ---- */

struct covered {
    double rows, held; /* rows, and how many of them the interval should hold */
};

static const char *text_of(const json_t *entry, const char *key)
{
    return json_string_value(json_object_get(entry, key));
}

static double number_of(const json_t *entry, const char *key) { return json_number_value(json_object_get(entry, key)); }

static int64_t domain_of(const json_t *entry)
{
    int64_t domain = 0;
    while (strcmp(dl_domains[domain], text_of(entry, "domain"))) domain++;
    return domain;
}

/* The file has no rows, but their mean and spread: they are taken to be normal. */
static double share_within(struct dl_open open, double bias, double spread)
{
    if (!(spread > 0)) return open.low <= bias && bias <= open.high;
    return gsl_cdf_gaussian_P(open.high - bias, spread) - gsl_cdf_gaussian_P(open.low - bias, spread);
}

/* What the shipped file of a software is like: nothing if it has another name since. */
static struct dl_lineage lineage_of(const char *software)
{
    struct dl_lineage lineage = {0};
    struct dl_error err = {0};
    struct dl_json doc = {0};
    const char *path;
    if (!dl_find_file(DL_SOFTWARE, "software", software, arena, &path, &err))
        ck_assert_msg(!dl_json_load(path, arena, &doc, &err) &&
                          !dl_json_inherit_from(doc, DL_SOFTWARE, "software", arena, &lineage, &err),
                      "%s", err.text);
    json_decref(doc.value);
    return lineage;
}

static void add_entry(struct dl_json doc, const json_t *entry, struct covered *to)
{
    const struct dl_setup of = {.software = text_of(entry, "software"),
                                .system = text_of(entry, "system"),
                                .experts = json_is_true(json_object_get(entry, "experts")),
                                .domain = domain_of(entry),
                                .family = text_of(entry, "family")};
    const struct dl_lineage like = lineage_of(of.software);
    struct dl_discrepancy d;
    struct dl_error err = {0};
    ck_assert_msg(!dl_discrepancy_read_like(doc, &of, &like, arena, &d, &err), "%s", err.text);
    ck_assert(!d.by_own || strcmp(d.own_software, of.software) == 0);
    const double rows = number_of(entry, "rows");
    to->rows += rows;
    to->held += rows * share_within(dl_discrepancy_open(&d), number_of(entry, "bias"), number_of(entry, "spread"));
}

static void check(const char *what, struct covered c)
{
    ck_assert_msg(c.held >= 0.9 * c.rows && c.held <= 0.99 * c.rows, "%s: %.1f of %.0f", what, c.held, c.rows);
}

/* Also those that nothing was fitted to, which are farther, and first predictions, which are farthest. */
START_TEST(shipped_families_left_out_lie_within_as_often_as_promised)
{
    struct covered all = {0}, unseen = {0}, blind = {0};
    struct dl_json doc;
    struct dl_error err = {0};
    size_t i;
    json_t *entry;
    ck_assert_msg(!dl_json_load(dl_shipped("validation/discrepancy.json", arena), arena, &doc, &err), "%s", err.text);
    json_array_foreach(json_object_get(doc.value, "measured"), i, entry)
    {
        const bool is_blind = json_is_true(json_object_get(entry, "blind"));
        add_entry(doc, entry, is_blind ? &blind : &all);
        if (!is_blind && json_is_false(json_object_get(entry, "in_sight"))) add_entry(doc, entry, &unseen);
    }
    check("all", all);
    check("unseen", unseen);
    check("blind", blind);
    json_decref(doc.value);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("family_coverage");
    TCase *const tests = tcase_create("family_coverage");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, three_families_of_a_domain_tell_it_alone, 0, DL_DOMAIN_FILES);
    tcase_add_test(tests, a_domain_of_fewer_is_as_sure_as_all_and_wider_to_the_side_of_its_rows);
    tcase_add_test(tests, software_on_a_system_without_steps_is_as_sure_as_first_predictions);
    tcase_add_loop_test(tests, the_interval_holds_95_percent_of_each_domain, 0, DL_COUNT(spreads));
    tcase_add_test(tests, shipped_families_left_out_lie_within_as_often_as_promised);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
