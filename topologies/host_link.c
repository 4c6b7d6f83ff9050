#include "topologies/host_link.h"

#include <math.h>

#include "sim/core/memory.h"

/* Over the fewest links; false: no socket can be reached. */
static bool route_to_host(const struct dl_node *node, uint32_t device, struct dl_route *nearest)
{
    struct dl_route route = {0};
    bool found = false;
    for (uint32_t v = 0; v < node->n_vertices; v++) {
        dl_route_clear(&route);
        if (!node->vertices[v].is_host || !dl_node_route(node, device, v, 0, &route)) continue;
        if (found && route.n_hops >= nearest->n_hops) continue;
        const struct dl_route other = *nearest;
        *nearest = route;
        route = other;
        found = true;
    }
    dl_route_release(&route);
    return found;
}

/* The slowest device decides: all go in step. */
static bool share_links(const struct dl_topology *t, uint32_t n_used, const double *bytes_per_s,
                        struct dl_host_link *out)
{
    const struct dl_node *const node = &t->node;
    struct dl_route *const routes = dl_alloc(n_used * sizeof *routes);
    uint32_t *const users = dl_alloc((2 * node->n_edges + 1) * sizeof *users);
    bool found = true;
    for (uint32_t d = 0; d < n_used && found; d++) {
        found = route_to_host(node, d, &routes[d]);
        for (size_t i = 0; i < routes[d].n_hops; i++) users[routes[d].hops[i].link]++;
    }
    out->bytes_per_s = INFINITY;
    for (uint32_t d = 0; d < n_used; d++) {
        out->latency_s = fmax(out->latency_s, routes[d].latency_s);
        for (size_t i = 0; i < routes[d].n_hops; i++)
            out->bytes_per_s =
                fmin(out->bytes_per_s, bytes_per_s[routes[d].hops[i].link] / users[routes[d].hops[i].link]);
        dl_route_release(&routes[d]);
    }
    dl_free(users);
    dl_free(routes);
    return found;
}

bool dl_host_link(const struct dl_topology *t, uint32_t n_used, const double *bytes_per_s, struct dl_host_link *out)
{
    const struct dl_node_host *const host = &t->node.host;
    *out = (struct dl_host_link){.bytes_per_s = host->link_bandwidth_bytes_per_s,
                                 .latency_s = host->link_latency_s,
                                 .memory_bytes_per_s = host->memory_bytes_per_s / n_used};
    return out->bytes_per_s > 0 || share_links(t, n_used, bytes_per_s, out);
}
