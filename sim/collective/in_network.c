/* in_network.c - all-reduce with sums made by switches: NVLink SHARP in a node, SHARP in a network.
 *
 * There are no messages from rank to rank: data goes up to a switch, is added there, and comes down once to everybody.
 * So the whole operation is one bundle over the links that it uses.
 *
 *   nvls       one node: every rank is responsible for one part of the data; the switch collects it (n bytes leave each
 *              port), the sum (n / R) comes to the rank, which stores it to all (n / R up, n down).
 *   nvls_tree  the same in each node, with a double binary tree between equal slots of the nodes for each part.
 *   sharp      rings in the nodes, the switches of the network between them: each NIC sends its part up and gets the
 * sum. */
#include <math.h>

#include "sim/collective/algorithms.h"
#include "sim/collective/fold.h"
#include "sim/collective/forest.h"
#include "sim/collective/phase.h"

struct bundle {
    const struct dl_collective *c;
    const struct dl_pace *pace;
    struct dl_tally *tally;
    struct dl_route route;
    struct dl_error *err;
    uint32_t slot;
    double edge_bytes; /* payload on one edge of a tree between nodes */
    double slowest_s;  /* of the edges between nodes */
};

static uint32_t ranks_per_node(const struct dl_collective *c) { return c->group->n / c->group->n_nodes; }

static uint32_t rank_at(const struct dl_collective *c, uint32_t node, uint32_t slot)
{
    return c->group->node_ranks[c->group->node_first[node] + slot];
}

static bool find_route(struct bundle *b, uint32_t from, uint32_t to)
{
    const struct dl_group *const g = b->c->group;
    return !dl_topology_route(g->topology, g->device[from], g->device[to], 0, NULL, &b->route, b->err);
}

static void book_route(struct bundle *b, uint32_t from, uint32_t to, double payload)
{
    if (!find_route(b, from, to)) return;
    for (size_t i = 0; i < b->route.n_hops; i++)
        dl_tally_add(b->tally, b->route.hops[i].link, payload * b->route.hops[i].weight / b->pace->bandwidth_fraction);
    b->slowest_s = fmax(b->slowest_s, dl_pace_latency_s(b->pace, &b->route, payload));
}

/* The links of a route that no other has used yet: where data meets on its way it is added and goes on as one. */
static void book_merged(struct bundle *b, uint32_t from, uint32_t to, double payload)
{
    const double wire = payload / b->pace->bandwidth_fraction;
    if (!find_route(b, from, to)) return;
    for (size_t i = 0; i < b->route.n_hops; i++) {
        const double missing = wire * b->route.hops[i].weight - dl_tally_at(b->tally, b->route.hops[i].link);
        dl_tally_add(b->tally, b->route.hops[i].link, missing);
    }
    b->slowest_s = fmax(b->slowest_s, dl_pace_latency_s(b->pace, &b->route, payload));
}

/* ---- inside the nodes ---- */

static void book_ports(struct bundle *b, double payload)
{
    const uint32_t n_slots = ranks_per_node(b->c);
    for (uint32_t node = 0; node < b->c->group->n_nodes; node++)
        for (uint32_t slot = 0; slot < n_slots; slot++)
            book_route(b, rank_at(b->c, node, slot), rank_at(b->c, node, (slot + 1) % n_slots), payload);
}

static double port_payload(const struct dl_collective *c) { return c->bytes * (1 + 1.0 / ranks_per_node(c)); }

/* ---- between them ---- */

static void book_edge(void *user, uint32_t node, uint32_t parent)
{
    struct bundle *const b = user;
    const uint32_t from = rank_at(b->c, node, b->slot), to = rank_at(b->c, parent, b->slot);
    book_route(b, from, to, b->edge_bytes);
    book_route(b, to, from, b->edge_bytes);
}

static void book_trees(struct bundle *b)
{
    const uint32_t n_halves = 2;
    b->edge_bytes = b->c->bytes / ranks_per_node(b->c) / n_halves;
    for (b->slot = 0; b->slot < ranks_per_node(b->c); b->slot++)
        for (uint32_t half = 0; half < n_halves; half++) dl_half_tree(b->c->group->n_nodes, half, book_edge, b);
}

static void book_network_sums(struct bundle *b)
{
    struct dl_tally *const nodes_part = b->tally;
    struct dl_tally network;
    dl_tally_init(&network, nodes_part->n_links);
    b->tally = &network;
    for (uint32_t slot = 0; slot < ranks_per_node(b->c); slot++)
        for (uint32_t node = 1; node < b->c->group->n_nodes; node++) {
            const double part = b->c->bytes / ranks_per_node(b->c);
            book_merged(b, rank_at(b->c, node, slot), rank_at(b->c, 0, slot), part);
            book_merged(b, rank_at(b->c, 0, slot), rank_at(b->c, node, slot), part);
        }
    for (size_t i = 0; i < network.n_touched; i++)
        dl_tally_add(nodes_part, network.touched[i].link, network.touched[i].weight);
    b->tally = nodes_part;
    dl_tally_release(&network);
}

