/* parameter_server.c - the ranks are workers; ranks beside them, from number n on, are servers, which add up and send
 * back, each for a part of the data: a lane. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static uint32_t one_lane_per_server(const struct dl_collective *c) { return c->servers; }

static void make_action(const struct dl_collective *c, uint32_t server, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    const uint32_t n = c->group->n;
    const bool is_server = rank == server, up = step < (is_server ? n : 1);
    *out = (struct dl_action){.kind = up == is_server ? DL_RECV : DL_SEND,
                              .reduce = up,
                              .peer = is_server ? step % n : server,
                              .blocks = {0, 1, 1},
                              .merged = up ? 1 : n};
}

static bool next_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                            struct dl_action *out)
{
    const uint32_t n = c->group->n, server = n + lane;
    if (n == 1 || (rank >= n && rank != server) || step >= 2 * (rank == server ? n : 1)) return false;
    make_action(c, server, rank, step, out);
    return true;
}

/* Everything waits for the server to have finished with the worker before. */
static bool next_serial(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    if (!next_concurrent(c, lane, rank, step, out)) return false;
    out->synchronous = true;
    return true;
}

static bool round_serial(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const uint32_t n = c->group->n;
    if (n == 1 || k >= 2 * n) return false;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = k < n ? 1 : n, .reduce = k < n};
    return true;
}

static uint32_t peer_serial(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const uint32_t n = c->group->n;
    if (k < n) return rank == k ? n + lane : DL_NOBODY;
    return rank == n + lane ? k - n : DL_NOBODY;
}

/* One round up for all workers, then n rounds down: a rank sends only one message in a round. */
static bool round_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    if (!round_serial(c, lane, k ? k + c->group->n - 1 : 0, out)) return false;
    out->together = k > 1;
    out->fan_in = k ? 1 : c->group->n;
    return true;
}

static uint32_t peer_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const uint32_t n = c->group->n;
    if (k == 0) return rank < n ? n + lane : DL_NOBODY;
    return peer_serial(c, lane, k + n - 1, rank);
}

const struct dl_algorithm dl_allreduce_parameter_server = {
    .name = "parameter_server",
    .doc = "all workers send to the server at once, which adds and sends back to all",
    .op = DL_ALLREDUCE,
    .has_servers = true,
    .lanes = one_lane_per_server,
    .blocks = dl_one_block,
    .next = next_concurrent,
    .round = round_concurrent,
    .peer = peer_concurrent,
};

const struct dl_algorithm dl_allreduce_parameter_server_serial = {
    .name = "parameter_server_serial",
    .doc = "one server serves one worker after the other, first to add, then to send back",
    .op = DL_ALLREDUCE,
    .has_servers = true,
    .lanes = one_lane_per_server,
    .blocks = dl_one_block,
    .next = next_serial,
    .round = round_serial,
    .peer = peer_serial,
};
