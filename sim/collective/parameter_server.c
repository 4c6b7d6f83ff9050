/* parameter_server.c - the ranks are workers; ranks beside them, from number n on, are servers, which add up and send
 * back, each for a part of the data. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static uint32_t block_per_server(const struct dl_collective *c) { return c->servers; }

/* ---- all at once, each beginning with another so that the load is spread ---- */

static bool next_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                            struct dl_action *out)
{
    (void)lane;
    const uint32_t n = c->group->n;
    const bool is_server = rank >= n;
    const uint32_t others = is_server ? n : c->servers;
    if (n == 1 || step >= 2 * others) return false;
    const bool up = step < others;
    const uint32_t other = ((is_server ? rank - n : rank) + step) % others;
    *out = (struct dl_action){.kind = up == is_server ? DL_RECV : DL_SEND,
                              .reduce = up,
                              .peer = is_server ? other : n + other,
                              .blocks = {is_server ? rank - n : other, 1, 1},
                              .merged = up ? 1 : n,
                              .posted = others};
    return true;
}

/* A rank sends only one message in a round: as many rounds up as there are servers, then down as there are workers. */
static bool round_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const uint32_t n = c->group->n, s = c->servers;
    const bool up = k < s;
    if (n == 1 || k >= s + n) return false;
    *out = (struct dl_round){.repeat = 1,
                             .blocks = 1,
                             .merged = up ? 1 : n,
                             .reduce = up,
                             .together = k != 0 && k != s,
                             .fan_in = up ? (n + s - 1) / s : (s + n - 1) / n};
    return true;
}

static uint32_t peer_concurrent(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane;
    const uint32_t n = c->group->n, s = c->servers;
    if (k < s) return rank < n ? n + (rank + k) % s : DL_NOBODY;
    return rank >= n ? (rank - n + k - s) % n : DL_NOBODY;
}

/* ---- one after the other, with the first server ---- */

/* Everything waits for the server to have finished with the worker before. */
static bool next_serial(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                        struct dl_action *out)
{
    (void)lane;
    const uint32_t n = c->group->n, server = n;
    const bool is_server = rank == server, up = step < (is_server ? n : 1);
    if (n == 1 || rank > server || step >= 2 * (is_server ? n : 1)) return false;
    *out = (struct dl_action){.kind = up == is_server ? DL_RECV : DL_SEND,
                              .reduce = up,
                              .peer = is_server ? step % n : server,
                              .blocks = {0, 1, 1},
                              .merged = up ? 1 : n,
                              .synchronous = true};
    return true;
}

static bool round_serial(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const uint32_t n = c->group->n;
    if (n == 1 || k >= 2 * n) return false;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = k < n ? 1 : n, .reduce = k < n, .synchronous = true};
    return true;
}

static uint32_t peer_serial(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane;
    const uint32_t n = c->group->n;
    if (k < n) return rank == k ? n : DL_NOBODY;
    return rank == n ? k - n : DL_NOBODY;
}

const struct dl_algorithm dl_allreduce_parameter_server = {
    .name = "parameter_server",
    .doc = "all workers send to the server at once, which adds and sends back to all",
    .op = DL_ALLREDUCE,
    .has_servers = true,
    .blocks = block_per_server,
    .next = next_concurrent,
    .round = round_concurrent,
    .peer = peer_concurrent,
    .queue = DL_QUEUE_POSTED,
};

const struct dl_algorithm dl_allreduce_parameter_server_serial = {
    .name = "parameter_server_serial",
    .doc = "one server serves one worker after the other, first to add, then to send back",
    .op = DL_ALLREDUCE,
    .has_servers = true,
    .blocks = dl_one_block,
    .next = next_serial,
    .round = round_serial,
    .peer = peer_serial,
};
