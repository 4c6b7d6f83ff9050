/* collectives.c - one battery over every algorithm of the table. */
#include <math.h>

#include "sim/collective/phase.h"
#include "tests/unit/collective_fixture.h"
#include "tests/unit/suite.h"

static void check_every_schedule(const struct dl_collective *c)
{
    const struct traffic first = replay_all(c, IN_ORDER);
    ck_assert(c->group->n > 1 ? first.n_messages > 0 : first.n_messages == 0);
    for (int schedule = 1; schedule < N_SCHEDULES; schedule++) {
        const struct traffic again = replay_all(c, (enum schedule)schedule);
        ck_assert_uint_eq(again.n_messages, first.n_messages);
        ck_assert_uint_eq(again.depth, first.depth);
    }
}

START_TEST(every_rank_ends_with_exactly_what_it_must)
{
    for_all_groups(dl_algorithm_get((size_t)_i), check_every_schedule);
}
END_TEST

/* --- bytes sent by all ranks together, as multiples of the collective's bytes --- */

static double binomial_hops(const struct dl_group *g, bool in_nodes)
{
    double hops = 0; /* a part travels as many hops as its member's number has bits */
    for (uint32_t rank = 0; rank < g->n; rank++) hops += __builtin_popcount(in_nodes ? g->slot[rank] : rank);
    return hops / g->n;
}

static double others(const struct dl_group *g) { return g->n - 1.0; }
static double twice_others(const struct dl_group *g) { return 2 * others(g); }
static double part_of_others(const struct dl_group *g) { return others(g) / g->n; }
static double binomial_parts(const struct dl_group *g) { return binomial_hops(g, false); }
static double nothing(const struct dl_group *g) { return 0 * g->n; }
static double one_buffer(const struct dl_group *g) { return g->n > 1; }
static double to_server_and_back(const struct dl_group *g) { return g->n > 1 ? 2.0 * g->n : 0; }
static double scatter_and_gather(const struct dl_group *g) { return binomial_hops(g, false) + others(g); }

static double folded_doubling(const struct dl_group *g)
{
    const double players = dl_floor_power_of_2(g->n);
    return 2 * (g->n - players) + players * log2(players);
}

static double folded_halving(const struct dl_group *g)
{
    const double players = dl_floor_power_of_2(g->n);
    return 2 * (g->n - players) + 2 * (players - 1);
}

/* Even nodes lose nothing; others also send parts up (or down) the trees, and whole buffers the other way. */
static double hierarchical_parts(const struct dl_group *g)
{
    return others(g) + (g->even ? 0 : binomial_hops(g, true));
}

static double alltoall_twice(const struct dl_group *g)
{
    const double n_nodes = g->n_nodes, in_node = g->n / n_nodes;
    return (in_node - 1) * n_nodes + (n_nodes - 1) * in_node;
}

/* For each prime factor of n all but 1 / factor of every buffer. */
static double alltoall_by_digits(const struct dl_group *g)
{
    double multiple = 0;
    for (uint32_t rest = g->n, factor = 2; rest > 1; rest % factor ? factor++ : (rest /= factor))
        if (rest % factor == 0) multiple += g->n * (factor - 1.0) / factor;
    return multiple;
}

static double part_of_each(const struct dl_group *g) { return g->n > 1; }

static const struct theory {
    enum dl_op op;
    const char *name;
    double (*multiple)(const struct dl_group *g);
} theories[] = {
    {DL_ALLREDUCE, "ring", twice_others},
    {DL_ALLREDUCE, "rings", twice_others},
    {DL_ALLREDUCE, "node_tree", twice_others},
    {DL_ALLREDUCE, "tree", twice_others},
    {DL_ALLREDUCE, "double_binary_tree", twice_others},
    {DL_ALLREDUCE, "recursive_doubling", folded_doubling},
    {DL_ALLREDUCE, "rabenseifner", folded_halving},
    {DL_ALLREDUCE, "hierarchical", twice_others},
    {DL_ALLREDUCE, "torus", twice_others},
    {DL_ALLREDUCE, "torus_rings", twice_others},
    {DL_ALLREDUCE, "direct", twice_others},
    {DL_ALLREDUCE, "direct_ring", twice_others},
    {DL_ALLREDUCE, "parameter_server", to_server_and_back},
    {DL_ALLREDUCE, "parameter_server_serial", to_server_and_back},
    {DL_ALLGATHER, "ring", others},
    {DL_ALLGATHER, "rings", others},
    {DL_ALLGATHER, "recursive", others},
    {DL_ALLGATHER, "torus", others},
    {DL_ALLGATHER, "direct", others},
    {DL_ALLGATHER, "hierarchical", hierarchical_parts},
    {DL_REDUCESCATTER, "ring", others},
    {DL_REDUCESCATTER, "rings", others},
    {DL_REDUCESCATTER, "recursive", others},
    {DL_REDUCESCATTER, "torus", others},
    {DL_REDUCESCATTER, "direct", others},
    {DL_REDUCESCATTER, "hierarchical", hierarchical_parts},
    {DL_ALLTOALL, "direct", others},
    {DL_ALLTOALL, "pairwise", others},
    {DL_ALLTOALL, "recursive", alltoall_by_digits},
    {DL_ALLTOALL, "hierarchical", alltoall_twice},
    {DL_BROADCAST, "binomial", others},
    {DL_BROADCAST, "chain", others},
    {DL_BROADCAST, "chains", others},
    {DL_BROADCAST, "scatter_allgather", scatter_and_gather},
    {DL_REDUCE, "binomial", others},
    {DL_REDUCE, "chain", others},
    {DL_REDUCE, "chains", others},
    {DL_GATHER, "binomial", binomial_parts},
    {DL_GATHER, "direct", part_of_others},
    {DL_SCATTER, "binomial", binomial_parts},
    {DL_SCATTER, "direct", part_of_others},
    {DL_BARRIER, "dissemination", nothing},
    {DL_SENDRECV, "direct", one_buffer},
    {DL_SHIFT, "direct", part_of_each},
    {DL_HALO, "direct", part_of_others},
};

