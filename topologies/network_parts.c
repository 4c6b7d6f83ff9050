#include "topologies/network_parts.h"

#include <stdio.h>

#include "sim/core/random.h"
#include "topologies/topology.h"

void dl_network_endpoint_name(const struct dl_network *net, uint32_t endpoint, char *name, size_t bytes)
{
    const char *const what = net->topology->node.n_nics ? "nic" : "device";
    snprintf(name, bytes, "node%u.%s%u", endpoint / net->endpoints_per_node, what, endpoint % net->endpoints_per_node);
}

void dl_network_cable_name(const char *from, const char *to, uint64_t cable, uint64_t n_cables, char *name,
                           size_t bytes)
{
    if (n_cables > 1)
        snprintf(name, bytes, "%s -> %s #%llu", from, to, (unsigned long long)cable);
    else
        snprintf(name, bytes, "%s -> %s", from, to);
}

uint64_t dl_network_hash(uint32_t from, uint32_t to, uint64_t key, uint64_t salt)
{
    return dl_mix(dl_mix(dl_mix((uint64_t)from << 32 | to) ^ key) ^ salt);
}

void dl_network_share(const struct dl_network *net, struct dl_route *route, uint32_t link, double weight)
{
    const uint32_t id = net->first_link + link;
    const size_t i = dl_route_find(route, id);
    if (i == route->n_hops) {
        dl_network_hop(net, route, link, weight);
        return;
    }
    route->hops[i].weight += weight;
    dl_route_pass(route, weight, net->topology->links[id].latency_s, DL_REACH_NETWORK);
}

enum dl_status dl_network_check_links(const struct dl_network *net, double n_links, struct dl_error *err)
{
    if (n_links <= DL_MAX_NETWORK_LINKS) return DL_OK;
    return dl_fail(err, DL_RANGE, net->where.where, "would have %.0f links, at most %d are possible", n_links,
                   DL_MAX_NETWORK_LINKS);
}

enum dl_status dl_network_check_places(const struct dl_network *net, double n_places, double n_needed, const char *keys,
                                       struct dl_error *err)
{
    if (n_places >= n_needed) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, net->where.where,
                   "has room for %.0f endpoints, but %u nodes with %u each need %.0f; raise %s", n_places, net->n_nodes,
                   net->endpoints_per_node, n_needed, keys);
}
