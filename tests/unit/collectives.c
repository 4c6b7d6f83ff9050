/* collectives.c - one battery over every algorithm of the table, and what single ones promise besides. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/collective/phase.h"
#include "tests/unit/replay.h"

static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32, 100};
static const double bytes = 1 << 20;

/* Ranks on nodes: so many after each other; and dealt at random. */
enum layout { ONE_A_NODE, FOUR_A_NODE, EIGHT_A_NODE, SHUFFLED, N_LAYOUTS };

struct fixture {
    struct dl_arena *arena;
    struct dl_topology machine;
    struct dl_group group;
    struct dl_collective c;
};

static void shuffle(uint32_t *items, uint32_t n)
{
    gsl_rng *const random = dl_random_new(1, "shuffle", n);
    for (uint32_t i = n; i-- > 1;) {
        const uint32_t j = (uint32_t)gsl_rng_uniform_int(random, i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
    gsl_rng_free(random);
}

static void shuffled_group(struct fixture *f, uint32_t n)
{
    enum { per_node = 4 };
    f->machine.node.n_devices = per_node;
    f->machine.n_nodes = n / per_node + 1;
    uint32_t *const device = dl_arena_alloc(f->arena, (n + 1) * sizeof *device);
    for (uint32_t i = 0; i <= n; i++) device[i] = i;
    shuffle(device, n);
    dl_group_init(&f->group, &f->machine, device, n, f->arena);
}

/* False: the algorithm refuses this group. */
static bool set_up(struct fixture *f, const struct dl_algorithm *algorithm, uint32_t n, enum layout layout)
{
    static const uint32_t per_node[] = {1, 4, 8};
    *f = (struct fixture){.arena = dl_arena_new()};
    if (layout == SHUFFLED)
        shuffled_group(f, n);
    else
        dl_group_init_plain(&f->group, n, per_node[layout], f->arena);
    f->c = (struct dl_collective){
        .op = algorithm->op, .algorithm = algorithm, .group = &f->group, .bytes = bytes, .chunks = 1};
    struct dl_error err = {0};
    if (!algorithm->prepare || algorithm->prepare(&f->c, f->arena, &err) == DL_OK) return true;
    ck_assert_int_eq(err.status, DL_IMPOSSIBLE);
    ck_assert(err.text[0]);
    return false;
}

static void tear_down(struct fixture *f) { dl_arena_free(f->arena); }

typedef void (*check_fn)(const struct dl_collective *c);

/* Run a check over the sizes and layouts; some group of each size must be accepted. Where switches make the sums there
 * are no programs to check. */
static void for_all_groups(const struct dl_algorithm *algorithm, check_fn check)
{
    ck_assert(!algorithm->next == (algorithm->fold == DL_FOLD_SWITCH));
    if (!algorithm->next) return;
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        uint32_t n_accepted = 0;
        for (int layout = 0; layout < N_LAYOUTS; layout++) {
            struct fixture f;
            if (set_up(&f, algorithm, sizes[i], (enum layout)layout)) {
                check(&f.c);
                n_accepted++;
            }
            tear_down(&f);
        }
        ck_assert_uint_gt(n_accepted, 0);
    }
}

/* What ranks begin with and must end with. Parts are numbered as the algorithm says. */
struct contract {
    const struct dl_collective *c;
    uint32_t n, n_blocks;
    uint32_t part[most_members], owner[most_members]; /* rank -> part -> rank */
    struct set everybody;
};

static void read_contract(struct contract *k, const struct dl_collective *c)
{
    *k = (struct contract){.c = c, .n = c->group->n, .n_blocks = c->algorithm->blocks(c)};
    for (uint32_t rank = 0; rank < k->n; rank++) k->owner[rank] = DL_NOBODY;
    for (uint32_t rank = 0; rank < k->n; rank++) {
        const uint32_t part = c->algorithm->part ? c->algorithm->part(c, rank) : rank;
        ck_assert_uint_lt(part, k->n);
        ck_assert_uint_eq(k->owner[part], DL_NOBODY);
        k->part[rank] = part;
        k->owner[part] = rank;
        set_add(&k->everybody, rank);
    }
}

/* The rank whose part a block belongs to; for all-to-all, the source of the block. */
static uint32_t owner_of(const struct contract *k, uint32_t block)
{
    REQUIRE(k->n_blocks % k->n == 0, "%u ranks cannot share %u blocks", k->n, k->n_blocks);
    return k->owner[block / (k->n_blocks / k->n)];
}

static bool begins_with(const struct contract *k, uint32_t rank, uint32_t block)
{
    switch (k->c->op) {
    case DL_ALLGATHER:
    case DL_GATHER:
    case DL_ALLTOALL: return owner_of(k, block) == rank;
    case DL_BROADCAST:
    case DL_SCATTER:
    case DL_SENDRECV: return rank == 0;
    default: return rank < k->n;
    }
}

/* Whether it matters what a rank has of a block in the end. */
static bool must_have(const struct contract *k, uint32_t rank, uint32_t block)
{
    switch (k->c->op) {
    case DL_REDUCE:
    case DL_GATHER: return rank == 0;
    case DL_REDUCESCATTER:
    case DL_SCATTER: return owner_of(k, block) == rank;
    case DL_ALLTOALL: return block % k->n == k->part[rank];
    case DL_SENDRECV: return rank == k->n - 1;
    default: return true;
    }
}

static struct set wanted(const struct contract *k, uint32_t block)
{
    struct set one = {{0}};
    switch (k->c->op) {
    case DL_ALLGATHER:
    case DL_GATHER:
    case DL_ALLTOALL: set_add(&one, owner_of(k, block)); return one;
    case DL_BROADCAST:
    case DL_SCATTER:
    case DL_SENDRECV: set_add(&one, 0); return one;
    default: return k->everybody;
    }
}

static void give_contributions(const struct contract *k, struct replay *r)
{
    for (uint32_t rank = 0; rank < k->n; rank++)
        for (uint32_t block = 0; block < k->n_blocks; block++)
            if (begins_with(k, rank, block)) set_add(replay_set(r, rank, block), rank);
}

static void check_results(const struct contract *k, const struct replay *r)
{
    for (uint32_t block = 0; block < k->n_blocks; block++) {
        const struct set right = wanted(k, block);
        for (uint32_t rank = 0; rank < k->n; rank++)
            REQUIRE(!must_have(k, rank, block) || !memcmp(replay_set(r, rank, block), &right, sizeof right),
                    "rank %u of %u ends with something else in block %u", rank, k->n, block);
    }
}

struct traffic {
    double bytes;
    double lane_blocks; /* of the last lane */
    uint64_t n_messages;
    uint32_t depth;
};

static struct traffic replay_lane(const struct contract *k, uint32_t lane, enum schedule schedule)
{
    struct replay r;
    replay_init(&r, k->c, lane, schedule);
    give_contributions(k, &r);
    replay_run(&r);
    check_results(k, &r);
    const struct traffic t = {.bytes = r.blocks_sent * dl_collective_block_bytes(k->c, lane),
                              .lane_blocks = r.blocks_sent,
                              .n_messages = r.n_messages,
                              .depth = r.depth};
    replay_release(&r);
    return t;
}

static struct traffic replay_all(const struct dl_collective *c, enum schedule schedule)
{
    struct contract k;
    struct traffic all = {0};
    read_contract(&k, c);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        const struct traffic t = replay_lane(&k, lane, schedule);
        all.bytes += t.bytes;
        all.n_messages += t.n_messages;
        if (t.depth > all.depth) all.depth = t.depth;
    }
    return all;
}

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
    {DL_ALLREDUCE, "parameter_server", to_server_and_back},
    {DL_ALLREDUCE, "parameter_server_serial", to_server_and_back},
    {DL_ALLGATHER, "ring", others},
    {DL_ALLGATHER, "rings", others},
    {DL_ALLGATHER, "recursive", others},
    {DL_ALLGATHER, "direct", others},
    {DL_ALLGATHER, "hierarchical", hierarchical_parts},
    {DL_REDUCESCATTER, "ring", others},
    {DL_REDUCESCATTER, "rings", others},
    {DL_REDUCESCATTER, "recursive", others},
    {DL_REDUCESCATTER, "direct", others},
    {DL_REDUCESCATTER, "hierarchical", hierarchical_parts},
    {DL_ALLTOALL, "direct", others},
    {DL_ALLTOALL, "pairwise", others},
    {DL_ALLTOALL, "hierarchical", alltoall_twice},
    {DL_BROADCAST, "binomial", others},
    {DL_BROADCAST, "chain", others},
    {DL_BROADCAST, "scatter_allgather", scatter_and_gather},
    {DL_REDUCE, "binomial", others},
    {DL_REDUCE, "chain", others},
    {DL_GATHER, "binomial", binomial_parts},
    {DL_GATHER, "direct", part_of_others},
    {DL_SCATTER, "binomial", binomial_parts},
    {DL_SCATTER, "direct", part_of_others},
    {DL_BARRIER, "dissemination", nothing},
    {DL_SENDRECV, "direct", one_buffer},
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
        for (uint32_t rank = 0; rank < c->group->n + c->algorithm->extra_ranks; rank++) {
            const uint32_t peer = c->algorithm->peer(c, lane, k, rank);
            if (peer == DL_NOBODY) continue;
            REQUIRE(peer != rank && peer < c->group->n + c->algorithm->extra_ranks, "rank %u sends to %u", rank, peer);
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
    read_contract(&k, c);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
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
        if (!c->algorithm->is_ring || !c->algorithm->is_ring(c, lane)) continue;
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

/* --- single algorithms --- */

static const struct dl_algorithm *find(enum dl_op op, const char *name)
{
    const struct dl_algorithm *found = NULL;
    struct dl_error err = {0};
    ck_assert_int_eq(dl_algorithm_find(op, name, &found, &err), DL_OK);
    return found;
}

static uint32_t depth_of(enum dl_op op, const char *name, uint32_t n)
{
    struct fixture f;
    ck_assert(set_up(&f, find(op, name), n, ONE_A_NODE));
    const uint32_t depth = replay_all(&f.c, IN_ORDER).depth;
    tear_down(&f);
    return depth;
}

/* The factor of alpha in the textbook costs: messages that must wait for each other. */
START_TEST(latency_terms_match_closed_forms)
{
    for (uint32_t log = 1; log <= 6; log++) {
        const uint32_t n = 1u << log;
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "parameter_server_serial", n), 2 * n);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "parameter_server", n), 2);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "tree", n), 2 * log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "recursive_doubling", n), log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "rabenseifner", n), 2 * log);
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "ring", n), 2 * (n - 1));
        ck_assert_uint_eq(depth_of(DL_ALLREDUCE, "direct", n), 2);
        ck_assert_uint_eq(depth_of(DL_ALLGATHER, "recursive", n), log);
        ck_assert_uint_eq(depth_of(DL_ALLGATHER, "recursive", n - 1), n > 2 ? log : 0);
        ck_assert_uint_eq(depth_of(DL_REDUCESCATTER, "recursive", n - 1), n > 2 ? log : 0);
        ck_assert_uint_eq(depth_of(DL_ALLTOALL, "direct", n), 1);
        ck_assert_uint_eq(depth_of(DL_ALLTOALL, "pairwise", n), n - 1);
        ck_assert_uint_eq(depth_of(DL_BARRIER, "dissemination", n), log);
        ck_assert_uint_eq(depth_of(DL_BROADCAST, "chain", n), n - 1);
    }
}
END_TEST

