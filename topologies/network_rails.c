/* network_rails.c - the rail-optimised Clos of GPU clusters: in a pod of children[0] nodes, all NICs number k are on
 * one leaf (rail k), so devices of the same slot reach each other over one switch. Above the leaves it is a fat tree.
 */
#include "topologies/network_fat_tree.h"

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_fat_tree_options *const o = options;
    const uint32_t rail_nodes = o->children.n ? (uint32_t)o->children.items[0] : 1;
    return dl_fat_tree_build(net, o, rail_nodes, arena, err);
}

static const struct dl_fat_tree_options defaults;

const struct dl_network_kind dl_network_rails = {
    .name = "rails",
    .doc = "a fat tree with NIC k of the nodes of a pod on leaf k of the pod",
    .fields = dl_fat_tree_fields,
    .n_fields = DL_N_FAT_TREE_FIELDS,
    .options_size = sizeof(struct dl_fat_tree_options),
    .defaults = &defaults,
    .build = build,
    .route = dl_fat_tree_route,
    .name_link = dl_fat_tree_name_link,
    .ends = dl_fat_tree_ends,
};
