#include "topologies/copy_paths.h"

#include <math.h>
#include <stdlib.h>

#include "sim/core/memory.h"

/* ---- routes ---- */

/* A device whose copies are routed. */
struct end {
    const struct dl_topology *topology;
    uint32_t device, node, slot, first_link, host;
    bool inwards;
};

/* Between two vertices of its node. */
static bool add_in_node(const struct end *e, uint32_t inner, uint32_t outer, struct dl_route *out)
{
    const struct dl_node *const node = &e->topology->node;
    return e->inwards ? dl_node_route(node, outer, inner, e->first_link, out)
                      : dl_node_route(node, inner, outer, e->first_link, out);
}

/* The links of an endpoint, as it sends to or gets from the endpoint that is half of all away. */
static void add_port(const struct end *e, uint32_t endpoint, struct dl_route *out)
{
    const struct dl_network *const net = &e->topology->network;
    const uint32_t other = (endpoint + net->n_endpoints / 2) % net->n_endpoints;
    struct dl_route whole = {0};
    struct dl_error none = {0};
    if (other == endpoint || net->kind->route(net, e->inwards ? other : endpoint, e->inwards ? endpoint : other,
                                              e->device, NULL, &whole, &none))
        return;
    for (size_t i = 0; i < whole.n_hops; i++) {
        const uint32_t link = whole.hops[i].link - net->first_link;
        const struct dl_link_ends ends = net->kind->ends(net, link);
        if ((e->inwards ? ends.to : ends.from) == endpoint) dl_network_hop(net, out, link, whole.hops[i].weight);
    }
    dl_route_release(&whole);
}

static void add_nic(const struct end *e, bool to_port, struct dl_route *out)
{
    const struct dl_node *const node = &e->topology->node;
    const uint32_t nic = node->n_nics && e->topology->network.kind ? node->device_nic[e->slot] : UINT32_MAX;
    if (nic == UINT32_MAX) return;
    if (to_port)
        add_port(e, e->node * node->n_nics + nic, out);
    else
        add_in_node(e, e->host, node->nic_vertex[nic], out); /* or by ways that are not in the file */
}

static void add_storage(const struct end *e, uint32_t link, struct dl_route *out)
{
    dl_route_add(out, link, 1);
    dl_route_pass(out, 1, e->topology->links[link].latency_s, DL_REACH_PCIE);
}

/* From the device outwards; inwards the same in turn. */
enum leg { leg_host, leg_nic, leg_port, leg_storage, n_legs };

static bool add_leg(const struct end *e, enum dl_path path, enum leg leg, struct dl_route *out)
{
    const bool is_shared = dl_path_ends_in_shared_storage(path);
    uint32_t link;
    switch (leg) {
    case leg_host: return !dl_path_begins_at_device(path) || add_in_node(e, e->slot, e->host, out);
    case leg_nic:
    case leg_port:
        if (is_shared) add_nic(e, leg == leg_port, out);
        return true;
    case leg_storage:
        if (path == DL_PATH_HOST) return true;
        link = is_shared ? dl_storage_link(e->topology, e->inwards)
                         : dl_node_storage_link(e->topology, e->node, e->inwards);
        if (link != UINT32_MAX) add_storage(e, link, out);
        return link != UINT32_MAX;
    case n_legs: break;
    }
    return false;
}

bool dl_copy_route(const struct dl_topology *t, enum dl_path path, uint32_t device, bool inwards, struct dl_route *out)
{
    const uint32_t node = dl_topology_node_of(t, device), slot = device - node * t->node.n_devices;
    const struct end e = {.topology = t,
                          .device = device,
                          .node = node,
                          .slot = slot,
                          .first_link = node * 2 * (uint32_t)t->node.n_edges,
                          .host = t->node.device_host[slot],
                          .inwards = inwards};
    bool found = e.host != UINT32_MAX;
    dl_route_clear(out);
    for (int i = 0; i < n_legs && found; i++) found = add_leg(&e, path, (enum leg)(inwards ? n_legs - 1 - i : i), out);
    return found;
}

enum dl_status dl_copy_refuse(const struct dl_topology *t, enum dl_path path, const char *where, struct dl_error *err)
{
    if (t->node.device_host[0] == UINT32_MAX)
        return dl_fail(err, DL_IMPOSSIBLE, where,
                       "%s says nothing of its host; its node needs \"host\" with \"link_bandwidth_bytes_per_s\"",
                       t->name);
    return dl_fail(err, DL_IMPOSSIBLE, where,
                   "%s says nothing of its storage; %s needs \"storage\" with \"write_bytes_per_s\"", t->name,
                   dl_path_ends_in_node_storage(path) ? "its node" : "it");
}

/* ---- rates ---- */

static int by_link(const void *a, const void *b)
{
    const struct dl_hop *const x = a, *const y = b;
    return x->link < y->link ? -1 : x->link > y->link;
}

static bool is_shared_by_nodes(const struct dl_topology *t, uint32_t link)
{
    return link == dl_storage_link(t, false) || link == dl_storage_link(t, true);
}

/* What the slowest of all these links gives a device. */
static double least_share(const struct dl_topology *t, const struct dl_copy_wish *wish, struct dl_hop *hops, size_t n,
                          const double *bytes_per_s)
{
    double least = INFINITY;
    if (n) qsort(hops, n, sizeof *hops, by_link);
    for (size_t i = 0, next; i < n; i = next) {
        double users = 0;
        for (next = i; next < n && hops[next].link == hops[i].link; next++) users += hops[next].weight;
        if (is_shared_by_nodes(t, hops[i].link)) users = wish->n_devices;
        least = fmin(least, bytes_per_s[hops[i].link] / users);
    }
    return least;
}

/* All go in step, so the slowest decides. */
bool dl_copy_rate(const struct dl_topology *t, const struct dl_copy_wish *wish, const double *bytes_per_s,
                  struct dl_copy_rate *out)
{
    struct dl_route route = {0};
    struct dl_hop *hops = NULL;
    size_t n = 0, capacity = 0;
    bool found = true;
    *out = (struct dl_copy_rate){.memory_bytes_per_s = t->node.host.memory_bytes_per_s / wish->n_on_node};
    for (uint32_t d = 0; d < wish->n_on_node && found; d++) {
        found = dl_copy_route(t, wish->path, wish->on_node ? wish->on_node[d] : d, wish->inwards, &route);
        out->latency_s = fmax(out->latency_s, route.latency_s);
        for (size_t i = 0; i < route.n_hops; i++) {
            DL_GROW(hops, n, capacity);
            hops[n++] = route.hops[i];
        }
    }
    out->bytes_per_s = least_share(t, wish, hops, n, bytes_per_s);
    dl_route_release(&route);
    dl_free(hops);
    return found;
}