static void check_fast_ring(const struct dl_collective *c)
{
    for (uint32_t rank = 0; rank < c->group->n; rank++) {
        struct dl_action fast = {0}, plain = {0};
        uint32_t step = 0;
        for (; c->algorithm->next(c, 0, rank, step, &fast); step++) {
            REQUIRE(dl_phases_next(c, 0, rank, step, &plain), "the program ends at step %u", step);
            REQUIRE(fast.kind == plain.kind && fast.reduce == plain.reduce && fast.peer == plain.peer &&
                        fast.blocks.first == plain.blocks.first && fast.merged == plain.merged,
                    "rank %u does something else in step %u", rank, step);
        }
        ck_assert(!dl_phases_next(c, 0, rank, step, &plain));
    }
}

START_TEST(fast_ring_is_the_ring_of_the_phases)
{
    for_all_groups(find(DL_ALLREDUCE, "ring"), check_fast_ring);
    for_all_groups(find(DL_ALLGATHER, "ring"), check_fast_ring);
    for_all_groups(find(DL_REDUCESCATTER, "ring"), check_fast_ring);
}
END_TEST

static bool is_inside_tree(const struct dl_collective *c, uint32_t lane, uint32_t rank)
{
    struct dl_action a;
    for (uint32_t step = 0; c->algorithm->next(c, lane, rank, step, &a); step++)
        if (a.kind == DL_RECV && a.reduce) return true;
    return false;
}

