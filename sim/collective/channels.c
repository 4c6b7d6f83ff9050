#include "sim/collective/channels.h"

#include <string.h>

struct node_rings {
    const uint32_t *device; /* within the node, by slot */
    uint32_t n, n_rings;
    uint32_t *orders;
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

static uint32_t count_channels(const struct dl_group *g, const struct node_rings *rings)
{
    uint32_t most = 1;
    const bool has_nics = !g->topology || g->topology->node.n_nics;
    for (uint32_t node = 0; node < g->n_nodes; node++) {
        if (rings[node].n_rings > most) most = rings[node].n_rings;
        if (g->n_nodes > 1 && has_nics && rings[node].n > most) most = rings[node].n;
    }
    return most;
}

/* The node's part of a channel: one of its rings, cut open where slot (channel) comes first. */
static uint32_t *write_node(const struct dl_group *g, uint32_t node, const struct node_rings *r, uint32_t channel,
                            uint32_t *out)
{
    const uint32_t *const ring = r->orders + (size_t)(channel % r->n_rings) * r->n;
    const uint32_t entry = g->n_nodes > 1 ? channel % r->n : ring[0];
    uint32_t start = 0;
    while (ring[start] != entry) start++;
    for (uint32_t i = 0; i < r->n; i++) *out++ = g->node_ranks[g->node_first[node] + ring[(start + i) % r->n]];
    return out;
}

void dl_channels_find(const struct dl_group *g, struct dl_arena *arena, struct dl_channels *out)
{
    const struct node_rings *const rings = rings_of_nodes(g, arena);
    out->n = g->n;
    out->n_channels = count_channels(g, rings);
    const size_t size = (size_t)out->n_channels * g->n;
    out->order = dl_arena_alloc(arena, size * sizeof *out->order);
    out->position = dl_arena_alloc(arena, size * sizeof *out->position);
    uint32_t *at = out->order;
    for (uint32_t channel = 0; channel < out->n_channels; channel++)
        for (uint32_t node = 0; node < g->n_nodes; node++) at = write_node(g, node, &rings[node], channel, at);
    for (size_t i = 0; i < size; i++) out->position[i / g->n * g->n + out->order[i]] = (uint32_t)(i % g->n);
}
