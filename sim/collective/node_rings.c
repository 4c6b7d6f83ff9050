/* node_rings.c - the most rings that the lanes between the devices of a node can carry at once.
 *
 * All Hamiltonian cycles over neighbouring devices are listed (2,520 at most for 8 devices), then as many of them as
 * the lanes allow are chosen by depth-first search; it stops at the bound that the device with the fewest lanes sets.
 * If there is no such cycle, hops through a device between count too and use the lanes on both sides of it. */
#include <string.h>

#include "sim/collective/channels.h"

enum { max_devices = 10, max_edges = 64, max_cycles = 1 << 18, max_tries = 200000 };

struct cycle {
    uint8_t order[max_devices];
    uint8_t uses[max_edges]; /* lanes of each edge, per direction */
};

struct search {
    const struct dl_node *node;
    uint32_t vertex[max_devices];
    uint32_t n;
    bool relays; /* hops through another device are allowed */
    struct cycle *cycles;
    size_t n_cycles, cycles_capacity;
    struct cycle at; /* being built */
    uint32_t used;   /* bit set of devices */
    uint32_t free_lanes[max_edges];
    size_t chosen[max_edges], best[max_edges];
    uint32_t n_chosen, n_best, bound, tries;
};

static bool joins_devices(const struct dl_node *node, size_t edge)
{
    const struct dl_edge *const e = &node->edges[edge];
    return e->reach == DL_REACH_DIRECT && node->vertices[e->a].kind == DL_DEVICE &&
           node->vertices[e->b].kind == DL_DEVICE;
}

/* Count the lanes on the way between two devices; false: not over lanes between devices, or over more hops than
 * allowed. */
static bool add_hop(struct search *s, uint32_t from, uint32_t to, int amount)
{
    struct dl_route route = {0};
    bool fine =
        dl_node_route(s->node, s->vertex[from], s->vertex[to], 0, &route) && route.n_hops <= (s->relays ? 2 : 1);
    for (size_t i = 0; fine && i < route.n_hops; i++) fine = joins_devices(s->node, route.hops[i].link / 2);
    for (size_t i = 0; fine && i < route.n_hops; i++)
        s->at.uses[route.hops[i].link / 2] = (uint8_t)(s->at.uses[route.hops[i].link / 2] + amount);
    dl_route_release(&route);
    return fine;
}

static bool within_lanes(const struct search *s)
{
    for (size_t e = 0; e < s->node->n_edges; e++)
        if (s->at.uses[e] > s->node->edges[e].lanes) return false;
    return true;
}

static void keep_cycle(struct search *s)
{
    if (!within_lanes(s) || s->n_cycles == max_cycles) return;
    DL_GROW(s->cycles, s->n_cycles, s->cycles_capacity);
    s->cycles[s->n_cycles++] = s->at;
}

/* Each cycle is listed once: it begins at 0, and the second device has a lower number than the last. */
static void extend(struct search *s, uint32_t length)
{
    const uint32_t last = s->at.order[length - 1];
    if (length == s->n) {
        if ((s->n > 2 && s->at.order[1] > last) || !add_hop(s, last, 0, 1)) return;
        keep_cycle(s);
        add_hop(s, last, 0, -1);
        return;
    }
    for (uint32_t next = 1; next < s->n; next++) {
        if (s->used & 1u << next || !add_hop(s, last, next, 1)) continue;
        s->used |= 1u << next;
        s->at.order[length] = (uint8_t)next;
        extend(s, length + 1);
        s->used &= ~(1u << next);
        add_hop(s, last, next, -1);
    }
}

static bool take(struct search *s, size_t cycle)
{
    for (size_t e = 0; e < s->node->n_edges; e++)
        if (s->cycles[cycle].uses[e] > s->free_lanes[e]) return false;
    for (size_t e = 0; e < s->node->n_edges; e++) s->free_lanes[e] -= s->cycles[cycle].uses[e];
    s->chosen[s->n_chosen++] = cycle;
    return true;
}

static void give_back(struct search *s)
{
    const size_t cycle = s->chosen[--s->n_chosen];
    for (size_t e = 0; e < s->node->n_edges; e++) s->free_lanes[e] += s->cycles[cycle].uses[e];
}

