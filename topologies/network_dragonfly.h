/* network_dragonfly.h - the parts of a dragonfly and the numbers of its links, for its routing. */
#ifndef DL_TOPOLOGIES_NETWORK_DRAGONFLY_H
#define DL_TOPOLOGIES_NETWORK_DRAGONFLY_H

#include "topologies/network_parts.h"

enum dl_dragonfly_local { DL_LOCAL_ALL_TO_ALL, DL_LOCAL_GRID, DL_LOCAL_LEAF_SPINE };
enum dl_dragonfly_routing { DL_DRAGONFLY_MINIMAL, DL_DRAGONFLY_VALIANT, DL_DRAGONFLY_ADAPTIVE };

/* Switches of a group are numbered from 0; in a leaf_spine group first the leaves, then the spines. Links in order: two
 * per endpoint (up, down), the local ones group by group, the global ones by the group that they leave. */
struct dl_dragonfly {
    enum dl_dragonfly_local local;
    enum dl_dragonfly_routing routing;
    uint32_t n_groups, nodes_per_group;
    uint32_t n_switches;        /* of a group, those with endpoints */
    uint32_t n_spines;          /* leaf_spine; else 0 */
    uint32_t n_columns, n_rows; /* grid; else 0 */
    uint32_t links_per_pair;    /* of groups */
    uint32_t n_local;           /* directed links inside a group */
    uint32_t first_local, first_global;
    double local_bandwidth_bytes_per_s, global_bandwidth_bytes_per_s;
    bool nics_across_switches;
};

/* Where an endpoint sits. */
uint32_t dl_dragonfly_group(const struct dl_network *net, uint32_t endpoint);
uint32_t dl_dragonfly_switch(const struct dl_network *net, uint32_t endpoint);

/* The link between two switches of a group that are joined; whether they are. */
uint32_t dl_dragonfly_local_link(const struct dl_dragonfly *d, uint32_t group, uint32_t from, uint32_t to);
bool dl_dragonfly_joined(const struct dl_dragonfly *d, uint32_t from, uint32_t to);

/* The j-th link of a pair of groups, and the switch of `group` that it leaves; the way back has the same j. */
uint32_t dl_dragonfly_global_link(const struct dl_dragonfly *d, uint32_t group, uint32_t other, uint32_t j);
uint32_t dl_dragonfly_gateway(const struct dl_dragonfly *d, uint32_t group, uint32_t other, uint32_t j);

/* Slot of struct dl_network_kind. */
enum dl_status dl_dragonfly_route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                                  const struct dl_load *load, struct dl_route *out, struct dl_error *err);

#endif
