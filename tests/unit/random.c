/* Random streams: the same (seed, purpose, index) gives the same numbers, any other gives others. */
#include <check.h>

#include "sim/core/error.h"
#include "sim/core/random.h"
#include "tests/unit/suite.h"

enum { n_drawn = 8 };

static void draw(uint64_t seed, const char *purpose, uint64_t index, unsigned long out[n_drawn])
{
    gsl_rng *const rng = dl_random_new(seed, purpose, index);
    for (int i = 0; i < n_drawn; i++) out[i] = gsl_rng_get(rng);
    gsl_rng_free(rng);
}

static int n_equal(const unsigned long a[n_drawn], const unsigned long b[n_drawn])
{
    int equal = 0;
    for (int i = 0; i < n_drawn; i++) equal += a[i] == b[i];
    return equal;
}

START_TEST(the_same_triple_gives_the_same_stream)
{
    unsigned long first[n_drawn], other[n_drawn], again[n_drawn];
    draw(7, "placement", 3, first);
    draw(8, "jitter", 0, other); /* what else is drawn in between does not matter */
    draw(7, "placement", 3, again);
    ck_assert_int_eq(n_equal(first, again), n_drawn);
}
END_TEST

START_TEST(each_part_of_the_triple_counts)
{
    unsigned long base[n_drawn], other[n_drawn];
    draw(7, "placement", 3, base);
    draw(8, "placement", 3, other);
    ck_assert_int_eq(n_equal(base, other), 0);
    draw(7, "placements", 3, other);
    ck_assert_int_eq(n_equal(base, other), 0);
    draw(7, "placement", 4, other);
    ck_assert_int_eq(n_equal(base, other), 0);
    draw(3, "placement", 7, other); /* seed and index are not exchangeable */
    ck_assert_int_eq(n_equal(base, other), 0);
}
END_TEST

START_TEST(neighbouring_indexes_start_apart)
{
    enum { n_streams = 200 };
    unsigned long first[n_streams];
    for (int i = 0; i < n_streams; i++) {
        unsigned long drawn[n_drawn];
        draw(1, "jitter", (uint64_t)i, drawn);
        first[i] = drawn[0];
        for (int j = 0; j < i; j++) ck_assert_uint_ne(first[i], first[j]);
    }
}
END_TEST

/* The published outputs of SplitMix64 started at 1234567: its state grows by the golden gamma, which dl_mix adds. */
START_TEST(mix_is_splitmix64)
{
    const uint64_t gamma = 0x9E3779B97F4A7C15u;
    const uint64_t published[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u};
    for (size_t i = 0; i < DL_COUNT(published); i++) ck_assert_uint_eq(dl_mix(1234567 + i * gamma), published[i]);
}
END_TEST

START_TEST(mix_turns_one_bit_into_about_half_of_them)
{
    for (int bit = 0; bit < 64; bit++) {
        int changed = 0;
        for (uint64_t value = 0; value < 100; value++)
            changed += __builtin_popcountll(dl_mix(value) ^ dl_mix(value ^ ((uint64_t)1 << bit)));
        /* 6400 fair coins: mean 3200, standard deviation 40 */
        ck_assert_int_ge(changed, 3200 - 5 * 40);
        ck_assert_int_le(changed, 3200 + 5 * 40);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("random");
    tcase_add_test(tests, the_same_triple_gives_the_same_stream);
    tcase_add_test(tests, each_part_of_the_triple_counts);
    tcase_add_test(tests, neighbouring_indexes_start_apart);
    tcase_add_test(tests, mix_is_splitmix64);
    tcase_add_test(tests, mix_turns_one_bit_into_about_half_of_them);
    Suite *const suite = suite_create("random");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
