/* topology.h - a whole machine: nodes, the network between them, links, and the route from device to device.
 *
 * Links are directed and numbered from 0: first those inside the nodes (node by node), then the network's, then those
 * of storage. */
#ifndef DL_TOPOLOGIES_TOPOLOGY_H
#define DL_TOPOLOGIES_TOPOLOGY_H

#include "topologies/condition.h"
#include "topologies/facility.h"
#include "topologies/network.h"
#include "topologies/node.h"
#include "topologies/reliability.h"
#include "topologies/storage.h"
#include "topologies/variability.h"

struct dl_link {
    double bandwidth_bytes_per_s, latency_s;
    uint16_t kind; /* index into the topology's link_kinds */
};

enum { DL_MAX_LINK_KINDS = 64 };

struct dl_topology {
    const char *name;
    struct dl_node node;
    struct dl_network network; /* kind is NULL: a single node */
    uint32_t n_nodes, n_devices;
    uint32_t n_whole_devices;   /* of the machine, where this is a slice of it */
    struct dl_json doc;         /* that it was read from; not owned */
    const char *transport;      /* default transport file */
    double weight_memory_bytes; /* of all devices together, outside of them; 0: nothing is said of it */
    struct dl_variability variability;
    struct dl_reliability reliability;
    struct dl_storage storage; /* that all nodes share */
    struct dl_node_power node_power;
    struct dl_network_power network_power;
    struct dl_facility site;
    struct dl_link *links;
    size_t n_links, links_capacity;
    const char *link_kinds[DL_MAX_LINK_KINDS];
    uint16_t n_link_kinds;
    uint32_t first_storage_link; /* they are the last; n_links: there are none */
    uint16_t storage_link_kind;  /* no transport's either */
    uint16_t host_link_kind;     /* of links to a host by itself, which are no transport's; DL_MAX_LINK_KINDS: none */
    struct dl_condition *condition; /* changes while a simulation runs; owned */
    struct dl_arena *arena;         /* the run's; not owned */
};

/* Build from the document of a system file (schema dlsim/system/1). Release with dl_topology_free. */
enum dl_status dl_topology_read(struct dl_json doc, struct dl_arena *arena, struct dl_topology **out,
                                struct dl_error *err);
void dl_topology_free(struct dl_topology *t);

/* Of the part of the machine that a job on so many devices gets; those of t: t itself. */
uint32_t dl_topology_slice_devices(const struct dl_topology *t, uint32_t n_devices);
/* For a job on so many devices of the same machine: the slice that it gets, for dl_topology_free. NULL: t itself. */
enum dl_status dl_topology_slice(const struct dl_topology *t, uint32_t n_devices, struct dl_topology **out,
                                 struct dl_error *err);

/* The route from device to device (from != to) into `out`, which is cleared first, around links that have failed if
 * there is a way. Unreachable: DL_IMPOSSIBLE. */
enum dl_status dl_topology_route(const struct dl_topology *t, uint32_t from, uint32_t to, uint64_t key,
                                 const struct dl_load *load, struct dl_route *out, struct dl_error *err);

/* "node3: device1 -> nvswitch0", "leaf3 -> spine1". */
void dl_topology_link_name(const struct dl_topology *t, uint32_t link, char *name, size_t bytes);

/* The link of that name, or UINT32_MAX. */
uint32_t dl_topology_find_link(const struct dl_topology *t, const char *name);

static inline uint32_t dl_topology_node_of(const struct dl_topology *t, uint32_t device)
{
    return device / t->node.n_devices;
}

/* Of the network: cables, and their ends at switches, which are none where links end at the devices. */
struct dl_cabling {
    double cables, switch_ports;
};
struct dl_cabling dl_topology_cabling(const struct dl_topology *t);

/* Intern the name of a kind of link. */
uint16_t dl_topology_link_kind(struct dl_topology *t, const char *name);

#endif
