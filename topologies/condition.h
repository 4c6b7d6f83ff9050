/* condition.h - the state of the links of a machine: what share of its bandwidth each has, and the detours around
 * those that have failed.
 *
 * Routing sees it through dl_topology_route: a route that would cross a failed link is replaced by the cheapest one
 * that does not, as a fabric manager does. If there is none, the route stays, and what takes it waits. */
#ifndef DL_TOPOLOGIES_CONDITION_H
#define DL_TOPOLOGIES_CONDITION_H

#include "topologies/route.h"

struct dl_topology;
struct dl_machine_graph;

struct dl_condition {
    double *fraction; /* by link, of the bandwidth in the system file; NULL: no link has changed */
    uint32_t n_failed;
    uint64_t version;               /* grows with every change: routes found before may be others now */
    struct dl_machine_graph *graph; /* made when the first way around is looked for */
};

void dl_condition_release(struct dl_condition *c);

void dl_condition_set(struct dl_condition *c, const struct dl_topology *t, uint32_t link, double fraction);
/* Every link is as its file has it again. */
void dl_condition_reset(struct dl_condition *c);

static inline double dl_link_fraction(const struct dl_condition *c, uint32_t link)
{
    return c->fraction ? c->fraction[link] : 1;
}

bool dl_crosses_failed(const struct dl_condition *c, const struct dl_route *route);

/* Devices of a route. `key` tells apart what hashing routes apart. */
struct dl_trip {
    uint32_t from, to;
    uint64_t key;
};

/* Replace the route by the cheapest one over links that work, by latency + 1 MB / bandwidth, equal ones by hash. False:
 * there is none, and the route is as it was. */
bool dl_route_around(const struct dl_topology *t, struct dl_trip trip, struct dl_route *route);

#endif
