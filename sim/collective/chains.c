/* chains.c - from rank 0 along every channel at once, each with a part of the bytes: NCCL's broadcast and, the other
 * way round, its reduce. */
#include "sim/collective/algorithms.h"
#include "sim/collective/channels.h"
#include "sim/collective/phase.h"

/* How many ranks come before it on the way from rank 0, and which rank is so many further. */
static uint32_t place_of(const struct dl_channels *channels, uint32_t lane, uint32_t rank)
{
    const uint32_t *const position = channels->position + (size_t)lane * channels->n;
    return (position[rank] + channels->n - position[0]) % channels->n;
}

static uint32_t rank_at(const struct dl_channels *channels, uint32_t lane, uint32_t place)
{
    const size_t first = (size_t)lane * channels->n;
    return channels->order[first + (channels->position[first] + place) % channels->n];
}

/* A broadcast comes from the one before and goes to the one behind; a reduce the other way round. */
static bool next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    const uint32_t n = c->group->n, place = place_of(c->plan, lane, rank);
    const bool reduce = c->op == DL_REDUCE;
    const bool receives = reduce ? place + 1 < n : place > 0, sends = reduce ? place > 0 : place + 1 < n;
    if (step >= (uint32_t)receives + sends) return false;
    const bool is_recv = receives && step == 0;
    const uint32_t other = is_recv == reduce ? place + 1 : place - 1;
    const uint32_t sender = is_recv ? other : place;
    *out = (struct dl_action){.kind = is_recv ? DL_RECV : DL_SEND,
                              .reduce = reduce,
                              .peer = rank_at(c->plan, lane, other),
                              .blocks = {0, 1, 1},
                              .merged = reduce ? n - sender : 1};
    return true;
}

static bool round_of(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    if (k + 1 >= c->group->n) return false;
    const bool reduce = c->op == DL_REDUCE;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = reduce ? k + 1 : 1, .reduce = reduce};
    return true;
}

static uint32_t peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const uint32_t n = c->group->n, place = place_of(c->plan, lane, rank);
    if (c->op == DL_REDUCE) return place == n - 1 - k ? rank_at(c->plan, lane, place - 1) : DL_NOBODY;
    return place == k ? rank_at(c->plan, lane, place + 1) : DL_NOBODY;
}

#define CHAINS(OP, DOC)                                                                                                \
    {                                                                                                                  \
        .name = "chains", .doc = DOC, .op = OP, .prepare = dl_channels_prepare, .lanes = dl_channels_lanes,            \
        .blocks = dl_one_block, .next = next, .round = round_of, .peer = peer, .fold = DL_FOLD_TREE,                   \
        .automatic = true,                                                                                             \
    }

const struct dl_algorithm dl_broadcast_chains =
    CHAINS(DL_BROADCAST, "chains along all channels of the links, as NCCL's");
const struct dl_algorithm dl_reduce_chains = CHAINS(DL_REDUCE, "chains along all channels of the links, as NCCL's");
