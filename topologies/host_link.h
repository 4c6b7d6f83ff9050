/* host_link.h - the way between a device and the memory of its host, when several devices of the node use it at once.
 */
#ifndef DL_TOPOLOGIES_HOST_LINK_H
#define DL_TOPOLOGIES_HOST_LINK_H

#include "topologies/topology.h"

struct dl_host_link {
    double bytes_per_s, latency_s; /* of a device, each way */
    double memory_bytes_per_s;     /* a device's share of what the host's memory sustains; 0: not known */
};

/* Of the first n_used devices of a node: as its "host" says, else from the device to the nearest socket of a PCIe part;
 * bytes_per_s is by link of the topology. False: the system file tells of neither. */
bool dl_host_link(const struct dl_topology *t, uint32_t n_used, const double *bytes_per_s, struct dl_host_link *out);

#endif
