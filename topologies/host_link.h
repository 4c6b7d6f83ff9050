/* host_link.h - the way between a device and the memory of its host: the links of it, and what it gives a device when
 * several of the node use it at once. */
#ifndef DL_TOPOLOGIES_HOST_LINK_H
#define DL_TOPOLOGIES_HOST_LINK_H

#include "topologies/topology.h"

/* The route from a device to its host, or back, into `out`, which is cleared first: over the path of its own that
 * "host" of the node gives it, else to the nearest socket of a PCIe part. False: the system file tells of neither. */
bool dl_host_route(const struct dl_topology *t, uint32_t device, bool back, struct dl_route *out);

struct dl_host_link {
    double bytes_per_s, latency_s; /* of a device, each way */
    double memory_bytes_per_s;     /* a device's share of what the host's memory sustains; 0: not known */
};

/* Of the first n_used devices of a node; bytes_per_s is by link of the topology. False: they have no such route. */
bool dl_host_link(const struct dl_topology *t, uint32_t n_used, const double *bytes_per_s, struct dl_host_link *out);

#endif
