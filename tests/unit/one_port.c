/* one_port.c - messages that hold the ports of their ranks: the single-port model of the textbooks.
 *
 * Thakur, Rabenseifner, Gropp (IJHPCA 2005) and Chan et al. (CCPE 2007): a message of n bytes takes alpha + n beta, and
 * a rank sends one and receives one at a time. Every cost is a line over n, so that the best of them is the lower
 * envelope: the simulation and the estimate are on the lines, and `auto` changes over where they cross. */
#include <check.h>
#include <math.h>

#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double alpha = 1e-6, beta = 1e-10; /* of the crossbar: two links each way */
static const double exact = 1e-9;
#define ONE_PORT "one-port"

struct cost {
    double p, lg, gamma;
    double n_digits, digit_bytes; /* sums over prime factors q of p: of q - 1, of (q - 1) / q */
    double n_along;               /* sum over the sizes of the grid that torus_rings takes p for, each less 1 */
};

/* fixed + n per_byte */
struct line {
    double fixed_s, per_byte_s;
};
typedef struct line (*line_fn)(struct cost x);

static double others(struct cost x) { return (x.p - 1) / x.p; }
static struct line ring_gather(struct cost x) { return (struct line){(x.p - 1) * alpha, others(x) * beta}; }
static struct line ring_scatter(struct cost x)
{
    return (struct line){(x.p - 1) * alpha, others(x) * (beta + x.gamma)};
}
static struct line recursive_gather(struct cost x) { return (struct line){x.lg * alpha, others(x) * beta}; }
static struct line recursive_scatter(struct cost x)
{
    return (struct line){x.lg * alpha, others(x) * (beta + x.gamma)};
}
static struct line ring(struct cost x)
{
    return (struct line){2 * (x.p - 1) * alpha, others(x) * (2 * beta + x.gamma)};
}
static struct line grid(struct cost x)
{
    return (struct line){2 * x.n_along * alpha, others(x) * (2 * beta + x.gamma)};
}
static struct line rabenseifner(struct cost x)
{
    return (struct line){2 * x.lg * alpha, others(x) * (2 * beta + x.gamma)};
}
/* Off powers of two (12 is 8 + 4) the four in excess give theirs away first, and get the sum last; the others are ahead
 * by then, so that one of their parts is added meanwhile. */
static struct line butterfly(struct cost x)
{
    const double rounds = floor(log2(x.p)), more = rounds < x.lg;
    return (struct line){(rounds + 2 * more) * alpha, (rounds + 2 * more) * beta + rounds * x.gamma};
}
static struct line tree(struct cost x) { return (struct line){2 * x.lg * alpha, x.lg * (2 * beta + x.gamma)}; }
static struct line binomial(struct cost x) { return (struct line){x.lg * alpha, x.lg * beta}; }
static struct line binomial_reduce(struct cost x) { return (struct line){x.lg * alpha, x.lg * (beta + x.gamma)}; }
static struct line chain(struct cost x) { return (struct line){(x.p - 1) * alpha, (x.p - 1) * beta}; }
static struct line scatter_allgather(struct cost x)
{
    return (struct line){(x.lg + x.p - 1) * alpha, 2 * others(x) * beta};
}
static struct line digits(struct cost x) { return (struct line){x.n_digits * alpha, x.digit_bytes * beta}; }
/* All but the last part are added while the next one comes: adding is faster than moving here. */
static struct line direct_scatter(struct cost x)
{
    return (struct line){(x.p - 1) * alpha, others(x) * beta + x.gamma / x.p};
}
static struct line direct(struct cost x)
{
    return (struct line){2 * (x.p - 1) * alpha, 2 * others(x) * beta + x.gamma / x.p};
}
static struct line barrier(struct cost x) { return (struct line){x.lg * alpha, 0}; }

static const struct law {
    enum dl_op op;
    const char *algorithm;
    line_fn line;
    bool powers_only; /* of two */
} laws[] = {
    {DL_ALLREDUCE, "recursive_doubling", butterfly, false},
    {DL_ALLREDUCE, "rabenseifner", rabenseifner, true},
    {DL_ALLREDUCE, "ring", ring, false},
    {DL_ALLREDUCE, "torus_rings", grid, false},
    {DL_ALLREDUCE, "tree", tree, true},
    {DL_ALLREDUCE, "direct", direct, false},
    {DL_ALLGATHER, "recursive", recursive_gather, false},
    {DL_ALLGATHER, "ring", ring_gather, false},
    {DL_ALLGATHER, "direct", ring_gather, false},
    {DL_REDUCESCATTER, "recursive", recursive_scatter, false},
    {DL_REDUCESCATTER, "ring", ring_scatter, false},
    {DL_REDUCESCATTER, "direct", direct_scatter, false},
    {DL_ALLTOALL, "recursive", digits, false},
    {DL_ALLTOALL, "pairwise", ring_gather, false},
    {DL_ALLTOALL, "direct", ring_gather, false},
    {DL_BROADCAST, "binomial", binomial, false},
    {DL_BROADCAST, "scatter_allgather", scatter_allgather, false},
    {DL_BROADCAST, "chain", chain, false},
    {DL_REDUCE, "binomial", binomial_reduce, true},
    {DL_GATHER, "binomial", recursive_gather, false},
    {DL_GATHER, "direct", ring_gather, false},
    {DL_SCATTER, "binomial", recursive_gather, false},
    {DL_SCATTER, "direct", ring_gather, false},
    {DL_BARRIER, "dissemination", barrier, false},
};

