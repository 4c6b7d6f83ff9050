#include "topologies/host_link.h"

#include <math.h>

#include "sim/core/memory.h"

bool dl_host_route(const struct dl_topology *t, uint32_t device, bool back, struct dl_route *out)
{
    const uint32_t in_node = dl_topology_node_of(t, device), slot = device - in_node * t->node.n_devices;
    const uint32_t host = t->node.device_host[slot], first_link = in_node * 2 * (uint32_t)t->node.n_edges;
    dl_route_clear(out);
    if (host == UINT32_MAX) return false;
    return back ? dl_node_route(&t->node, host, slot, first_link, out)
                : dl_node_route(&t->node, slot, host, first_link, out);
}

/* The slowest device decides: all go in step. */
bool dl_host_link(const struct dl_topology *t, uint32_t n_used, const double *bytes_per_s, struct dl_host_link *out)
{
    struct dl_route *const routes = dl_alloc(n_used * sizeof *routes);
    uint32_t *const users = dl_alloc((2 * t->node.n_edges + 1) * sizeof *users);
    bool found = true;
    *out =
        (struct dl_host_link){.bytes_per_s = INFINITY, .memory_bytes_per_s = t->node.host.memory_bytes_per_s / n_used};
    for (uint32_t d = 0; d < n_used && found; d++) {
        found = dl_host_route(t, d, false, &routes[d]);
        for (size_t i = 0; i < routes[d].n_hops; i++) users[routes[d].hops[i].link]++;
    }
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