static void check_double_tree(const struct dl_collective *c)
{
    for (uint32_t rank = 0; rank < c->group->n; rank++)
        ck_assert(!is_inside_tree(c, 0, rank) || !is_inside_tree(c, 1, rank));
    ck_assert_uint_le(replay_all(c, IN_ORDER).depth, 2 * (dl_ceil_log2(c->group->n) + 1));
}

START_TEST(no_rank_is_inside_both_trees)
{
    for_all_groups(find(DL_ALLREDUCE, "double_binary_tree"), check_double_tree);
}
END_TEST

static const int64_t machine_sizes[] = {4, 3, 2};

static size_t machine_dimensions(const struct dl_network *net, const int64_t **dimensions)
{
    (void)net;
    *dimensions = machine_sizes;
    return DL_COUNT(machine_sizes);
}

/* Blocks that every rank sends over each of its six links. */
static void add_link_loads(const struct dl_collective *c, uint32_t rank, double loads[24])
{
    struct dl_action a;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        for (uint32_t step = 0; c->algorithm->next(c, lane, rank, step, &a); step++)
            if (a.kind == DL_SEND) loads[a.peer] += a.blocks.count;
}

START_TEST(torus_follows_the_machine_and_uses_all_links)
{
    enum { n = 24 };
    const struct dl_network_kind kind = {.dimensions = machine_dimensions};
    struct fixture f;
    set_up(&f, find(DL_ALLREDUCE, "torus"), n, ONE_A_NODE);
    f.machine = (struct dl_topology){.network.kind = &kind, .n_devices = n};
    f.group.topology = &f.machine;
    struct dl_error err = {0};
    ck_assert_int_eq(f.c.algorithm->prepare(&f.c, f.arena, &err), DL_OK);
    ck_assert_uint_eq(dl_collective_lanes(&f.c), 2 * DL_COUNT(machine_sizes));
    replay_all(&f.c, IN_ORDER);
    double loads[n] = {0};
    add_link_loads(&f.c, 0, loads);
    /* Neighbours of (0, 0, 0): +-1 in each dimension; in the last, of size 2, both ways lead to one rank. */
    static const uint32_t neighbours[] = {1, 3, 4, 8, 12};
    double all = 0, near = 0;
    for (uint32_t rank = 0; rank < n; rank++) all += loads[rank];
    for (size_t i = 0; i < DL_COUNT(neighbours); i++) {
        ck_assert_double_gt(loads[neighbours[i]], 0);
        near += loads[neighbours[i]];
    }
    ck_assert_double_eq(near, all);
    ck_assert_double_eq(loads[1], loads[3]);
    ck_assert_double_eq(loads[4], loads[8]);
    tear_down(&f);
}
END_TEST

