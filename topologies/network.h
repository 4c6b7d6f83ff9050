/* network.h - what is between nodes. To add a network: one file with a const struct dl_network_kind, one line in the
 * table of networks.c; the contract battery of the tests then runs over it.
 *
 * The network connects endpoints: NICs, numbered node * nics_per_node + nic, or, in systems without NICs (TPU tori),
 * the devices themselves. A route begins with the link out of the source endpoint and ends with the link into the
 * destination endpoint. */
#ifndef DL_TOPOLOGIES_NETWORK_H
#define DL_TOPOLOGIES_NETWORK_H

#include "sim/core/json.h"
#include "topologies/route.h"
#include "topologies/slices.h"

struct dl_network;
struct dl_link;

struct dl_link_ends {
    uint32_t from, to;
};

struct dl_network_kind {
    const char *name, *doc;
    const struct dl_field *fields; /* REQUIRED: the keys of the system file's "network" besides "kind" */
    size_t n_fields, options_size;
    const void *defaults; /* REQUIRED */
    /* REQUIRED: check the options against n_nodes and endpoints_per_node, keep what routing needs in net->state
     * (arena memory), and add every link with dl_network_add_link or, many alike at once, dl_network_add_links. */
    enum dl_status (*build)(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err);
    /* REQUIRED: append the hops from endpoint to endpoint (from != to). `key` tells apart what hashing routes apart;
     * `load` may be NULL. Returns DL_IMPOSSIBLE through err only where the graph is not connected. */
    enum dl_status (*route)(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                            const struct dl_load *load, struct dl_route *out, struct dl_error *err);
    /* REQUIRED: the name of a link, "leaf3 -> spine1"; `link` counts from 0 in the order of adding. */
    void (*name_link)(const struct dl_network *net, uint32_t link, char *name, size_t bytes);
    /* REQUIRED: the vertices that a link joins: the endpoints, from 0, then the switches, fewer than n_links of them.
     * This is the graph in which messages find their way around links that have failed. */
    struct dl_link_ends (*ends)(const struct dl_network *net, uint32_t link);
    bool endpoints_forward; /* an endpoint passes on what is for others; else only switches do */
    /* OPTIONAL: the coordinates of a torus for algorithms that follow it: number of dimensions and their sizes.
     * NULL: not a torus. */
    size_t (*dimensions)(const struct dl_network *net, const int64_t **sizes);
    /* OPTIONAL: whether its routes depend on `load`, so that they must not be kept. NULL: they do not. */
    bool (*reads_load)(const struct dl_network *net);
};
size_t dl_network_count(void);
const struct dl_network_kind *dl_network_get(size_t index);

struct dl_network {
    const struct dl_network_kind *kind;
    struct dl_json where; /* the "network" object, for errors */
    void *state;          /* the kind's own */
    uint32_t n_nodes, endpoints_per_node, n_endpoints;
    uint32_t first_link, n_links;     /* ids of its links in the topology */
    struct dl_topology *topology;     /* to add links to */
    const struct dl_pod_slice *slice; /* that the job gets, set before it is built; NULL: all */
    struct dl_slices slices;          /* that there are */
    struct dl_pod_slice shape;        /* where there are slices: that of the slice, or of all */
    bool reduces;                     /* its switches can add what passes through them (SHARP) */
};

struct dl_link_spec {
    double bandwidth_bytes_per_s, latency_s;
    const char *link_kind; /* ib-hdr, slingshot, roce, ...; transports know efficiencies by it */
};

/* False where there is no network. */
bool dl_network_reads_load(const struct dl_network *net);

/* Returns the number of the link within the network, from 0. */
uint32_t dl_network_add_link(struct dl_network *net, const struct dl_link_spec *spec);

/* Add so many that are all alike. */
void dl_network_add_links(struct dl_network *net, const struct dl_link_spec *spec, size_t n);

/* Append a link of the network to a route by its number within the network. */
void dl_network_hop(const struct dl_network *net, struct dl_route *route, uint32_t link, double weight);

/* The keys that every network has for its links; a kind puts these into its own options and fields. */
struct dl_cable {
    double bandwidth_bytes_per_s;
    double latency_s; /* of one link with the switch behind it */
    const char *link_kind;
};

#endif
