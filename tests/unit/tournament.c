/* tournament.c - the first of many dates that come and go, found by a second way: looking at all of them. */
#include "sim/engine/tournament.h"

#include <check.h>

#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { most = 70 };

struct dated {
    double date_s; /* infinity: it is not there */
    int added_at;
};

static uint32_t first_of_all(const struct dated *all, uint32_t n)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < n; i++)
        if (all[i].date_s < all[first].date_s ||
            (all[i].date_s == all[first].date_s && all[i].added_at < all[first].added_at))
            first = i;
    return first;
}

/* Those that are not there come with this chance, at few distinct dates, so that many are equal. */
static void add_some(struct dl_tournament *t, struct dated *all, uint32_t n, gsl_rng *r, double chance)
{
    static int n_added;
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].date_s < INFINITY || gsl_rng_uniform(r) > chance) continue;
        all[i] = (struct dated){(double)gsl_rng_uniform_int(r, 20), n_added++};
        dl_tournament_add(t, i, all[i].date_s);
    }
}

START_TEST(the_first_is_found)
{
    const uint32_t n = (uint32_t)_i;
    gsl_rng *const r = dl_random_new(1, "tournament", n);
    struct dl_tournament t = {0};
    struct dated all[most];
    for (uint32_t i = 0; i < n; i++) all[i].date_s = INFINITY;
    dl_tournament_open(&t, n);
    for (int i = 0; i < 500; i++) {
        add_some(&t, all, n, r, i % 7 ? 0.3 : 1.0 / n);
        dl_tournament_settle(&t);
        const uint32_t expected = first_of_all(all, n);
        ck_assert_double_eq(dl_tournament_date_s(&t), all[expected].date_s);
        if (all[expected].date_s == INFINITY) continue;
        ck_assert_uint_eq(dl_tournament_take(&t), expected);
        all[expected].date_s = INFINITY;
    }
    dl_tournament_close(&t);
    gsl_rng_free(r);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("tournament");
    TCase *const tests = tcase_create("tournament");
    tcase_add_loop_test(tests, the_first_is_found, 1, most + 1);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
