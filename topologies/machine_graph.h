/* machine_graph.h - nodes and network as one graph, and the cheapest path through its working links.
 *
 * Vertices: those of the nodes, node by node, then the network's. A NIC (or, without NICs, a device) and its endpoint
 * are two vertices with a step between them that is no link and costs nothing. */
#ifndef DL_TOPOLOGIES_MACHINE_GRAPH_H
#define DL_TOPOLOGIES_MACHINE_GRAPH_H

#include "topologies/condition.h"

struct dl_machine_graph *dl_machine_graph_new(const struct dl_topology *t);
void dl_machine_graph_free(struct dl_machine_graph *g);

/* The links from device to device in their order, and how many; 0: there is no way. They stay until the next search. */
size_t dl_machine_graph_search(struct dl_machine_graph *g, const struct dl_topology *t, struct dl_trip trip,
                               uint32_t **links);

#endif
