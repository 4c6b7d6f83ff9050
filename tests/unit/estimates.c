/* estimates.c - the analytic engine against the simulation, for every algorithm of the table, on an ideal crossbar.
 *
 * In one piece most algorithms are estimated exactly. The exceptions overlap what the estimate takes one after the
 * other, or compete where it sees no competition; each has a bound with its reason. In several pieces, pieces of
 * different rounds meet at the ports, and the estimate is only good to a factor of two. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double gamma_s = 2.5e-11;
static const double rounding = 1e-9;

/* Allowed (estimate - simulation) / simulation. */
struct bound {
    const char *algorithm;
    double low, high;
};

static const struct bound exceptions[] = {
    /* Off powers of two a rank without a message in a round goes on. What it sends shares the receiver's link with an
     * earlier message: both arrive together and are added then, where the estimate lets the first one through and adds
     * it meanwhile. Or it is the estimate that lets the one of the earlier round through first, though it comes later.
     */
    {"tree", -1. / 16, 1. / 8},
    {"binomial", -1. / 8, 1. / 4},
    /* The ranks in excess send first, others are a round ahead and share the receiver's link with them: what all wait
     * for is late, where the estimate lets it through first. */
    {"recursive_doubling", -1. / 3, 0},
    {"rabenseifner", -1. / 4, 0},
    /* Unequal children: the two halves of a tree are not in step. Where lanes meet at a port, one does not quite move
     * while the other reduces, as the estimate has it. */
    {"double_binary_tree", -1. / 50, 1. / 6},
    {"node_tree", -1. / 8, 1. / 6},
    /* The lanes begin with dimensions of unequal size and fill each other's gaps, more so where there is one half only.
     */
    {"torus", -1. / 7, 1. / 4},
};

static struct bound bound_of(const struct dl_algorithm *algorithm)
{
    for (size_t i = 0; i < DL_COUNT(exceptions); i++)
        if (strcmp(exceptions[i].algorithm, algorithm->name) == 0) return exceptions[i];
    return (struct bound){algorithm->name, 0, 0};
}

static const uint32_t ranks[] = {2, 3, 5, 8, 13, 16, 24};
static const double sizes[] = {64, 1e4, 1e6, 1e8}; /* small first: see collective_runs.h */
enum { n_jobs = DL_COUNT(ranks) * DL_COUNT(sizes) };

/* Messages of the last two sizes are, in many algorithms, on both sides of the limit. */
#define TRANSPORT_IN_PIECES                                                                                            \
    "transport.protocols=[{\"name\":\"ideal\",\"peer\":{\"network_s\":1e-6},\"tree\":{\"network_s\":1e-6},"            \
    "\"above\":{\"bytes\":1e5,\"bandwidth_fraction\":0.5,\"network_s\":1e-5}}]"

/* Refused by the crossbar, where no switch adds up. */
static size_t compare_on(const char *protocols, const struct dl_algorithm *algorithm, double gamma, uint32_t chunks,
                         struct bound bound)
{
    static struct job jobs[n_jobs];
    static struct outcome outcomes[n_jobs];
    char gamma_text[64];
    snprintf(gamma_text, sizeof gamma_text, "transport.reduction_s_per_byte=%.17g", gamma);
    const struct setting crossbar = {.system = "crossbar",
                                     .engine = "simgrid",
                                     .set = {{"topo.nodes=25", gamma_text, protocols}, protocols ? 3 : 2}};
    size_t n_compared = 0;
    for (size_t i = 0; i < n_jobs; i++)
        jobs[i] = (struct job){.op = algorithm->op,
                               .algorithm = algorithm->name,
                               .n = ranks[i % DL_COUNT(ranks)],
                               .bytes = algorithm->op == DL_BARRIER ? 0 : sizes[i / DL_COUNT(ranks)],
                               .chunks = chunks,
                               .refusable = algorithm->fold == DL_FOLD_SWITCH};
    run_jobs(&crossbar, jobs, n_jobs, outcomes);
    for (size_t i = 0; i < n_jobs; i++) {
        if (outcomes[i].refused) continue;
        const double error = outcomes[i].estimate_s / outcomes[i].result.time_s - 1;
        ck_assert_msg(
            error >= bound.low - rounding && error <= bound.high + rounding,
            "%s %s, %u ranks, %g bytes, %u chunks, gamma %g: estimate %.6g s, simulation %.6g s, off by %+.3g",
            dl_op_name(algorithm->op), algorithm->name, jobs[i].n, jobs[i].bytes, chunks, gamma, outcomes[i].estimate_s,
            outcomes[i].result.time_s, error);
        n_compared++;
    }
    return n_compared;
}

static size_t compare(const struct dl_algorithm *algorithm, double gamma, uint32_t chunks, struct bound bound)
{
    return compare_on(NULL, algorithm, gamma, chunks, bound);
}

START_TEST(estimate_in_one_piece_is_within_its_bound)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    const size_t n_compared = compare(a, 0, 1, bound_of(a)) + compare(a, gamma_s, 1, bound_of(a));
    ck_assert_uint_eq(n_compared, a->fold == DL_FOLD_SWITCH ? 0 : 2 * n_jobs);
}
END_TEST

START_TEST(estimate_with_messages_of_two_kinds_is_within_the_same_bound)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    const size_t n_compared = compare_on(TRANSPORT_IN_PIECES, a, gamma_s, 1, bound_of(a));
    ck_assert_uint_eq(n_compared, a->fold == DL_FOLD_SWITCH ? 0 : n_jobs);
}
END_TEST

START_TEST(estimate_in_pieces_is_within_a_factor_of_two)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    const size_t n_compared = compare(a, gamma_s, 4, (struct bound){a->name, -1. / 2, 1});
    ck_assert_uint_eq(n_compared, a->fold == DL_FOLD_SWITCH ? 0 : n_jobs);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("estimates");
    TCase *const tests = tcase_create("crossbar");
    tcase_add_loop_test(tests, estimate_in_one_piece_is_within_its_bound, 0, (int)dl_algorithm_count());
    tcase_add_loop_test(tests, estimate_with_messages_of_two_kinds_is_within_the_same_bound, 0,
                        (int)dl_algorithm_count());
    tcase_add_loop_test(tests, estimate_in_pieces_is_within_a_factor_of_two, 0, (int)dl_algorithm_count());
    suite_add_tcase(s, tests);
    return run_suite(s);
}
