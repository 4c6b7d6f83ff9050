/* interiors.h - the kinds of parts that nodes are made of, one file each. */
#ifndef DL_TOPOLOGIES_INTERIORS_H
#define DL_TOPOLOGIES_INTERIORS_H

#include "topologies/node.h"

extern const struct dl_interior dl_interior_switch;
extern const struct dl_interior dl_interior_mesh;
extern const struct dl_interior dl_interior_torus;
extern const struct dl_interior dl_interior_pcie;

/* Read one element of "parts" and add what it describes; to no node (NULL): nothing. */
enum dl_status dl_interior_read(struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                                struct dl_error *err);

/* Add a hub with the next free name of PREFIX0, PREFIX1, ...; returns its vertex. */
uint32_t dl_interior_add_hub(struct dl_node *node, const char *prefix, bool reduces, struct dl_arena *arena);

#endif
