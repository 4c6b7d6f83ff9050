/* placement.h - which device each rank runs on. */
#ifndef DL_TOPOLOGIES_PLACEMENT_H
#define DL_TOPOLOGIES_PLACEMENT_H

#include "topologies/topology.h"

/* Fill device[0..n_ranks). `how` is one of
 *   packed         nodes in order, slot by slot; the last may be partial
 *   even           as few nodes as hold them, as many ranks on each, as launchers start them; else packed
 *   spread         rank by rank over all nodes, round robin
 *   random         a random set of devices in random order, by seed
 *   list:3,1,2     these devices */
enum dl_status dl_place(const struct dl_topology *t, const char *how, uint64_t seed, uint32_t n_ranks, uint32_t *device,
                        struct dl_error *err);

bool dl_placement_is_list(const char *how);

struct dl_places {
    uint32_t ranks, servers;
};
/* The same, and after the ranks' devices those of servers. Where ranks run does not depend on the servers, but for
 * list:, which names the devices of both. */
enum dl_status dl_place_with_servers(const struct dl_topology *t, const char *how, uint64_t seed, struct dl_places n,
                                     uint32_t *device, struct dl_error *err);

#endif
