/* tournament.c - the first of many dates that change all the time, found by a second way: looking at all of them. */
#include "sim/engine/tournament.h"

#include <check.h>

#include "sim/core/random.h"
#include "tests/unit/suite.h"

static uint32_t first_of_all(const struct dl_tournament *t, uint32_t n)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < n; i++) {
        const struct dl_entrant *const a = &t->entrants[i], *const b = &t->entrants[first];
        if (a->date_s < b->date_s || (a->date_s == b->date_s && a->order < b->order)) first = i;
    }
    return first;
}

/* Few distinct dates, so that many are equal; and none. */
static double draw_date(gsl_rng *r)
{
    return gsl_rng_uniform_int(r, 4) ? (double)gsl_rng_uniform_int(r, 20) : INFINITY;
}

START_TEST(the_first_is_found)
{
    const uint32_t n = (uint32_t)_i;
    gsl_rng *const r = dl_random_new(1, "tournament", n);
    struct dl_tournament t = {0};
    dl_tournament_open(&t, n);
    for (uint32_t i = 0; i < n; i++) dl_tournament_set(&t, i, draw_date(r));
    for (int i = 0; i < 500; i++) {
        const uint32_t first = dl_tournament_first(&t), expected = first_of_all(&t, n);
        ck_assert_double_eq(t.entrants[first].date_s, t.entrants[expected].date_s);
        if (t.entrants[first].date_s < INFINITY) ck_assert_uint_eq(first, expected); /* else nobody has a date */
        dl_tournament_set(&t, i % 2 ? expected : (uint32_t)gsl_rng_uniform_int(r, n), draw_date(r));
    }
    dl_tournament_close(&t);
    gsl_rng_free(r);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("tournament");
    TCase *const tests = tcase_create("tournament");
    tcase_add_loop_test(tests, the_first_is_found, 1, 70);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
