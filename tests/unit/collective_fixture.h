/* collective_fixture.h - groups of many sizes and layouts, and what ranks begin with and must end with. */
#ifndef DL_TESTS_COLLECTIVE_FIXTURE_H
#define DL_TESTS_COLLECTIVE_FIXTURE_H

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

static inline void shuffle(uint32_t *items, uint32_t n)
{
    gsl_rng *const random = dl_random_new(1, "shuffle", n);
    for (uint32_t i = n; i-- > 1;) {
        const uint32_t j = (uint32_t)gsl_rng_uniform_int(random, i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
    gsl_rng_free(random);
}

static inline void shuffled_group(struct fixture *f, uint32_t n)
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
static inline bool set_up(struct fixture *f, const struct dl_algorithm *algorithm, uint32_t n, enum layout layout)
{
    static const uint32_t per_node[] = {1, 4, 8};
    *f = (struct fixture){.arena = dl_arena_new()};
    if (layout == SHUFFLED)
        shuffled_group(f, n);
    else
        dl_group_init_plain(&f->group, n, per_node[layout], f->arena);
    f->c = (struct dl_collective){.op = algorithm->op,
                                  .algorithm = algorithm,
                                  .group = &f->group,
                                  .bytes = bytes,
                                  .back_fraction = algorithm->op == DL_HALO ? 0.25 : 0,
                                  .chunks = 1,
                                  .servers = 1 + n % 3};
    struct dl_error err = {0};
    if (!algorithm->prepare || algorithm->prepare(&f->c, f->arena, &err) == DL_OK) return true;
    ck_assert_int_eq(err.status, DL_IMPOSSIBLE);
    ck_assert(err.text[0]);
    return false;
}

static inline void tear_down(struct fixture *f) { dl_arena_free(f->arena); }

typedef void (*check_fn)(const struct dl_collective *c);

/* Run a check over the sizes and layouts; some group of each size must be accepted. Where switches make the sums there
 * are no programs to check. */
static inline void for_all_groups(const struct dl_algorithm *algorithm, check_fn check)
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
    uint32_t n, n_blocks, lane;
    uint32_t part[most_members], owner[most_members]; /* rank -> part -> rank */
    struct set everybody;
};

static inline void read_contract(struct contract *k, const struct dl_collective *c, uint32_t lane)
{
    *k = (struct contract){.c = c, .n = c->group->n, .n_blocks = c->algorithm->blocks(c), .lane = lane};
    for (uint32_t rank = 0; rank < k->n; rank++) k->owner[rank] = DL_NOBODY;
    for (uint32_t rank = 0; rank < k->n; rank++) {
        const uint32_t part = c->algorithm->part ? c->algorithm->part(c, lane, rank) : rank;
        ck_assert_uint_lt(part, k->n);
        ck_assert_uint_eq(k->owner[part], DL_NOBODY);
        k->part[rank] = part;
        k->owner[part] = rank;
        set_add(&k->everybody, rank);
    }
}

/* The rank whose part a block belongs to; for all-to-all, the source of the block. */
static inline uint32_t owner_of(const struct contract *k, uint32_t block)
{
    REQUIRE(k->n_blocks % k->n == 0, "%u ranks cannot share %u blocks", k->n, k->n_blocks);
    return k->owner[block / (k->n_blocks / k->n)];
}

static inline bool begins_with(const struct contract *k, uint32_t rank, uint32_t block)
{
    switch (k->c->op) {
    case DL_ALLGATHER:
    case DL_GATHER:
    case DL_SHIFT:
    case DL_HALO:
    case DL_ALLTOALL: return owner_of(k, block) == rank;
    case DL_BROADCAST:
    case DL_SCATTER:
    case DL_SENDRECV: return rank == 0;
    default: return rank < k->n;
    }
}

/* Whether it matters what a rank has of a block in the end. */
static inline bool must_have(const struct contract *k, uint32_t rank, uint32_t block)
{
    switch (k->c->op) {
    case DL_REDUCE:
    case DL_GATHER: return rank == 0;
    case DL_REDUCESCATTER:
    case DL_SCATTER: return owner_of(k, block) == rank;
    case DL_ALLTOALL: return block % k->n == k->part[rank];
    case DL_SENDRECV: return rank == k->n - 1;
    case DL_SHIFT: return block == (rank + k->n - 1) % k->n;
    case DL_HALO: return k->lane ? block == rank + 1 : block + 1 == rank;
    default: return true;
    }
}

static inline struct set wanted(const struct contract *k, uint32_t block)
{
    struct set one = {{0}};
    switch (k->c->op) {
    case DL_ALLGATHER:
    case DL_GATHER:
    case DL_SHIFT:
    case DL_HALO:
    case DL_ALLTOALL: set_add(&one, owner_of(k, block)); return one;
    case DL_BROADCAST:
    case DL_SCATTER:
    case DL_SENDRECV: set_add(&one, 0); return one;
    default: return k->everybody;
    }
}

static inline void give_contributions(const struct contract *k, struct replay *r)
{
    for (uint32_t rank = 0; rank < k->n; rank++)
        for (uint32_t block = 0; block < k->n_blocks; block++)
            if (begins_with(k, rank, block)) set_add(replay_set(r, rank, block), rank);
}

static inline void check_results(const struct contract *k, const struct replay *r)
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

static inline struct traffic replay_lane(const struct contract *k, uint32_t lane, enum schedule schedule)
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

static inline struct traffic replay_all(const struct dl_collective *c, enum schedule schedule)
{
    struct contract k;
    struct traffic all = {0};
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        read_contract(&k, c, lane);
        const struct traffic t = replay_lane(&k, lane, schedule);
        all.bytes += t.bytes;
        all.n_messages += t.n_messages;
        if (t.depth > all.depth) all.depth = t.depth;
    }
    return all;
}

#endif
