/* route.h - the way of a message through the machine: a weighted list of links.
 *
 * A weight is the share of the message's bytes that crosses the link: 1 on a single path, 1/k on each of k paths that
 * routing sprays packets over, 2 where the same link is crossed twice. */
#ifndef DL_TOPOLOGIES_ROUTE_H
#define DL_TOPOLOGIES_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl_hop {
    uint32_t link;
    double weight;
};

/* Where a route leads, for software latencies that depend on it: the worst of the links that it uses, best first here.
 */
enum dl_reach { DL_REACH_DIRECT, DL_REACH_PCIE, DL_REACH_NETWORK, DL_N_REACHES };

struct dl_route {
    struct dl_hop *hops;
    size_t n_hops, capacity;
    double latency_s; /* of the links, weighted; software adds its own */
    enum dl_reach reach;
    bool relayed; /* passes through a device on its way */
    /* To find a link of many: places in a table by hash hold hops, and a hop knows its place, so that what is left from
     * routes before counts for nothing. */
    uint32_t *table, *place_of_hop;
    size_t n_places, n_indexed;
};

/* An empty route is {0}; clear keeps the memory for the next use. */
void dl_route_clear(struct dl_route *route);
void dl_route_release(struct dl_route *route);

/* Append a link. A link is on the list once: who may cross it again raises its weight instead. */
void dl_route_add(struct dl_route *route, uint32_t link, double weight);

/* Its place on the list; n_hops: it is not there. */
size_t dl_route_find(struct dl_route *route, uint32_t link);

/* Account for the latency and reach of an added link; dl_node_route and dl_network_hop do both. */
void dl_route_pass(struct dl_route *route, double weight, double latency_s, enum dl_reach reach);

/* What routing may look at when it adapts: the bytes per second that bundles would take from a link if each were alone,
 * so that what waits counts too. NULL: idle network. */
struct dl_load {
    double (*wanted_bytes_per_s)(void *user, uint32_t link);
    void *user;
    double own_share; /* of what its endpoint sends at a time, that the message to be routed is; 0: all of it */
};

#endif
