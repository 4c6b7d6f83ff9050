/* kernels_split.c - the division of a mini-batch: never slower than the undivided call, within the limit, the best. */
#include <check.h>
#include <math.h>

#include "kernels/kernel.h"
#include "kernels/split.h"
#include "tests/unit/suite.h"

enum { n_ways = 3, largest = 9, most = n_ways * largest };

/* Random times that grow with the samples, and workspaces; as hashes of the case. */
static size_t draw(uint64_t seed, int64_t samples, struct dl_micro *micros)
{
    size_t n = 0;
    for (int way = 0; way < n_ways; way++)
        for (int64_t s = 1; s <= samples; s++) {
            const uint64_t at = seed << 32 | (uint64_t)(way * largest + s);
            if (dl_chance(at) < 0.3f) continue;
            micros[n++] = (struct dl_micro){"way", s, (0.2 + (double)dl_chance(at + 1000)) * (double)(s + 1),
                                            floor(10 * (double)dl_chance(at + 2000)) * (double)s};
        }
    return n;
}

/* All divisions, one call after the other. */
static double brute_force(const struct dl_micro *micros, size_t n, int64_t samples, double limit)
{
    double best = samples ? INFINITY : 0;
    for (size_t i = 0; i < n; i++)
        if (micros[i].samples <= samples && micros[i].workspace_bytes <= limit)
            best = fmin(best, micros[i].seconds + brute_force(micros, n, samples - micros[i].samples, limit));
    return best;
}

START_TEST(split_equals_brute_force)
{
    struct dl_micro micros[most];
    int64_t calls[most];
    const int64_t samples = 1 + _i % 5;
    const size_t n = draw((uint64_t)_i + 1, samples, micros);
    for (double limit = 0; limit <= 50; limit += 10) {
        const double got = dl_split(micros, n, samples, limit, calls), wanted = brute_force(micros, n, samples, limit);
        ck_assert_msg(got == wanted || fabs(got - wanted) < 1e-12, "case %d: %g, brute force %g", _i, got, wanted);
    }
}
END_TEST

START_TEST(split_keeps_the_limit_and_does_all_samples)
{
    struct dl_micro micros[most];
    int64_t calls[most];
    const size_t n = draw((uint64_t)_i + 1, largest, micros);
    const double limit = 20;
    const double seconds = dl_split(micros, n, largest, limit, calls);
    int64_t done = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert(calls[i] == 0 || micros[i].workspace_bytes <= limit);
        done += calls[i] * micros[i].samples;
        sum += (double)calls[i] * micros[i].seconds;
    }
    ck_assert_int_eq(done, seconds < INFINITY ? largest : 0);
    if (seconds < INFINITY) ck_assert_double_eq_tol(sum, seconds, 1e-12);
}
END_TEST

START_TEST(split_is_never_slower_than_undivided)
{
    struct dl_micro micros[most];
    int64_t calls[most];
    const size_t n = draw((uint64_t)_i + 1, largest, micros);
    for (double limit = 0; limit <= 100; limit += 5) {
        const struct dl_micro *const undivided = dl_undivided(micros, n, largest, limit);
        if (undivided) ck_assert_double_le(dl_split(micros, n, largest, limit, calls), undivided->seconds);
    }
}
END_TEST

/* The example of the paper's introduction in small: the fast way needs more workspace than there is, but not for half
 * of the samples. */
START_TEST(two_halves_fit_where_the_whole_does_not)
{
    const struct dl_micro micros[] = {{"slow", 8, 10, 0}, {"fast", 8, 4, 100}, {"slow", 4, 5, 0}, {"fast", 4, 2.5, 50}};
    int64_t calls[4];
    ck_assert_double_eq(dl_split(micros, 4, 8, 100, calls), 4);
    ck_assert_double_eq(dl_split(micros, 4, 8, 60, calls), 5);
    ck_assert_int_eq(calls[3], 2);
    ck_assert_double_eq(dl_split(micros, 4, 8, 10, calls), 10);
    ck_assert_int_eq(calls[0], 1);
    ck_assert(isinf(dl_split(micros, 4, 3, 100, calls)));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernels");
    TCase *const all = tcase_create("split");
    tcase_add_loop_test(all, split_equals_brute_force, 0, 60);
    tcase_add_loop_test(all, split_keeps_the_limit_and_does_all_samples, 0, 60);
    tcase_add_loop_test(all, split_is_never_slower_than_undivided, 0, 60);
    tcase_add_test(all, two_halves_fit_where_the_whole_does_not);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
