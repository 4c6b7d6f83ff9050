/* machines.h - machines that are kept from session to session: what runs many steps on the same builds it once.
 *
 * The rule to remember: two sessions share a topology if their system documents are equal after inheritance and --set,
 * and nobody changes it. What a scenario does to its links is undone when the topology is given back. */
#ifndef DL_SESSION_MACHINES_H
#define DL_SESSION_MACHINES_H

#include "sim/collective/kept.h"
#include "sim/engine/engine.h"
#include "topologies/topology.h"
#include "topologies/transport.h"

struct dl_machines;

struct dl_machines *dl_machines_new(void);
/* All must have been given back. */
void dl_machines_free(struct dl_machines *m);

enum { DL_WHOLE_MACHINE = 0 }; /* for n_devices */

/* The machine of the document, or the slice that a job on so many devices of it gets. Of those that nobody uses, the
 * ones not used for longest go when there are too many. Give it back with dl_machines_give_back. */
enum dl_status dl_machines_take(struct dl_machines *m, struct dl_json doc, uint32_t n_devices, struct dl_topology **out,
                                struct dl_error *err);
void dl_machines_give_back(struct dl_machines *m, struct dl_topology *topology);

size_t dl_machines_count(const struct dl_machines *m);

/* dl_transport_rates of a topology that was taken, and by nobody else at the same time; they stay until it is given
 * back. */
double *dl_machines_rates(struct dl_machines *m, const struct dl_topology *topology,
                          const struct dl_transport *transport);
/* What was chosen for collectives on the topology, by estimators with the rates and the transport of `owner`, which
 * outlives it: another owner, or too much of it, and it is empty. Likewise for one that has taken it alone. */
struct dl_kept *dl_machines_choices(struct dl_machines *m, const struct dl_topology *topology, const void *owner);
/* After that: the links as an engine takes them. */
const struct dl_engine_link *dl_machines_links(struct dl_machines *m, const struct dl_topology *topology);

#endif
