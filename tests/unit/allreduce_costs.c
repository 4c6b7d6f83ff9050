/* allreduce_costs.c - the textbook's costs of collectives in alpha, beta and gamma, on a machine where they must hold
 * exactly: a crossbar of full bisection, no software, every message simulated. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

/* System file crossbar: two links of 0.5 us on every way, 10 GB/s each. */
static const double alpha = 1e-6, beta = 1e-10;
static const double exact = 1e-9;

/* lg is the base-2 logarithm; c the chunks. */
struct cost {
    double p, lg, n, c, gamma;
};
typedef double (*cost_fn)(struct cost x);

static double serial_server(struct cost x) { return 2 * x.p * alpha + 2 * x.p * x.n * beta + x.p * x.n * x.gamma; }
static double server(struct cost x) { return 2 * alpha + 2 * x.p * x.n * beta + x.p * x.n * x.gamma; }
static double tree(struct cost x) { return x.lg * (2 * alpha + 2 * x.n * beta + x.n * x.gamma); }
static double butterfly(struct cost x) { return x.lg * (alpha + x.n * beta + x.n * x.gamma); }
/* What any reduce-scatter or all-gather moves at least; twice that is an all-reduce. */
static double part(struct cost x) { return (x.p - 1) / x.p * x.n; }
static double rabenseifner(struct cost x) { return 2 * x.lg * alpha + part(x) * (2 * beta + x.gamma); }
static double ring(struct cost x) { return 2 * (x.p - 1) * alpha + part(x) * (2 * beta + x.gamma); }
static double ring_gather(struct cost x) { return (x.p - 1) * alpha + part(x) * beta; }
static double ring_scatter(struct cost x) { return (x.p - 1) * alpha + part(x) * (beta + x.gamma); }
static double recursive_gather(struct cost x) { return x.lg * alpha + part(x) * beta; }
static double recursive_scatter(struct cost x) { return x.lg * alpha + part(x) * (beta + x.gamma); }
static double binomial(struct cost x) { return x.lg * (alpha + x.n * beta); }
static double binomial_reduce(struct cost x) { return x.lg * (alpha + x.n * (beta + x.gamma)); }
/* The first chunk goes down the line; the port sends the next while latency passes, so that each of the other chunks
 * costs n/c beta, and not alpha again as in the textbook's (p - 2 + c)(alpha + n/c beta), where a link is held. */
static double chain(struct cost x) { return (x.p - 1) * (alpha + x.n / x.c * beta) + (x.c - 1) * x.n / x.c * beta; }
static double scatter_allgather(struct cost x) { return (x.lg + x.p - 1) * alpha + 2 * part(x) * beta; }
static double direct(struct cost x) { return alpha + part(x) * beta; }
static double pairwise(struct cost x) { return (x.p - 1) * alpha + part(x) * beta; }
static double half_each(struct cost x) { return x.lg * (alpha + x.n / 2 * beta); }
static double barrier(struct cost x) { return x.lg * alpha; }
static double one_message(struct cost x) { return alpha + x.n * beta; }

static double one_part(struct cost x) { return alpha + x.n / x.p * beta; }
/* A part in the middle sends both of its halves, one of two ranks only one. */
static double borders(struct cost x) { return alpha + (x.p > 2 ? 1 : 0.5) * x.n / x.p * beta; }

static const struct {
    enum dl_op op;
    const char *algorithm;
    cost_fn cost;
    uint32_t chunks;
} laws[] = {
    {DL_ALLREDUCE, "parameter_server_serial", serial_server, 1},
    {DL_ALLREDUCE, "parameter_server", server, 1},
    {DL_ALLREDUCE, "tree", tree, 1},
    {DL_ALLREDUCE, "recursive_doubling", butterfly, 1},
    {DL_ALLREDUCE, "rabenseifner", rabenseifner, 1},
    {DL_ALLREDUCE, "ring", ring, 1},
    {DL_ALLGATHER, "ring", ring_gather, 1},
    {DL_ALLGATHER, "recursive", recursive_gather, 1},
    {DL_ALLGATHER, "direct", direct, 1},
    {DL_REDUCESCATTER, "ring", ring_scatter, 1},
    {DL_REDUCESCATTER, "recursive", recursive_scatter, 1},
    {DL_ALLTOALL, "direct", direct, 1},
    {DL_ALLTOALL, "pairwise", pairwise, 1},
    {DL_ALLTOALL, "recursive", half_each, 1},
    {DL_BROADCAST, "binomial", binomial, 1},
    {DL_BROADCAST, "chain", chain, 1},
    {DL_BROADCAST, "chain", chain, 4},
    {DL_BROADCAST, "chain", chain, 32},
    {DL_BROADCAST, "scatter_allgather", scatter_allgather, 1},
    {DL_REDUCE, "binomial", binomial_reduce, 1},
    {DL_GATHER, "direct", direct, 1},
    {DL_GATHER, "binomial", recursive_gather, 1},
    {DL_SCATTER, "direct", direct, 1},
    {DL_SCATTER, "binomial", recursive_gather, 1},
    {DL_BARRIER, "dissemination", barrier, 1},
    {DL_SENDRECV, "direct", one_message, 1},
    {DL_SHIFT, "direct", one_part, 1},
    {DL_HALO, "direct", borders, 1},
};

