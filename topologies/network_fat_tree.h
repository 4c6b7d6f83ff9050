/* network_fat_tree.h - the fat tree, for the networks that are one with other places for their endpoints. */
#ifndef DL_TOPOLOGIES_NETWORK_FAT_TREE_H
#define DL_TOPOLOGIES_NETWORK_FAT_TREE_H

#include "topologies/network_parts.h"

struct dl_fat_tree_options {
    struct dl_cable cable;
    struct dl_int_list children, parents, cables; /* per level, from the endpoints up */
    struct dl_json uplinks;                       /* bytes per second of a cable to level 2, 3, ... */
    int64_t routing, flows;
};

enum { DL_N_FAT_TREE_FIELDS = 9 };
extern const struct dl_field dl_fat_tree_fields[DL_N_FAT_TREE_FIELDS];

/* rail_nodes 0: endpoints hang below the leaves in order. Else NIC k of each rail_nodes nodes (a pod) is on leaf k of
 * the pod; rail_nodes is then children[0]. */
enum dl_status dl_fat_tree_build(struct dl_network *net, const struct dl_fat_tree_options *options, uint32_t rail_nodes,
                                 struct dl_arena *arena, struct dl_error *err);

/* Slots of struct dl_network_kind. */
enum dl_status dl_fat_tree_route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                                 const struct dl_load *load, struct dl_route *out, struct dl_error *err);
void dl_fat_tree_name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes);
struct dl_link_ends dl_fat_tree_ends(const struct dl_network *net, uint32_t link);

#endif
