/* copy_paths.h - the ways between a device, the memory of its host and storage: their links, and what these give a
 * device when all of a job copy at once. */
#ifndef DL_TOPOLOGIES_COPY_PATHS_H
#define DL_TOPOLOGIES_COPY_PATHS_H

#include "sim/program/places.h"
#include "topologies/topology.h"

/* The links of a path from the device's end outwards, or inwards to it, into `out`, which is cleared first.
 *
 * To the host: over the path of its own that "host" of the node gives a device, else to the nearest socket of a PCIe
 * part. From there to the node's storage: over its link. To storage that all share: through the device's NIC, over the
 * NIC's links to the network and then those that all nodes share; where in the network it is no file tells, so links
 * between switches are not counted. Without NICs hosts reach it by ways that are not in the file.
 * False: the system file tells nothing of a place on the path. */
bool dl_copy_route(const struct dl_topology *t, enum dl_path path, uint32_t device, bool inwards, struct dl_route *out);

/* Say what the file of a machine without such a route needs. */
enum dl_status dl_copy_refuse(const struct dl_topology *t, enum dl_path path, const char *where, struct dl_error *err);

struct dl_copy_rate {
    double bytes_per_s, latency_s; /* of a device */
    double memory_bytes_per_s;     /* its share of what the host's memory sustains; 0: not known */
};

/* Of which path, in which direction, by how many devices of a job, of which a node has so many at most: these, or its
 * first ones. */
struct dl_copy_wish {
    enum dl_path path;
    bool inwards;
    uint32_t n_devices, n_on_node;
    const uint32_t *on_node; /* OPTIONAL: devices of one node */
};

/* The slowest device's; bytes_per_s is by link of the topology. False: they have no such route. */
bool dl_copy_rate(const struct dl_topology *t, const struct dl_copy_wish *wish, const double *bytes_per_s,
                  struct dl_copy_rate *out);

#endif
