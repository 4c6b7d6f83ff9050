/* chain.c - rank after rank in a line; with many chunks all links of the line are busy at once. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static struct dl_action whole(enum dl_action_kind kind, uint32_t peer)
{
    return (struct dl_action){.kind = kind, .peer = peer, .blocks = {0, 1, 1}, .merged = 1};
}

static bool next_broadcast(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                           struct dl_action *out)
{
    (void)lane;
    const bool has_before = rank > 0, has_after = rank + 1 < c->group->n;
    if (has_before && step == 0) {
        *out = whole(DL_RECV, rank - 1);
        return true;
    }
    *out = whole(DL_SEND, rank + 1);
    return has_after && step == has_before;
}

static bool next_reduce(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    (void)lane;
    const uint32_t n = c->group->n;
    const bool has_before = rank > 0, has_after = rank + 1 < n;
    const bool receives = has_after && step == 0;
    *out = receives ? whole(DL_RECV, rank + 1) : whole(DL_SEND, rank - 1);
    out->reduce = true;
    out->merged = receives ? n - rank - 1 : n - rank;
    return receives || (has_before && step == has_after);
}

static bool round_broadcast(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = 1};
    return k + 1 < c->group->n;
}

static uint32_t peer_broadcast(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)c, (void)lane;
    return rank == k ? k + 1 : DL_NOBODY;
}

static bool round_reduce(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = k + 1, .reduce = true};
    return k + 1 < c->group->n;
}

static uint32_t peer_reduce(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane;
    return rank == c->group->n - 1 - k ? rank - 1 : DL_NOBODY;
}

const struct dl_algorithm dl_broadcast_chain = {
    .name = "chain",
    .doc = "rank 0 to 1 to 2 ...; give it many chunks",
    .op = DL_BROADCAST,
    .blocks = dl_one_block,
    .next = next_broadcast,
    .round = round_broadcast,
    .peer = peer_broadcast,
    .fold = DL_FOLD_TREE,
    .family = DL_FAMILY_TREE,
    .automatic = true,
};

const struct dl_algorithm dl_reduce_chain = {
    .name = "chain",
    .doc = "the last rank to the one before it, which adds and passes on; give it many chunks",
    .op = DL_REDUCE,
    .blocks = dl_one_block,
    .next = next_reduce,
    .round = round_reduce,
    .peer = peer_reduce,
    .fold = DL_FOLD_TREE,
    .family = DL_FAMILY_TREE,
    .automatic = true,
};
