/* node_paths.h - the cheapest ways inside a node, found once when it is read. */
#ifndef DL_TOPOLOGIES_NODE_PATHS_H
#define DL_TOPOLOGIES_NODE_PATHS_H

#include "topologies/node.h"

/* Fill first_edge for every pair of vertices. */
void dl_node_find_paths(struct dl_node *node);

/* Fill device_nic: the nearest NIC by path cost, then the least used, then the first; UINT32_MAX if none is reached. */
void dl_node_assign_nics(struct dl_node *node);

/* Fill device_host: the host, else the socket over the fewest links, then the first; UINT32_MAX if none is reached. */
void dl_node_assign_hosts(struct dl_node *node);

#endif