static void choose(struct search *s, size_t first)
{
    if (s->n_chosen > s->n_best) {
        s->n_best = s->n_chosen;
        memcpy(s->best, s->chosen, sizeof s->best);
    }
    for (size_t i = first; i < s->n_cycles && s->n_best < s->bound && s->tries < max_tries; i++) {
        s->tries++;
        if (!take(s, i)) continue;
        choose(s, i);
        give_back(s);
    }
}

/* A ring enters and leaves every device once: half of its lanes, or all where it comes back to the one it came from. */
static uint32_t most_rings(const struct search *s)
{
    uint32_t bound = max_edges;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t lanes = 0;
        for (size_t e = 0; e < s->node->n_edges; e++) {
            const struct dl_edge *const edge = &s->node->edges[e];
            if (joins_devices(s->node, e) && (edge->a == s->vertex[i] || edge->b == s->vertex[i])) lanes += edge->lanes;
        }
        if (lanes / 2 < bound) bound = lanes / 2;
    }
    return bound;
}

static void find_cycles(struct search *s)
{
    for (int relays = 0; relays < 2 && !s->n_cycles; relays++) {
        s->relays = relays;
        s->used = 1;
        memset(&s->at, 0, sizeof s->at);
        extend(s, 1);
    }
    for (size_t e = 0; e < s->node->n_edges; e++) s->free_lanes[e] = s->node->edges[e].lanes;
    s->bound = most_rings(s);
    choose(s, 0);
}

static uint32_t write_rings(const struct search *s, struct dl_arena *arena, uint32_t **orders)
{
    const uint32_t directions = 2;
    *orders = dl_arena_alloc(arena, (size_t)directions * s->n_best * s->n * sizeof **orders);
    uint32_t *out = *orders;
    for (uint32_t i = 0; i < s->n_best; i++) {
        const uint8_t *const order = s->cycles[s->best[i]].order;
        for (uint32_t k = 0; k < s->n; k++) *out++ = order[k];
        for (uint32_t k = 0; k < s->n; k++) *out++ = order[(s->n - k) % s->n];
    }
    return directions * s->n_best;
}

/* Two devices: every lane between them is a ring of its own, there and back. */
static uint32_t pair_rings(const struct dl_node *node, const uint32_t *device, struct dl_arena *arena,
                           uint32_t **orders)
{
    uint32_t lanes = 1;
    for (size_t e = 0; e < node->n_edges; e++) {
        const struct dl_edge *const edge = &node->edges[e];
        const bool between =
            (edge->a == device[0] && edge->b == device[1]) || (edge->a == device[1] && edge->b == device[0]);
        if (between && joins_devices(node, e)) lanes = edge->lanes;
    }
    *orders = dl_arena_alloc(arena, 2 * (size_t)lanes * sizeof **orders);
    for (uint32_t i = 0; i < 2 * lanes; i++) (*orders)[i] = i % 2;
    return lanes;
}

static bool has_mesh(const struct dl_node *node)
{
    for (size_t e = 0; e < node->n_edges; e++)
        if (joins_devices(node, e)) return true;
    return false;
}

uint32_t dl_node_rings(const struct dl_node *node, const uint32_t *device, uint32_t n, struct dl_arena *arena,
                       uint32_t **orders)
{
    const bool searchable = n > 1 && n <= max_devices && node->n_edges <= max_edges && has_mesh(node);
    if (searchable && n == 2) return pair_rings(node, device, arena, orders);
    uint32_t n_rings = 0;
    if (searchable) {
        struct search *const s = dl_alloc(sizeof *s);
        s->node = node;
        s->n = n;
        for (uint32_t i = 0; i < n; i++) s->vertex[i] = device[i];
        find_cycles(s);
        if (s->n_best) n_rings = write_rings(s, arena, orders);
        dl_free(s->cycles);
        dl_free(s);
    }
    if (n_rings) return n_rings;
    *orders = dl_arena_alloc(arena, n * sizeof **orders);
    for (uint32_t i = 0; i < n; i++) (*orders)[i] = i;
    return 1;
}
