/* storage.h - where samples come from and checkpoints go: a file system that all nodes share ("storage" of the system)
 * and storage in each node ("storage" of the node).
 *
 * Each is a vertex with a link to it, which takes what is written, and one back, which gives what is read. They come
 * after all other links: those that all share first, then node by node. */
#ifndef DL_TOPOLOGIES_STORAGE_H
#define DL_TOPOLOGIES_STORAGE_H

#include "sim/core/json.h"

struct dl_topology;

/* 0: nothing is said of it. */
struct dl_storage {
    double write_bytes_per_s, read_bytes_per_s; /* of all who use it together */
    double latency_s;
};

/* An object that is absent leaves zeros. */
enum dl_status dl_storage_read(struct dl_json object, struct dl_storage *out, struct dl_arena *arena,
                               struct dl_error *err);

/* That a node with it has more. */
uint32_t dl_node_storage_links(const struct dl_storage *s);

/* After those of the nodes and of the network. */
void dl_topology_add_storage(struct dl_topology *t);

/* The link out of it, or into it; UINT32_MAX: there is none. */
uint32_t dl_storage_link(const struct dl_topology *t, bool out_of_it);
uint32_t dl_node_storage_link(const struct dl_topology *t, uint32_t node, bool out_of_it);

bool dl_is_storage_link(const struct dl_topology *t, uint32_t link);
/* "storage -> network", "node3: host -> storage". */
void dl_storage_link_name(const struct dl_topology *t, uint32_t link, char *name, size_t bytes);

#endif