/* ---- the three algorithms ---- */

static void fold_nvls(struct bundle *b, struct dl_fold *out)
{
    out->bytes = out->sent_bytes = port_payload(b->c);
    book_ports(b, out->bytes);
    out->latency_s = 2 * b->slowest_s; /* up and down */
}

static void fold_nvls_tree(struct bundle *b, struct dl_fold *out)
{
    fold_nvls(b, out);
    b->slowest_s = 0;
    book_trees(b);
    out->latency_s += 2 * log2(b->c->group->n_nodes) * b->slowest_s;
}

static void fold_sharp(struct bundle *b, struct dl_fold *out)
{
    const uint32_t n_slots = ranks_per_node(b->c);
    const double around = 2 * (n_slots - 1.0) / n_slots * b->c->bytes;
    out->bytes = b->c->bytes;
    out->sent_bytes = around + b->c->bytes / n_slots;
    if (n_slots > 1) {
        book_ports(b, around);
        out->latency_s = 2 * (n_slots - 1) * b->slowest_s;
        b->slowest_s = 0;
    }
    book_network_sums(b);
    out->latency_s += 2 * b->slowest_s;
}

struct kind {
    void (*fold)(struct bundle *b, struct dl_fold *out);
};

void dl_fold_switch(const struct dl_collective *c, const struct dl_pace *pace, struct dl_tally *tally,
                    struct dl_fold *out, struct dl_error *err)
{
    struct bundle b = {.c = c, .pace = pace, .tally = tally, .err = err};
    const struct kind *const kind = c->plan;
    kind->fold(&b, out);
    out->bytes /= pace->bandwidth_fraction;
    out->n_steps = 1;
    dl_route_release(&b.route);
}

static bool node_has_summing_switch(const struct dl_topology *t)
{
    for (size_t v = 0; t && v < t->node.n_vertices; v++)
        if (t->node.vertices[v].reduces) return true;
    return false;
}

static enum dl_status refuse(struct dl_error *err, const char *what)
{
    return dl_fail(err, DL_IMPOSSIBLE, "--algo", "%s", what);
}

/* Switches add values as they come, in pieces of their own. */
static enum dl_status check_data(const struct dl_collective *c, struct dl_error *err)
{
    const char *const name = c->algorithm->name;
    if (dl_payload_is_packed(&c->payload))
        return dl_fail(err, DL_IMPOSSIBLE, "--payload", "must be dense for %s: switches add nothing else", name);
    if (c->chunks > 1)
        return dl_fail(err, DL_IMPOSSIBLE, "--chunks", "must be 1 for %s, whose switches cut by themselves", name);
    return DL_OK;
}

static enum dl_status prepare_nvls(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    static const struct kind kind = {fold_nvls};
    (void)arena;
    if (!node_has_summing_switch(c->group->topology))
        return refuse(err, "nvls needs a switch in the node that reduces");
    if (c->group->n_nodes > 1) return refuse(err, "nvls is for one node; use nvls_tree on several");
    if (c->group->n < 2) return refuse(err, "nvls needs at least 2 ranks");
    c->plan = &kind;
    return check_data(c, err);
}

static enum dl_status prepare_nvls_tree(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    static const struct kind kind = {fold_nvls_tree};
    (void)arena;
    if (!node_has_summing_switch(c->group->topology))
        return refuse(err, "nvls_tree needs a switch in the node that reduces");
    if (c->group->n_nodes < 2 || !c->group->even || ranks_per_node(c) < 2)
        return refuse(err, "nvls_tree needs several nodes with equally many ranks, at least 2 on each");
    c->plan = &kind;
    return check_data(c, err);
}

static enum dl_status prepare_sharp(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    static const struct kind kind = {fold_sharp};
    (void)arena;
    if (!c->group->topology || !c->group->topology->network.reduces)
        return refuse(err, "sharp needs a network that reduces (\"reduces\": true)");
    if (c->group->n_nodes < 2 || !c->group->even)
        return refuse(err, "sharp needs several nodes with equally many ranks");
    c->plan = &kind;
    return check_data(c, err);
}

#define IN_NETWORK(NAME, DOC, PREPARE)                                                                                 \
    {                                                                                                                  \
        .name = NAME, .doc = DOC, .op = DL_ALLREDUCE, .prepare = PREPARE, .blocks = dl_one_block,                      \
        .fold = DL_FOLD_SWITCH, .family = DL_FAMILY_SWITCH, .automatic = true,                                         \
    }

const struct dl_algorithm dl_allreduce_nvls = IN_NETWORK("nvls", "sums made by the NVSwitch of the node", prepare_nvls);
const struct dl_algorithm dl_allreduce_nvls_tree =
    IN_NETWORK("nvls_tree", "sums made by the NVSwitches, double binary trees between nodes", prepare_nvls_tree);
const struct dl_algorithm dl_allreduce_sharp =
    IN_NETWORK("sharp", "rings in the nodes, sums between them made by the network's switches", prepare_sharp);
