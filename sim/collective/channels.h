/* channels.h - rings through all ranks of a group, found from the links inside its nodes as NCCL finds its channels.
 *
 * Where devices are joined in pairs (NVLink meshes, xGMI) the search takes as many rings through the node as its lanes
 * can carry at once, each in both directions. Through a switch one ring fills every port. Between nodes as many
 * channels enter and leave each node at each slot, so that every NIC is used equally. */
#ifndef DL_COLLECTIVE_CHANNELS_H
#define DL_COLLECTIVE_CHANNELS_H

#include "sim/collective/collective.h"

struct dl_channels {
    uint32_t n_channels, n;
    uint32_t *order;    /* [channel * n + position]: rank */
    uint32_t *position; /* [channel * n + rank] */
};

void dl_channels_find(const struct dl_group *g, struct dl_arena *arena, struct dl_channels *out);

/* For the slots of algorithms with a lane for each channel; c->plan is the struct dl_channels. */
enum dl_status dl_channels_prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err);
uint32_t dl_channels_lanes(const struct dl_collective *c);

/* Rings through `n` devices of a node, as orders of 0..n-1, ring after ring; returns their number (at least 1). */
uint32_t dl_node_rings(const struct dl_node *node, const uint32_t *device, uint32_t n, struct dl_arena *arena,
                       uint32_t **orders);

#endif