static const uint32_t ranks[] = {2, 4, 8, 16, 64};
static const double sizes[] = {64, 8e3, 1e6}; /* small first: see collective_runs.h */
static const double gammas[] = {0, 2.5e-11};

enum { n_laws = DL_COUNT(laws), n_jobs = DL_COUNT(sizes) * DL_COUNT(ranks) * DL_COUNT(laws) };

static struct setting crossbar(const char *engine, double gamma)
{
    static char nodes[] = "topo.nodes=65", gamma_text[64]; /* one beside 64 ranks, for a server */
    snprintf(gamma_text, sizeof gamma_text, "transport.reduction_s_per_byte=%.17g", gamma);
    return (struct setting){.system = "crossbar", .engine = engine, .set = {{nodes, gamma_text}, 2}};
}

static struct job job_of(size_t which)
{
    const size_t law = which % n_laws, by_size = which / n_laws;
    return (struct job){.op = laws[law].op,
                        .algorithm = laws[law].algorithm,
                        .n = ranks[by_size % DL_COUNT(ranks)],
                        .bytes = laws[law].op == DL_BARRIER ? 0 : sizes[by_size / DL_COUNT(ranks)],
                        .chunks = laws[law].chunks};
}

static void check_time(const char *what, const struct job *job, double got, double want)
{
    ck_assert_msg(fabs(got - want) <= exact * want,
                  "%s %s, %u ranks, %g bytes, %u chunks: %s %.12g s, should be %.12g s", dl_op_name(job->op),
                  job->algorithm, job->n, job->bytes, job->chunks, what, got, want);
}

static void check_laws(const char *engine, double gamma)
{
    static struct job jobs[n_jobs];
    static struct outcome outcomes[n_jobs];
    const struct setting setting = crossbar(engine, gamma);
    for (size_t i = 0; i < n_jobs; i++) jobs[i] = job_of(i);
    run_jobs(&setting, jobs, n_jobs, outcomes);
    for (size_t i = 0; i < n_jobs; i++) {
        const struct cost x = {jobs[i].n, log2(jobs[i].n), jobs[i].bytes, jobs[i].chunks, gamma};
        const double want = laws[i % n_laws].cost(x);
        check_time("simulated", &jobs[i], outcomes[i].result.time_s, want);
        check_time("estimated", &jobs[i], outcomes[i].estimate_s, want);
    }
}

START_TEST(costs_are_the_textbooks_on_every_engine)
{
    check_laws(dl_engine_get((size_t)_i % dl_engine_sharing_count())->name,
               gammas[(size_t)_i / dl_engine_sharing_count()]);
}
END_TEST

/* p = 8, n = 1e6, gamma = 0, with the digits that the textbook prints. */
START_TEST(worked_numbers_are_the_textbooks)
{
    static const double printed_s[] = {1.616e-3, 6.06e-4, 3.03e-4, 1.81e-4, 1.89e-4};
    static const char *const algorithms[] = {"parameter_server_serial", "tree", "recursive_doubling", "rabenseifner",
                                             "ring"};
    struct job jobs[DL_COUNT(algorithms)];
    struct outcome outcomes[DL_COUNT(algorithms)];
    const struct setting setting = crossbar("simgrid", 0);
    for (size_t i = 0; i < DL_COUNT(jobs); i++)
        jobs[i] = (struct job){.op = DL_ALLREDUCE, .algorithm = algorithms[i], .n = 8, .bytes = 1e6, .chunks = 1};
    run_jobs(&setting, jobs, DL_COUNT(jobs), outcomes);
    for (size_t i = 0; i < DL_COUNT(jobs); i++)
        ck_assert_double_eq_tol(outcomes[i].result.time_s, printed_s[i], exact * printed_s[i]);
}
END_TEST

/* The causes of the last rank are the terms of the formula, each in its place. */
START_TEST(causes_are_the_terms_of_the_formula)
{
    const double gamma = gammas[1], p = 16, n = 1e6;
    const struct job job = {.op = DL_ALLREDUCE, .algorithm = "ring", .n = (uint32_t)p, .bytes = n, .chunks = 1};
    const struct setting setting = crossbar("simgrid", gamma);
    struct outcome outcome;
    run_jobs(&setting, &job, 1, &outcome);
    const struct dl_causes *const causes = &outcome.result.causes;
    ck_assert_double_eq_tol(causes->latency_s, 2 * (p - 1) * alpha, exact * p * alpha);
    ck_assert_double_eq_tol(causes->bandwidth_s, 2 * (p - 1) / p * n * beta, exact * n * beta);
    ck_assert_double_eq_tol(causes->reduction_s, (p - 1) / p * n * gamma, exact * n * gamma);
    ck_assert_double_le(causes->sharing_s + causes->start_s, exact * outcome.result.time_s);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("allreduce_costs");
    TCase *const tests = tcase_create("crossbar");
    tcase_add_loop_test(tests, costs_are_the_textbooks_on_every_engine, 0,
                        (int)(dl_engine_sharing_count() * DL_COUNT(gammas)));
    tcase_add_test(tests, worked_numbers_are_the_textbooks);
    tcase_add_test(tests, causes_are_the_terms_of_the_formula);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
