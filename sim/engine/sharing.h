/* sharing.h - max-min fair sharing of links among weighted flows, solved again only where something changed.
 *
 * A flow at rate r takes weight x r of each of its links. An allocation is the max-min one if and only if every flow
 * has a bottleneck: it runs at its own limit, or some link of its is full and no flow there is faster. The solver keeps
 * all rates but those near the change, and lets the solved set grow by the flows that lost their bottleneck until none
 * did. Links that all of their flows together could not fill are nobody's bottleneck, and left out. There is no time
 * here: see flows.h. */
#ifndef DL_ENGINE_SHARING_H
#define DL_ENGINE_SHARING_H

#include "sim/engine/engine.h"

struct dl_sharing;

/* The links must outlive it, unchanged. */
struct dl_sharing *dl_sharing_new(const struct dl_engine_link *links, size_t n_links);
void dl_sharing_free(struct dl_sharing *s);

/* A flow joins; its rate is 0 until the next settle. The id may be used again after the flow has left. */
uint32_t dl_sharing_join(struct dl_sharing *s, const struct dl_hop *hops, size_t n_hops, double rate_cap);
/* It is this part of all that its source sends at a time: for what is wanted of whole links. At first it is all. */
void dl_sharing_set_part(struct dl_sharing *s, uint32_t flow, double part);
void dl_sharing_leave(struct dl_sharing *s, uint32_t flow);
/* One will join or leave soon, n_before as in dl_coming_fn, at 2 or less: fetch what that needs. */
void dl_sharing_fetch_to_join(const struct dl_sharing *s, const struct dl_hop *hops, size_t n_hops, size_t n_before);
void dl_sharing_fetch_to_leave(const struct dl_sharing *s, uint32_t flow, size_t n_before);
void dl_sharing_set_bandwidth(struct dl_sharing *s, uint32_t link, double bytes_per_s);

/* Solve what is pending; changed(user, flow, rate) is called for each flow whose rate is not what it was. */
typedef void (*dl_rate_fn)(void *user, uint32_t flow, double rate);
void dl_sharing_settle(struct dl_sharing *s, dl_rate_fn changed, void *user);

/* Whether any flow crosses this link. */
bool dl_sharing_is_crossed(const struct dl_sharing *s, uint32_t link);
/* Whether a flow crosses this link, or one that has no bandwidth. */
bool dl_sharing_is_hit(const struct dl_sharing *s, uint32_t flow, uint32_t link);
bool dl_sharing_has_failed(const struct dl_sharing *s, uint32_t link);
/* Its hops into `hops`, which has room for them; returns how many they are. */
size_t dl_sharing_hops(const struct dl_sharing *s, uint32_t flow, struct dl_hop *hops);

/* What flows take from a link, as of the last settle. */
double dl_sharing_used(const struct dl_sharing *s, uint32_t link);
/* What they would take if each were alone. */
double dl_sharing_wanted(const struct dl_sharing *s, uint32_t link);
/* The same if all links were as in the beginning: that a link is slow does not make less wanted of it. */
double dl_sharing_wanted_of_whole(struct dl_sharing *s, uint32_t link);

#endif