static const struct group {
    uint32_t n;
    double n_along, n_digits, digit_bytes;
} groups[] = {
    {8, 3, 3, 1.5},     /* 2 x 2 x 2 */
    {12, 4, 4, 5. / 3}, /* 2 x 2 x 3 */
    {16, 5, 4, 2},      /* 2 x 2 x 4 */
    {64, 9, 6, 3},      /* 4 x 4 x 4 */
};

static bool is_power_of_2(uint32_t n) { return (n & (n - 1)) == 0; }

static struct cost cost_of(const struct group *g, double gamma)
{
    return (struct cost){.p = g->n,
                         .lg = ceil(log2(g->n)),
                         .gamma = gamma,
                         .n_digits = g->n_digits,
                         .digit_bytes = g->digit_bytes,
                         .n_along = g->n_along};
}

static double at(struct line l, double bytes) { return l.fixed_s + l.per_byte_s * bytes; }

/* ---- each by itself ---- */

static const double gammas[] = {0, 2.5e-11};
/* Of the others, torus has lanes of which some move while others add: it is below all of these where gamma counts. */
#define TEXTBOOK                                                                                                       \
    "transport.algorithms=[\"recursive_doubling\",\"rabenseifner\",\"ring\",\"torus_rings\",\"tree\",\"direct\","      \
    "\"recursive\",\"pairwise\",\"binomial\",\"scatter_allgather\",\"chain\"]"
static const char *const gamma_texts[] = {"transport.reduction_s_per_byte=0", "transport.reduction_s_per_byte=2.5e-11"};
static const char *const engines[] = {"simgrid", "cm02"};
static const double sizes[] = {64, 1e4, 1e6, 1e8}; /* small first: see collective_runs.h */

static void check_laws(const char *engine, size_t which_gamma, const struct group *g)
{
    enum { most = DL_COUNT(laws) * DL_COUNT(sizes) };
    struct job jobs[most];
    struct outcome outcomes[most];
    const struct law *law_of[most];
    const struct setting setting = {.system = "crossbar",
                                    .transport = ONE_PORT,
                                    .engine = engine,
                                    .set = {{"topo.nodes=65", gamma_texts[which_gamma]}, 2}};
    const struct cost x = cost_of(g, gammas[which_gamma]);
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        const struct law *const law = &laws[i % DL_COUNT(laws)];
        if (law->powers_only && !is_power_of_2(g->n)) continue;
        law_of[n] = law;
        jobs[n++] = (struct job){.op = law->op,
                                 .algorithm = law->algorithm,
                                 .n = g->n,
                                 .bytes = law->op == DL_BARRIER ? 0 : sizes[i / DL_COUNT(laws)]};
    }
    run_jobs(&setting, jobs, n, outcomes);
    for (size_t i = 0; i < n; i++) {
        const double right = at(law_of[i]->line(x), jobs[i].bytes), time_s = outcomes[i].result.time_s;
        ck_assert_msg(fabs(time_s - right) <= exact * right && fabs(outcomes[i].estimate_s - right) <= exact * right,
                      "%s %s of %g bytes over %u ranks, gamma %g, %s: simulation %.12g s, estimate %.12g s, the "
                      "textbook has %.12g s",
                      dl_op_name(jobs[i].op), jobs[i].algorithm, jobs[i].bytes, g->n, x.gamma, engine, time_s,
                      outcomes[i].estimate_s, right);
    }
}

START_TEST(costs_are_those_of_the_textbook)
{
    for (size_t i = 0; i < DL_COUNT(engines) * DL_COUNT(gammas); i++)
        check_laws(engines[i % DL_COUNT(engines)], i / DL_COUNT(engines), &groups[_i]);
}
END_TEST

/* (p - 2 + c)(alpha + n/c beta): the port is held for the latency of each piece, too. */
START_TEST(pieces_of_a_chain_cost_a_latency_each)
{
    enum { n = 8 };
    const double bytes = 1e6;
    const uint32_t chunks[] = {1, 4, 32};
    const struct setting setting = {.system = "crossbar", .transport = ONE_PORT, .engine = "simgrid"};
    for (size_t i = 0; i < DL_COUNT(chunks); i++) {
        const struct job job = {.op = DL_BROADCAST, .algorithm = "chain", .n = n, .bytes = bytes, .chunks = chunks[i]};
        struct outcome outcome;
        run_jobs(&setting, &job, 1, &outcome);
        const double right = (n - 2 + chunks[i]) * (alpha + bytes / chunks[i] * beta);
        ck_assert_double_eq_tol(outcome.result.time_s, right, exact * right);
        ck_assert_double_eq_tol(outcome.estimate_s, right, exact * right);
    }
}
END_TEST

