/* networks.h - the kinds of networks, one file each, and what their files share.
 *
 * networks.c reads the keys "kind" and "reduces" itself; a kind's fields name all the others. */
#ifndef DL_TOPOLOGIES_NETWORKS_H
#define DL_TOPOLOGIES_NETWORKS_H

#include "topologies/network.h"

extern const struct dl_network_kind dl_network_crossbar;
extern const struct dl_network_kind dl_network_full_mesh;
extern const struct dl_network_kind dl_network_fat_tree;
extern const struct dl_network_kind dl_network_rails;
extern const struct dl_network_kind dl_network_dragonfly;
extern const struct dl_network_kind dl_network_torus;
extern const struct dl_network_kind dl_network_graph;

/* The fields of a struct dl_cable in a kind's options: fields[] = {DL_CABLE_FIELDS(struct options, cable), ...}. */
/* clang-format off */
#define DL_CABLE_FIELDS(options, member)                                                                               \
    {"bandwidth_bytes_per_s", DL_NUMBER, offsetof(options, member.bandwidth_bytes_per_s), 1, 1e18, false, NULL,        \
     "of an endpoint's link, per direction"},                                                                          \
    {"latency_s", DL_NUMBER, offsetof(options, member.latency_s), 0, 1, false, NULL,                                   \
     "of one link with the switch behind it"},                                                                         \
    {"link", DL_TEXT, offsetof(options, member.link_kind), 0, 0, false, NULL,                                          \
     "kind of link, as transport files name it"}
/* clang-format on */

/* Read the "network" object and build its links into net->topology; n_nodes and endpoints_per_node are set already.
 * Without a topology (NULL) its keys are read and nothing is built. */
enum dl_status dl_network_read(struct dl_json object, struct dl_network *net, struct dl_arena *arena,
                               struct dl_error *err);

#endif
