/* shapes.h - what the messages of a round load, kept from round to round.
 *
 * Where all messages of a round are equal, which links they cross and how many of them cross each does not depend on
 * their bytes: routing that adapts compares loads with the message itself. So a round with the same senders and
 * receivers as one before it has the same shape, in another phase, with another protocol, in the estimate and in the
 * simulation, and is not routed again. */
#ifndef DL_COLLECTIVE_SHAPES_H
#define DL_COLLECTIVE_SHAPES_H

#include "sim/collective/fold.h"

struct dl_shape {
    struct dl_hop *hops; /* weight: messages that cross the link */
    size_t n_hops;
    struct dl_reached {
        double n, slowest_s, all_s; /* messages, and the latencies of their links: the greatest, and the sum */
    } reached[DL_N_REACHES];
};

/* For the `shapes` of a group; none are known at first. */
struct dl_shapes *dl_shapes_new(void);
void dl_shapes_free(struct dl_shapes *shapes);
size_t dl_shapes_count(const struct dl_shapes *shapes);

/* Whether the k-th round of a lane has one: the group keeps shapes, and it goes neither with the round before nor with
 * the one after it. */
bool dl_has_shape(const struct dl_collective *c, uint32_t lane, uint32_t k);

/* The shape of the k-th round; it lives as long as the group's shapes. `tally` is scratch, empty before and after.
 * NULL: err says why. */
const struct dl_shape *dl_shape_of(const struct dl_collective *c, uint32_t lane, uint32_t k, const struct dl_pace *pace,
                                   struct dl_tally *tally, struct dl_error *err);

/* The latency of such a round with messages of so many bytes, each time that it comes. */
double dl_shape_latency_s(const struct dl_shape *shape, const struct dl_collective *c, const struct dl_round *round,
                          const struct dl_pace *pace, double message_bytes);

#endif