/* ---- auto ---- */

static const enum dl_op ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER, DL_ALLTOALL,
                                 DL_BROADCAST, DL_GATHER,    DL_SCATTER};

static const struct law *best_of(enum dl_op op, uint32_t n_ranks, struct cost x, double bytes)
{
    const struct law *best = NULL;
    for (size_t i = 0; i < DL_COUNT(laws); i++) {
        if (laws[i].op != op || (laws[i].powers_only && !is_power_of_2(n_ranks))) continue;
        if (!best || at(laws[i].line(x), bytes) < at(best->line(x), bytes)) best = &laws[i];
    }
    return best;
}

/* The size from `bytes` on at which another than `now` is the best; INFINITY: there is none. */
static double next_crossing(enum dl_op op, uint32_t n_ranks, struct cost x, const struct law *now, double bytes)
{
    const struct line a = now->line(x);
    double next = INFINITY;
    for (size_t i = 0; i < DL_COUNT(laws); i++) {
        const struct line b = laws[i].line(x);
        if (laws[i].op != op || (laws[i].powers_only && !is_power_of_2(n_ranks))) continue;
        if (b.per_byte_s >= a.per_byte_s * (1 - exact)) continue;
        const double crossing = (b.fixed_s - a.fixed_s) / (a.per_byte_s - b.per_byte_s);
        if (crossing > bytes) next = fmin(next, crossing);
    }
    return next;
}

static void check_auto(const struct group *g, size_t which_gamma, enum dl_op op, const struct law *right, double bytes)
{
    const struct line line = right->line(cost_of(g, gammas[which_gamma]));
    const struct setting setting = {
        .system = "crossbar",
        .transport = ONE_PORT,
        .engine = "simgrid",
        .set = {{"topo.nodes=65", gamma_texts[which_gamma], TEXTBOOK}, which_gamma ? 3 : 2}};
    const struct job job = {.op = op, .algorithm = "auto", .n = g->n, .bytes = bytes};
    struct outcome outcome;
    run_jobs(&setting, &job, 1, &outcome);
    ck_assert_msg(fabs(outcome.result.time_s - at(line, bytes)) <= exact * at(line, bytes) &&
                      fabs(outcome.estimate_s - at(line, bytes)) <= exact * at(line, bytes),
                  "%s of %.9g bytes over %u ranks: auto takes %.12g s, estimate %.12g s, %s %.12g s", dl_op_name(op),
                  bytes, g->n, outcome.result.time_s, outcome.estimate_s, right->algorithm, at(line, bytes));
}

/* Just below and above a crossing the lines differ by far more than the tolerance. */
static int check_crossings(const struct group *g, size_t which_gamma, enum dl_op op)
{
    const struct cost x = cost_of(g, gammas[which_gamma]);
    const double step = 1e-3, largest = 1e9;
    int n_crossings = 0;
    const struct law *now = best_of(op, g->n, x, 1);
    check_auto(g, which_gamma, op, now, 1);
    for (double bytes = next_crossing(op, g->n, x, now, 1); bytes < largest;
         bytes = next_crossing(op, g->n, x, now, bytes)) {
        check_auto(g, which_gamma, op, now, bytes * (1 - step));
        now = best_of(op, g->n, x, bytes * (1 + step));
        check_auto(g, which_gamma, op, now, bytes * (1 + step));
        n_crossings++;
    }
    check_auto(g, which_gamma, op, now, largest);
    return n_crossings;
}

START_TEST(auto_changes_over_where_the_lines_cross)
{
    int n_crossings[DL_N_OPS] = {0};
    for (size_t i = 0; i < DL_COUNT(ops) * DL_COUNT(gammas); i++)
        n_crossings[ops[i % DL_COUNT(ops)]] += check_crossings(&groups[_i], i / DL_COUNT(ops), ops[i % DL_COUNT(ops)]);
    ck_assert_int_gt(n_crossings[DL_ALLREDUCE], 0);
    ck_assert_int_gt(n_crossings[DL_BROADCAST], 0);
    ck_assert_int_gt(n_crossings[DL_ALLTOALL], 0);
    ck_assert_int_eq(n_crossings[DL_ALLGATHER], 0); /* as few rounds as can be, and no byte too many */
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("one_port");
    TCase *const tests = tcase_create("crossbar");
    tcase_add_loop_test(tests, costs_are_those_of_the_textbook, 0, (int)DL_COUNT(groups));
    tcase_add_test(tests, pieces_of_a_chain_cost_a_latency_each);
    tcase_add_loop_test(tests, auto_changes_over_where_the_lines_cross, 0, (int)DL_COUNT(groups));
    suite_add_tcase(s, tests);
    return run_suite(s);
}
