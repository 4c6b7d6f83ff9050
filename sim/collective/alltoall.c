#include "sim/collective/alltoall.h"

#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

enum { most_ranks = 65535 }; /* whose square is still a uint32_t */

uint32_t dl_alltoall_blocks(const struct dl_collective *c) { return c->group->n * c->group->n; }

enum dl_status dl_alltoall_check(const struct dl_collective *c, struct dl_error *err)
{
    if (c->group->n <= most_ranks) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--devices", "alltoall can have at most %d ranks, got %u", most_ranks,
                   c->group->n);
}

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)arena;
    return dl_alltoall_check(c, err);
}

static uint32_t other_ranks(uint32_t size) { return size - 1; }

static struct dl_message message_to(uint32_t size, uint32_t member, uint32_t to)
{
    return (struct dl_message){.to = to, .parts = {member * size + to, 1, 1}};
}

static uint32_t behind(uint32_t size, uint32_t member, uint32_t round) { return (member + size - 1 - round) % size; }

static bool send_ahead(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    *out = message_to(size, member, (member + 1 + round) % size);
    return true;
}

/* ---- direct ---- */

/* In round k a rank sends to the slot k % size further on of the node k / size further on: so the ranks of a node never
 * send to the same one, and every NIC of the target is used. Where nodes differ in size, simply k ranks further on. */
static uint32_t partner(const struct dl_collective *c, uint32_t rank, uint32_t round, bool ahead)
{
    const struct dl_group *const g = c->group;
    const uint32_t distance = ahead ? round : g->n - round;
    if (!g->even) return (rank + distance) % g->n;
    const uint32_t size = g->n / g->n_nodes, nodes = round / size, slots = round % size;
    const uint32_t node = (g->node[rank] + (ahead ? nodes : g->n_nodes - nodes)) % g->n_nodes;
    const uint32_t slot = (g->slot[rank] + (ahead ? slots : size - slots)) % size;
    return g->node_ranks[g->node_first[node] + slot];
}

/* All SENDs, then all RECVs. */
static bool next_direct(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    (void)lane;
    const uint32_t n = c->group->n;
    if (step >= 2 * (n - 1)) return false;
    const bool sends = step < n - 1;
    const uint32_t other = partner(c, rank, 1 + step % (n - 1), sends);
    *out = (struct dl_action){.kind = sends ? DL_SEND : DL_RECV,
                              .peer = other,
                              .blocks = {sends ? rank * n + other : other * n + rank, 1, 1},
                              .merged = 1,
                              .posted = n - 1};
    return true;
}

static bool round_direct(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = 1, .together = k > 0};
    return k + 1 < c->group->n;
}

static uint32_t peer_direct(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane;
    return partner(c, rank, k + 1, true);
}

/* ---- pairwise ---- */

/* Powers of two pair up, so that both ways of a link are busy with one partner; others go round. */
static bool pairs_up(uint32_t size) { return (size & (size - 1)) == 0; }

static bool send_pairwise(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    if (!pairs_up(size)) return send_ahead(size, member, round, out);
    *out = message_to(size, member, member ^ (round + 1));
    return true;
}

static uint32_t source_pairwise(uint32_t size, uint32_t member, uint32_t round)
{
    return pairs_up(size) ? member ^ (round + 1) : behind(size, member, round);
}

static const struct dl_pattern pairwise = {
    .rhythm = DL_EVERY, .rounds = other_ranks, .send = send_pairwise, .source = source_pairwise};

static const struct dl_phase pairwise_phases[] = {{&pairwise, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_alltoall_direct = {
    .name = "direct",
    .doc = "all messages at once; each rank begins with its neighbour",
    .op = DL_ALLTOALL,
    .prepare = prepare,
    .blocks = dl_alltoall_blocks,
    .next = next_direct,
    .round = round_direct,
    .peer = peer_direct,
    .queue = DL_QUEUE_POSTED,
    .fold = DL_FOLD_SOURCES,
    .automatic = true,
};

const struct dl_algorithm dl_alltoall_pairwise = {
    .name = "pairwise",
    .doc = "one partner after the other, each exchange waits for the one before",
    .op = DL_ALLTOALL,
    .prepare = prepare,
    .blocks = dl_alltoall_blocks,
    .phases = pairwise_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
