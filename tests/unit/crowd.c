/* crowd.c - thousands of bundles that were posted at once: what those that end leave of their links is shared out a
 * little later than at once, and nothing else is different. */
#include <check.h>
#include <math.h>

#include "sim/core/random.h"
#include "sim/engine/flows.h"
#include "tests/unit/suite.h"

enum { n_links = 60, n_bundles = 6000, n_hops = 3 };

struct crowd {
    struct dl_engine_link links[n_links];
    struct dl_hop hops[n_bundles][n_hops];
    double bytes[n_bundles], end_s[n_bundles];
    struct dl_flows *flows;
    size_t n_ended;
};

static void make(struct crowd *c, uint64_t number)
{
    gsl_rng *const random = dl_random_new(1, "crowd", number);
    for (int i = 0; i < n_links; i++) c->links[i].bandwidth_bytes_per_s = 1e9 * (1 + gsl_rng_uniform(random));
    for (int i = 0; i < n_bundles; i++) {
        const uint32_t first = (uint32_t)gsl_rng_uniform_int(random, n_links);
        for (uint32_t h = 0; h < n_hops; h++)
            c->hops[i][h] = (struct dl_hop){(first + 7 * h) % n_links, h == 1 ? 0.5 : 1};
        c->bytes[i] = 1e6 * (1 + gsl_rng_uniform(random));
    }
    gsl_rng_free(random);
}

static void ended(void *user, uint32_t tag)
{
    struct crowd *const c = user;
    c->end_s[tag] = dl_flows_now_s(c->flows);
    c->n_ended++;
}

/* When the last one ends. */
static double run(struct crowd *c, bool posted)
{
    c->n_ended = 0;
    c->flows = dl_flows_new(c->links, n_links);
    for (uint32_t i = 0; i < n_bundles; i++)
        dl_flows_start(c->flows, &(struct dl_bundle){.hops = c->hops[i],
                                                     .n_hops = n_hops,
                                                     .n_posted = posted,
                                                     .bytes = c->bytes[i],
                                                     .rate_cap_bytes_per_s = INFINITY,
                                                     .done = ended,
                                                     .user = c,
                                                     .tag = i});
    while (isfinite(dl_flows_next_s(c->flows))) dl_flows_advance(c->flows);
    const double last_s = dl_flows_now_s(c->flows);
    ck_assert_uint_eq(c->n_ended, n_bundles);
    dl_flows_free(c->flows);
    return last_s;
}

START_TEST(what_is_left_is_shared_out_a_little_later)
{
    static struct crowd c;
    static double exact_s[n_bundles];
    const double a_little = 1. / 128, rounding = 1e-9;
    make(&c, (uint64_t)_i);
    const double exact_last_s = run(&c, false);
    for (int i = 0; i < n_bundles; i++) exact_s[i] = c.end_s[i];
    const double last_s = run(&c, true);
    ck_assert_double_ge(last_s, exact_last_s * (1 - rounding));
    ck_assert_double_le(last_s, exact_last_s * (1 + a_little));
    size_t n_other = 0;
    for (int i = 0; i < n_bundles; i++) {
        n_other += c.end_s[i] != exact_s[i];
        ck_assert_msg(fabs(c.end_s[i] / exact_s[i] - 1) <= 2 * a_little, "bundle %d ends at %g s, not %g s", i,
                      c.end_s[i], exact_s[i]);
    }
    ck_assert_uint_gt(n_other, 0);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("crowd");
    TCase *const tests = tcase_create("crowd");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_is_left_is_shared_out_a_little_later, 0, 2);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
