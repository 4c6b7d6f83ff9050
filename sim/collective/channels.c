#include "sim/collective/channels.h"

#include <string.h>

struct node_rings {
    const uint32_t *device; /* within the node, by slot */
    uint32_t n, n_rings;
    uint32_t *orders;
    struct visit *visits; /* by channel */
};

/* How a channel passes through a node: along one of its rings, cut open before the slot where it enters. */
struct visit {
    uint32_t ring, entry;
};

static uint32_t node_size(const struct dl_group *g, uint32_t node)
{
    return g->node_first[node + 1] - g->node_first[node];
}

static const uint32_t *devices_in_node(const struct dl_group *g, uint32_t node, struct dl_arena *arena)
{
    const uint32_t n = node_size(g, node);
    uint32_t *const device = dl_arena_alloc(arena, n * sizeof *device);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = g->device[g->node_ranks[g->node_first[node] + i]];
        device[i] = g->topology ? id % g->topology->node.n_devices : i;
    }
    return device;
}

static bool alike(const struct node_rings *a, const struct node_rings *b)
{
    return a->n == b->n && memcmp(a->device, b->device, a->n * sizeof *a->device) == 0;
}

/* Nodes that hold the same devices have the same rings: nearly all of them, so one search serves. */
static struct node_rings *rings_of_nodes(const struct dl_group *g, struct dl_arena *arena)
{
    static const struct dl_node nothing_known = {0};
    struct node_rings *const rings = dl_arena_alloc(arena, g->n_nodes * sizeof *rings);
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        struct node_rings *const r = &rings[node];
        *r = (struct node_rings){.device = devices_in_node(g, node, arena), .n = node_size(g, node)};
        if (node && alike(r, &rings[node - 1]))
            *r = rings[node - 1];
        else
            r->n_rings =
                dl_node_rings(g->topology ? &g->topology->node : &nothing_known, r->device, r->n, arena, &r->orders);
    }
    return rings;
}

/* Between nodes, as many for every slot, so that every NIC is used equally. */
static uint32_t count_channels(const struct dl_group *g, const struct node_rings *rings)
{
    uint32_t most = 1, largest = 1;
    const bool has_nics = !g->topology || g->topology->node.n_nics;
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        if (rings[node].n_rings > most) most = rings[node].n_rings;
        if (rings[node].n > largest) largest = rings[node].n;
    }
    return g->n_nodes > 1 && has_nics ? (most + largest - 1) / largest * largest : most;
}

/* ---- where channels enter and leave a node ---- */

static uint32_t place_on(const struct node_rings *r, uint32_t ring, uint32_t slot)
{
    uint32_t place = 0;
    while (r->orders[ring * r->n + place] != slot) place++;
    return place;
}

static uint32_t slot_before(const struct node_rings *r, uint32_t ring, uint32_t slot)
{
    return r->orders[ring * r->n + (place_on(r, ring, slot) + r->n - 1) % r->n];
}

/* Rings come in pairs, there (even) and back (odd). Channels come in pairs too: the second goes back round the ring of
 * the first, enters where that one leaves and leaves where it enters. So NICs send as much as they receive if the pairs
 * cover every slot once; a search finds such pairs, each on the next ring if it can be. */
static bool pair_up(const struct node_rings *r, uint32_t n_before, uint32_t n_paired, uint32_t taken)
{
    if (n_paired == r->n) return true;
    uint32_t slot = 0;
    while (taken & 1u << slot) slot++;
    for (uint32_t i = 0; i < r->n_rings; i++) {
        const uint32_t ring = (n_before + n_paired + i) % r->n_rings;
        const uint32_t other = slot_before(r, ring, slot), both = taken | 1u << slot | 1u << other;
        if (taken & 1u << other) continue;
        r->visits[n_before + n_paired] = (struct visit){.ring = ring, .entry = slot};
        r->visits[n_before + n_paired + 1] = (struct visit){.ring = ring ^ 1u, .entry = other};
        if (pair_up(r, n_before, n_paired + 2, both)) return true;
    }
    return false;
}

/* In one node channel by channel the next ring. Between nodes that would send more through some NICs than through
 * others: pairs, or else all along one ring, which leaves at every slot once if it enters at every slot once. */
static void plan_visits(struct node_rings *r, uint32_t n_channels, bool several_nodes, struct dl_arena *arena)
{
    enum { most_paired = 16 };
    const bool in_pairs = several_nodes && r->n > 2 && r->n % 2 == 0 && r->n <= most_paired && r->n_rings % 2 == 0;
    const bool on_one_ring = several_nodes && r->n > 2;
    r->visits = dl_arena_alloc(arena, (n_channels + r->n) * sizeof *r->visits);
    for (uint32_t first = 0; first < n_channels; first += r->n) {
        if (in_pairs && pair_up(r, first, 0, 0)) continue;
        for (uint32_t channel = first; channel < first + r->n; channel++) {
            const uint32_t ring = on_one_ring ? 0 : channel % r->n_rings;
            const uint32_t entry = several_nodes ? channel % r->n : r->orders[ring * r->n];
            r->visits[channel] = (struct visit){.ring = ring, .entry = entry};
        }
    }
}

/* Every other node is passed the other way round, so that a channel leaves a node and enters the next at the same slot:
 * on rails it stays on its rail. */
static uint32_t *write_node(const struct dl_group *g, uint32_t node, const struct node_rings *r, uint32_t channel,
                            uint32_t *out)
{
    const struct visit *const visit = &r->visits[channel];
    const uint32_t *const ring = r->orders + (size_t)visit->ring * r->n;
    const uint32_t start = place_on(r, visit->ring, visit->entry);
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t place = node % 2 ? r->n - 1 - i : i;
        *out++ = g->node_ranks[g->node_first[node] + ring[(start + place) % r->n]];
    }
    return out;
}

void dl_channels_find(const struct dl_group *g, struct dl_arena *arena, struct dl_channels *out)
{
    struct node_rings *const rings = rings_of_nodes(g, arena);
    out->n = g->n;
    out->n_channels = count_channels(g, rings);
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        if (node && rings[node].orders == rings[node - 1].orders)
            rings[node].visits = rings[node - 1].visits;
        else
            plan_visits(&rings[node], out->n_channels, g->n_nodes > 1, arena);
    }
    const size_t size = (size_t)out->n_channels * g->n;
    out->order = dl_arena_alloc(arena, size * sizeof *out->order);
    out->position = dl_arena_alloc(arena, size * sizeof *out->position);
    uint32_t *at = out->order;
    for (uint32_t channel = 0; channel < out->n_channels; channel++)
        for (uint32_t node = 0; node < g->n_nodes; node++) at = write_node(g, node, &rings[node], channel, at);
    for (size_t i = 0; i < size; i++) out->position[i / g->n * g->n + out->order[i]] = (uint32_t)(i % g->n);
}

enum dl_status dl_channels_prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)err;
    struct dl_channels *const channels = dl_arena_alloc(arena, sizeof *channels);
    dl_channels_find(c->group, arena, channels);
    c->plan = channels;
    return DL_OK;
}

uint32_t dl_channels_lanes(const struct dl_collective *c)
{
    const struct dl_channels *const channels = c->plan;
    return channels->n_channels;
}
