/* root.c - straight between rank 0 and the others: gather, scatter, and one message to the last rank. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

/* Rank 0 has a message with each of the others, the others have one with it. */
static bool next_with_root(const struct dl_collective *c, uint32_t rank, uint32_t step, bool to_root,
                           struct dl_action *out)
{
    const uint32_t other = rank ? rank : step + 1;
    if (other >= c->group->n || (rank && step)) return false;
    *out = (struct dl_action){.kind = to_root == (rank == 0) ? DL_RECV : DL_SEND,
                              .peer = rank ? 0 : other,
                              .blocks = {other, 1, 1},
                              .merged = 1,
                              .posted = rank ? 1 : c->group->n - 1};
    return true;
}

static bool next_gather(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    (void)lane;
    return next_with_root(c, rank, step, true, out);
}

static bool next_scatter(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                         struct dl_action *out)
{
    (void)lane;
    return next_with_root(c, rank, step, false, out);
}

static bool next_sendrecv(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                          struct dl_action *out)
{
    (void)lane;
    const uint32_t last = c->group->n - 1;
    if (last == 0 || step || (rank != 0 && rank != last)) return false;
    *out =
        (struct dl_action){.kind = rank ? DL_RECV : DL_SEND, .peer = rank ? 0 : last, .blocks = {0, 1, 1}, .merged = 1};
    return true;
}

static const struct dl_round one_message = {.repeat = 1, .blocks = 1, .merged = 1};

static bool round_all_at_once(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = one_message;
    return k == 0 && c->group->n > 1;
}

static bool round_each(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = one_message;
    out->together = k > 0;
    return k + 1 < c->group->n;
}

static uint32_t peer_gather(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)c, (void)lane, (void)k;
    return rank ? 0 : DL_NOBODY;
}

static uint32_t peer_scatter(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)c, (void)lane;
    return rank ? DL_NOBODY : k + 1;
}

static uint32_t peer_sendrecv(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane, (void)k;
    return rank ? DL_NOBODY : c->group->n - 1;
}

const struct dl_algorithm dl_gather_direct = {
    .name = "direct",
    .doc = "each rank sends its part to rank 0",
    .op = DL_GATHER,
    .blocks = dl_block_per_rank,
    .next = next_gather,
    .round = round_all_at_once,
    .peer = peer_gather,
    .automatic = true,
};

const struct dl_algorithm dl_scatter_direct = {
    .name = "direct",
    .doc = "rank 0 sends each rank its part",
    .op = DL_SCATTER,
    .blocks = dl_block_per_rank,
    .next = next_scatter,
    .round = round_each,
    .peer = peer_scatter,
    .queue = DL_QUEUE_POSTED,
    .automatic = true,
};

const struct dl_algorithm dl_sendrecv_direct = {
    .name = "direct",
    .doc = "one message from rank 0 to the last rank",
    .op = DL_SENDRECV,
    .blocks = dl_one_block,
    .next = next_sendrecv,
    .round = round_all_at_once,
    .peer = peer_sendrecv,
    .automatic = true,
};
