/* alltoall_hierarchical.c - first inside the nodes, to the rank with the destination's slot, then between equal slots.
 *
 * Ranks are numbered slot + m * node here (m ranks in a node, N nodes), and blocks by these numbers. Inside a node
 * source s hands to slot j all that is for slot j anywhere: blocks s*n + j, stride m. Between nodes, slot j of node A
 * sends to slot j of node B what all of A have for it: blocks m*A*n + j + m*B, stride n. */
#include "sim/collective/algorithms.h"
#include "sim/collective/alltoall.h"

static uint32_t in_node(const struct dl_collective *c) { return c->group->n / c->group->n_nodes; }

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)arena;
    if (!c->group->even)
        return dl_fail(err, DL_IMPOSSIBLE, "--algo",
                       "hierarchical alltoall needs equally many ranks on every node; use direct or pairwise, or a "
                       "placement that fills all nodes alike");
    return dl_alltoall_check(c, err);
}

static uint32_t part(const struct dl_collective *c, uint32_t lane, uint32_t rank)
{
    (void)lane;
    return c->group->slot[rank] + in_node(c) * c->group->node[rank];
}

static struct dl_action message_in_node(const struct dl_collective *c, uint32_t node, uint32_t from, uint32_t to)
{
    const uint32_t m = in_node(c), source = from + m * node;
    return (struct dl_action){.blocks = {source * c->group->n + to, c->group->n_nodes, m}, .merged = 1};
}

static struct dl_action message_between(const struct dl_collective *c, uint32_t slot, uint32_t from, uint32_t to)
{
    const uint32_t m = in_node(c), n = c->group->n;
    return (struct dl_action){.blocks = {m * from * n + slot + m * to, m, n}, .merged = 1};
}

/* The step-th action of member `me` of `size`: all SENDs, the next member first, then all RECVs. */
struct turn {
    bool sends;
    uint32_t other, from, to;
};

static struct turn take_turn(uint32_t size, uint32_t me, uint32_t step)
{
    if (step < size - 1) {
        const uint32_t other = (me + 1 + step) % size;
        return (struct turn){true, other, me, other};
    }
    const uint32_t other = (me + 2 * size - 2 - step) % size;
    return (struct turn){false, other, other, me};
}

static bool next(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    (void)lane;
    const struct dl_group *const g = c->group;
    const uint32_t m = in_node(c), node = g->node[rank], slot = g->slot[rank], first_half = 2 * (m - 1);
    struct turn t;
    if (step < first_half) {
        t = take_turn(m, slot, step);
        *out = message_in_node(c, node, t.from, t.to);
        out->peer = g->node_ranks[node * m + t.other];
        out->posted = m - 1;
    } else if (step < first_half + 2 * (g->n_nodes - 1)) {
        t = take_turn(g->n_nodes, node, step - first_half);
        *out = message_between(c, slot, t.from, t.to);
        out->peer = g->node_ranks[t.other * m + slot];
        out->posted = g->n_nodes - 1;
    } else {
        return false;
    }
    out->kind = t.sends ? DL_SEND : DL_RECV;
    return true;
}

static bool round_of(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    const uint32_t m = in_node(c), n_nodes = c->group->n_nodes;
    *out = (struct dl_round){.repeat = 1, .blocks = k < m - 1 ? n_nodes : m, .merged = 1};
    out->together = k != 0 && k != m - 1; /* all but the first inside and the first between nodes */
    return k < m - 1 + n_nodes - 1;
}

static uint32_t peer(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    const uint32_t m = in_node(c);
    struct dl_action sent;
    next(c, lane, rank, k < m - 1 ? k : k + m - 1, &sent); /* over the RECVs inside the node */
    return sent.peer;
}

const struct dl_algorithm dl_alltoall_hierarchical = {
    .name = "hierarchical",
    .doc = "inside nodes to the destination's slot, then between equal slots of nodes",
    .op = DL_ALLTOALL,
    .prepare = prepare,
    .blocks = dl_alltoall_blocks,
    .part = part,
    .next = next,
    .round = round_of,
    .peer = peer,
    .queue = DL_QUEUE_POSTED,
    .automatic = true,
};
