/* effort.h - how long this computer takes to simulate collectives, counted before the run.
 *
 * Each bundle takes a few microseconds. Where many messages share links, each one that ends changes the rates of
 * those still in flight, and the solver visits all of their links again. */
#ifndef DL_COLLECTIVE_EFFORT_H
#define DL_COLLECTIVE_EFFORT_H

#include "sim/collective/collective.h"

/* That the collective is on the network. */
double dl_count_bundles(const struct dl_collective *c, bool fluid);

struct dl_effort {
    double messages;
    double in_flight; /* messages at once, at most */
    double links;     /* that a message crosses: see below */
};
/* The mean of a message of each rank, from all rounds, while nothing else is there. */
enum dl_status dl_count_links(const struct dl_collective *c, double *out, struct dl_error *err);
/* By its rounds. */
enum dl_status dl_effort_of(const struct dl_collective *c, struct dl_effort *out, struct dl_error *err);
/* Links that are looked at where n such collectives begin together, at most. */
double dl_effort_together(const struct dl_effort *e, uint32_t n);

#endif