START_TEST(hierarchical_alltoall_refuses_uneven_nodes)
{
    struct fixture f;
    ck_assert(!set_up(&f, find(DL_ALLTOALL, "hierarchical"), 9, FOUR_A_NODE));
    tear_down(&f);
}
END_TEST

START_TEST(unknown_algorithm_is_told_what_there_is)
{
    const struct dl_algorithm *found = NULL;
    struct dl_error err = {0};
    ck_assert_int_eq(dl_algorithm_find(DL_REDUCE, "ring", &found, &err), DL_NOT_FOUND);
    ck_assert_str_eq(err.text, "--algo: reduce has no algorithm 'ring'; it has binomial, chain");
}
END_TEST

/* --- groups and figures --- */

START_TEST(groups_number_nodes_by_first_rank)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_topology machine = {.node.n_devices = 2, .n_nodes = 4, .n_devices = 8};
    const uint32_t device[] = {6, 0, 7, 3, 1};
    struct dl_group g;
    dl_group_init(&g, &machine, device, DL_COUNT(device), arena);
    static const uint32_t node[] = {0, 1, 0, 2, 1}, slot[] = {0, 0, 1, 0, 1}, by_node[] = {0, 2, 1, 4, 3};
    ck_assert_uint_eq(g.n_nodes, 3);
    ck_assert(!g.even);
    ck_assert_mem_eq(g.node, node, sizeof node);
    ck_assert_mem_eq(g.slot, slot, sizeof slot);
    ck_assert_mem_eq(g.node_ranks, by_node, sizeof by_node);
    dl_arena_free(arena);
}
END_TEST

START_TEST(bus_bandwidth_follows_nccl_tests)
{
    const double time_s = 0.5;
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLREDUCE, 4, bytes, time_s), bytes / time_s * 2 * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLGATHER, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_REDUCESCATTER, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_ALLTOALL, 4, bytes, time_s), bytes / time_s * 3 / 4);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_BROADCAST, 4, bytes, time_s), bytes / time_s);
    ck_assert_double_eq(dl_bus_bytes_per_s(DL_BARRIER, 4, 0, 0), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("collectives");
    TCase *const battery = tcase_create("battery"), *const single = tcase_create("single");
    const int n = (int)dl_algorithm_count();
    tcase_set_timeout(battery, 60);
    tcase_add_loop_test(battery, every_rank_ends_with_exactly_what_it_must, 0, n);
    tcase_add_loop_test(battery, bytes_sent_are_as_in_theory, 0, n);
    tcase_add_loop_test(battery, rounds_send_what_the_programs_send, 0, n);
    tcase_add_loop_test(battery, rings_have_one_peer, 0, n);
    tcase_add_test(single, latency_terms_match_closed_forms);
    tcase_add_test(single, fast_ring_is_the_ring_of_the_phases);
    tcase_add_test(single, no_rank_is_inside_both_trees);
    tcase_add_test(single, torus_follows_the_machine_and_uses_all_links);
    tcase_add_test(single, hierarchical_alltoall_refuses_uneven_nodes);
    tcase_add_test(single, unknown_algorithm_is_told_what_there_is);
    tcase_add_test(single, groups_number_nodes_by_first_rank);
    tcase_add_test(single, bus_bandwidth_follows_nccl_tests);
    suite_add_tcase(suite, battery);
    suite_add_tcase(suite, single);
    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
