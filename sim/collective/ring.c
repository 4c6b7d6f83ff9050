/* ring.c - pieces go round: each rank only ever sends to the next one.
 *
 * Reduce-scatter: in round k member i sends part i-1-k, so that part i ends, complete, at member i. All-gather: in
 * round k it sends part i-k. One after the other they are the all-reduce of Patarasuk and Yuan (JPDC 2009). */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static uint32_t before(uint32_t size, uint32_t member, uint32_t distance)
{
    return member >= distance ? member - distance : member + size - distance;
}

static uint32_t ring_rounds(uint32_t size) { return size - 1; }

static uint32_t ring_source(uint32_t size, uint32_t member, uint32_t round)
{
    (void)round;
    return before(size, member, 1);
}

static uint32_t ring_next(uint32_t size, uint32_t member) { return member + 1 < size ? member + 1 : 0; }

static bool send_reduce_scatter(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    *out = (struct dl_message){.to = ring_next(size, member),
                               .parts = {before(size, member, round + 1), 1, 1},
                               .first = before(size, member, round),
                               .merged = round + 1};
    return true;
}

static bool send_allgather(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    *out = (struct dl_message){.to = ring_next(size, member), .parts = {before(size, member, round), 1, 1}};
    return true;
}

const struct dl_pattern dl_ring_reduce_scatter = {
    .rhythm = DL_EVERY,
    .steady = true,
    .reduce = true,
    .rounds = ring_rounds,
    .send = send_reduce_scatter,
    .source = ring_source,
};

const struct dl_pattern dl_ring_allgather = {
    .rhythm = DL_EVERY,
    .steady = true,
    .rounds = ring_rounds,
    .send = send_allgather,
    .source = ring_source,
};

/* The same as the phases say, in few instructions: rings have the most messages of all. `shift` is 1 where the program
 * begins with a reduce-scatter; then the all-gather that may follow goes on with the same formula. */
static inline bool fast_next(const struct dl_collective *c, uint32_t rank, uint32_t step, uint32_t rounds,
                             uint32_t shift, struct dl_action *out)
{
    const uint32_t n = c->group->n, round = step / 2, is_recv = step & 1;
    if (round >= rounds) return false;
    uint32_t block = rank + 2 * n - shift - is_recv - round; /* round is at most 2n - 3 */
    if (block >= 2 * n) block -= n;
    if (block >= n) block -= n;
    out->kind = is_recv ? DL_RECV : DL_SEND;
    out->posted = 0;
    out->reduce = shift && round < n - 1;
    out->peer = is_recv ? before(n, rank, 1) : ring_next(n, rank);
    out->blocks = (struct dl_blocks){block, 1, 1};
    out->merged = !shift ? 1 : out->reduce ? round + 1 : n;
    out->synchronous = false;
    return true;
}

static bool next_allreduce(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                           struct dl_action *out)
{
    (void)lane;
    return fast_next(c, rank, step, 2 * (c->group->n - 1), 1, out);
}

static bool next_reduce_scatter(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                                struct dl_action *out)
{
    (void)lane;
    return fast_next(c, rank, step, c->group->n - 1, 1, out);
}

static bool next_allgather(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                           struct dl_action *out)
{
    (void)lane;
    return fast_next(c, rank, step, c->group->n - 1, 0, out);
}

static const struct dl_phase reduce_scatter_phases[] = {{&dl_ring_reduce_scatter, DL_ALL_RANKS}, {0}};
static const struct dl_phase allgather_phases[] = {{&dl_ring_allgather, DL_ALL_RANKS}, {0}};
static const struct dl_phase allreduce_phases[] = {
    {&dl_ring_reduce_scatter, DL_ALL_RANKS}, {&dl_ring_allgather, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_allreduce_ring = {
    .name = "ring",
    .doc = "ring reduce-scatter, then ring all-gather",
    .op = DL_ALLREDUCE,
    .blocks = dl_block_per_rank,
    .next = next_allreduce,
    .phases = allreduce_phases,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .fold = DL_FOLD_RING,
    .automatic = true,
};

const struct dl_algorithm dl_reducescatter_ring = {
    .name = "ring",
    .doc = "partial sums go round; part i is complete when it comes to rank i",
    .op = DL_REDUCESCATTER,
    .blocks = dl_block_per_rank,
    .next = next_reduce_scatter,
    .phases = reduce_scatter_phases,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .fold = DL_FOLD_RING,
    .automatic = true,
};

const struct dl_algorithm dl_allgather_ring = {
    .name = "ring",
    .doc = "parts go round",
    .op = DL_ALLGATHER,
    .blocks = dl_block_per_rank,
    .next = next_allgather,
    .phases = allgather_phases,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .fold = DL_FOLD_RING,
    .automatic = true,
};
