/* rings.c - several rings side by side, each with a part of the bytes, along the channels that the links allow. */
#include "sim/collective/algorithms.h"
#include "sim/collective/channels.h"
#include "sim/collective/phase.h"

static uint32_t neighbour(const struct dl_channels *channels, uint32_t lane, uint32_t rank, uint32_t distance)
{
    const uint32_t *const order = channels->order + (size_t)lane * channels->n;
    const uint32_t at = channels->position[(size_t)lane * channels->n + rank] + distance;
    return order[at < channels->n ? at : at - channels->n];
}

/* As in ring.c, by position on the ring; a block has the number of the rank whose part it is. */
static bool next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    const uint32_t n = c->group->n, round = step / 2, is_recv = step & 1;
    const bool begins_reducing = c->op != DL_ALLGATHER;
    if (round >= (c->op == DL_ALLREDUCE ? 2 : 1) * (n - 1)) return false;
    const uint32_t back = (begins_reducing + is_recv + round) % n;
    out->kind = is_recv ? DL_RECV : DL_SEND;
    out->posted = 0;
    out->reduce = begins_reducing && round < n - 1;
    out->peer = neighbour(c->plan, lane, rank, is_recv ? n - 1 : 1);
    out->blocks = (struct dl_blocks){neighbour(c->plan, lane, rank, back ? n - back : 0), 1, 1};
    out->merged = !begins_reducing ? 1 : out->reduce ? round + 1 : n;
    out->synchronous = false;
    return true;
}

static bool round_of(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const uint32_t n = c->group->n, n_rounds = c->op == DL_ALLREDUCE ? 2 : 1;
    if (n == 1 || k >= n_rounds) return false;
    const bool reduce = c->op != DL_ALLGATHER && k == 0;
    const uint32_t middle = n / 2 ? n / 2 : 1;
    *out = (struct dl_round){.repeat = n - 1,
                             .blocks = 1,
                             .merged = reduce                  ? middle
                                       : c->op == DL_ALLGATHER ? 1
                                                               : n,
                             .reduce = reduce};
    return true;
}

static uint32_t peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)k;
    return neighbour(c->plan, lane, rank, 1);
}

#define RINGS(OP, DOC)                                                                                                 \
    {                                                                                                                  \
        .name = "rings", .doc = DOC, .op = OP, .prepare = dl_channels_prepare, .lanes = dl_channels_lanes,             \
        .blocks = dl_block_per_rank, .next = next, .round = round_of, .peer = peer, .fold = DL_FOLD_RING,              \
        .automatic = true,                                                                                             \
    }

const struct dl_algorithm dl_allreduce_rings = RINGS(DL_ALLREDUCE, "rings along all channels of the links, as NCCL's");
const struct dl_algorithm dl_allgather_rings = RINGS(DL_ALLGATHER, "rings along all channels of the links, as NCCL's");
const struct dl_algorithm dl_reducescatter_rings =
    RINGS(DL_REDUCESCATTER, "rings along all channels of the links, as NCCL's");
