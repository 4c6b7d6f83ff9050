/* ranks.c - groups of ranks against all pairs of ranks, digit by digit. */
#include <check.h>

#include "sim/core/random.h"
#include "sim/program/ranks.h"
#include "tests/unit/suite.h"

enum { n_drawn = 200, most_digits = 5 };

/* Digits of one to four values, in a random order in the number of a rank. */
static struct dl_ranks draw(gsl_rng *rng)
{
    struct dl_ranks r = {.n_digits = 1 + (uint32_t)gsl_rng_uniform_int(rng, most_digits)};
    uint32_t order[most_digits], stride = 1;
    for (uint32_t i = 0; i < r.n_digits; i++) {
        const uint32_t at = (uint32_t)gsl_rng_uniform_int(rng, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (uint32_t i = 0; i < r.n_digits; i++) {
        struct dl_digit *const digit = &r.digits[order[i]];
        *digit = (struct dl_digit){.n = 1 + (uint32_t)gsl_rng_uniform_int(rng, 4), .stride = stride};
        stride *= digit->n;
    }
    return r;
}

static uint32_t value_of(const struct dl_ranks *r, uint32_t digit, uint32_t rank)
{
    return rank / r->digits[digit].stride % r->digits[digit].n;
}

static bool are_together(const struct dl_ranks *r, dl_digits along, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < r->n_digits; i++)
        if (!(along >> i & 1) && value_of(r, i, a) != value_of(r, i, b)) return false;
    return true;
}

START_TEST(groups_hold_those_that_agree_in_all_other_digits)
{
    gsl_rng *const rng = dl_random_new(1, "ranks", (uint32_t)_i);
    const struct dl_ranks r = draw(rng);
    const dl_digits all = dl_ranks_all(&r), along = (dl_digits)gsl_rng_uniform_int(rng, all + 1ul);
    const uint32_t n_ranks = dl_ranks_count(&r, all), n = dl_ranks_count(&r, along);
    uint8_t *const seen = calloc(n_ranks, 1);
    for (uint32_t group = 0; group < dl_ranks_count(&r, all & ~along); group++) {
        const uint32_t first = dl_ranks_offset(&r, all & ~along, group);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t rank = first + dl_ranks_offset(&r, along, i);
            ck_assert_uint_lt(rank, n_ranks);
            ck_assert(!seen[rank]++);
            ck_assert(are_together(&r, along, first, rank));
            ck_assert_uint_eq(dl_ranks_index(&r, along, rank), i);
            ck_assert_uint_eq(dl_ranks_index(&r, all & ~along, rank), group);
            ck_assert_uint_eq(dl_ranks_further(&r, along, first, i), rank);
            ck_assert_uint_eq(dl_ranks_further(&r, along, rank, n - i), first);
        }
    }
    for (uint32_t rank = 0; rank < n_ranks; rank++) ck_assert(seen[rank]);
    free(seen);
    gsl_rng_free(rng);
}
END_TEST

/* Rings go along the first digit, then on. */
START_TEST(members_follow_each_other_as_their_digits_count)
{
    const struct dl_ranks r = {.n_digits = 3, .digits = {{"a", 2, 6}, {"b", 3, 1}, {"c", 2, 3}}};
    static const uint32_t expected[] = {0, 6, 3, 9};
    for (uint32_t i = 0; i < 4; i++) ck_assert_uint_eq(dl_ranks_offset(&r, 1 << 0 | 1 << 2, i), expected[i]);
}
END_TEST

START_TEST(a_pair_has_two_members_and_is_equal_to_the_same_pair_alone)
{
    const struct dl_ranks r = {.n_digits = 1, .digits = {{"stage", 8, 1}}};
    const struct dl_members ends = {.digits = 1, .is_pair = true, .pair = {0, 7}}, all = {.digits = 1};
    const struct dl_members others = {.digits = 1, .is_pair = true, .pair = {0, 6}};
    ck_assert_uint_eq(dl_members_count(&r, &ends), 2);
    ck_assert_uint_eq(dl_members_count(&r, &all), 8);
    ck_assert(dl_members_equal(&ends, &ends));
    ck_assert(!dl_members_equal(&ends, &all));
    ck_assert(!dl_members_equal(&ends, &others));
}
END_TEST

/* Even where an array still has values there. */
START_TEST(digits_that_there_are_not_count_for_nothing)
{
    const struct dl_ranks r = {.n_digits = 1, .digits = {{"data", 3, 1}, {"left over", 5, 3}}};
    const dl_digits both = 3, beyond = ~(dl_digits)1;
    ck_assert_uint_eq(dl_ranks_count(&r, both), 3);
    ck_assert_uint_eq(dl_ranks_count(&r, beyond), 1);
    ck_assert_uint_eq(dl_ranks_offset(&r, both, 2), 2);
    ck_assert_uint_eq(dl_ranks_index(&r, beyond, 2), 0);
    ck_assert_uint_eq(dl_ranks_further(&r, both, 2, 1), 0);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("ranks");
    tcase_add_loop_test(tests, groups_hold_those_that_agree_in_all_other_digits, 0, n_drawn);
    tcase_add_test(tests, members_follow_each_other_as_their_digits_count);
    tcase_add_test(tests, a_pair_has_two_members_and_is_equal_to_the_same_pair_alone);
    tcase_add_test(tests, digits_that_there_are_not_count_for_nothing);
    Suite *const suite = suite_create("ranks");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