static const struct theory *theory_of(const struct dl_algorithm *a)
{
    for (size_t i = 0; i < DL_COUNT(theories); i++)
        if (theories[i].op == a->op && strcmp(theories[i].name, a->name) == 0) return &theories[i];
    return NULL;
}

static void check_bytes(const struct dl_collective *c)
{
    struct dl_collective empty = *c;
    if (c->op == DL_BARRIER) empty.bytes = 0;
    const double right = theory_of(c->algorithm)->multiple(c->group) * bytes;
    ck_assert_double_eq_tol(replay_all(&empty, IN_ORDER).bytes, right, 1e-9 * bytes);
}

START_TEST(bytes_sent_are_as_in_theory)
{
    const struct dl_algorithm *const a = dl_algorithm_get((size_t)_i);
    ck_assert_msg(!a->next || theory_of(a), "%s %s has no theory here", dl_op_name(a->op), a->name);
    for_all_groups(a, check_bytes);
}
END_TEST

/* --- the rounds of the estimate --- */

/* Where messages of one round differ, the estimate takes the largest. */
static bool has_equal_messages(const struct dl_collective *c)
{
    if (strcmp(c->algorithm->name, "hierarchical") == 0) return c->group->even || c->op == DL_ALLREDUCE;
    const bool binomial_parts_move =
        c->op == DL_GATHER || c->op == DL_SCATTER || strcmp(c->algorithm->name, "scatter_allgather") == 0;
    return !binomial_parts_move || dl_floor_power_of_2(c->group->n) == c->group->n;
}

static double blocks_of_rounds(const struct dl_collective *c, uint32_t lane)
{
    double blocks = 0;
    struct dl_round round;
    for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++) {
        uint32_t n_senders = 0;
        for (uint32_t rank = 0; rank < dl_collective_ranks(c); rank++) {
            const uint32_t peer = c->algorithm->peer(c, lane, k, rank);
            if (peer == DL_NOBODY) continue;
            REQUIRE(peer != rank && peer < dl_collective_ranks(c), "rank %u sends to %u", rank, peer);
            n_senders++;
        }
        ck_assert_double_ge(round.repeat, 1);
        ck_assert_uint_ge(round.merged, 1);
        ck_assert_uint_le(round.merged, c->group->n);
        blocks += round.repeat * round.blocks * n_senders;
    }
    return blocks;
}

static void check_rounds(const struct dl_collective *c)
{
    struct contract k;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        read_contract(&k, c, lane);
        const double sent = replay_lane(&k, lane, IN_ORDER).lane_blocks, told = blocks_of_rounds(c, lane);
        if (has_equal_messages(c))
            ck_assert_double_eq(told, sent);
        else
            ck_assert(told >= sent && told <= 2 * sent);
    }
}

START_TEST(rounds_send_what_the_programs_send) { for_all_groups(dl_algorithm_get((size_t)_i), check_rounds); }
END_TEST

/* A lane that is a ring has one peer a rank, in its program as in its rounds. */
static void check_ring(const struct dl_collective *c)
{
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        if (c->algorithm->fold != DL_FOLD_RING) continue;
        for (uint32_t rank = 0; rank < c->group->n; rank++) {
            struct dl_action a;
            struct dl_round round;
            for (uint32_t step = 0; c->algorithm->next(c, lane, rank, step, &a); step++)
                REQUIRE(a.kind == DL_RECV || a.peer == c->algorithm->peer(c, lane, 0, rank), "rank %u has two peers",
                        rank);
            for (uint32_t k = 0; c->algorithm->round(c, lane, k, &round); k++)
                ck_assert_uint_eq(c->algorithm->peer(c, lane, k, rank), c->algorithm->peer(c, lane, 0, rank));
        }
    }
}

START_TEST(rings_have_one_peer) { for_all_groups(dl_algorithm_get((size_t)_i), check_ring); }
END_TEST

int main(void)
{
    Suite *const suite = suite_create("collectives");
    TCase *const battery = tcase_create("battery");
    const int n = (int)dl_algorithm_count();
    tcase_set_timeout(battery, 60);
    tcase_add_loop_test(battery, every_rank_ends_with_exactly_what_it_must, 0, n);
    tcase_add_loop_test(battery, bytes_sent_are_as_in_theory, 0, n);
    tcase_add_loop_test(battery, rounds_send_what_the_programs_send, 0, n);
    tcase_add_loop_test(battery, rings_have_one_peer, 0, n);
    suite_add_tcase(suite, battery);
    return run_suite(suite);
}
