/* in_step.h - collectives among ranks in lockstep: those of a stage and replica (a lockstep group) and, with experts,
 * of a window of replicas.
 *
 * Where nothing else can be on their links, their time is known, and they are priced without contention. Where
 * something else can be, they are simulated on the network like any other collective. Placement alone decides which
 * of the two, before anything runs. */
#ifndef DL_STRATEGIES_IN_STEP_H
#define DL_STRATEGIES_IN_STEP_H

#include "sim/collective/seats.h"
#include "strategies/lower.h"

/* Replicas whose lockstep groups come to an exchange along these digits together. */
uint32_t dl_in_step_replicas(const struct dl_setting *s, dl_digits along);
/* All groups along them in a lockstep group and in those that are in step with it; and how many these are. Of all
 * lockstep groups it is the one whose groups reach over the most nodes: the others wait for it sooner or later. */
uint32_t dl_in_step_n_groups(const struct dl_setting *s, dl_digits along);
struct dl_group *dl_in_step_groups(const struct dl_setting *s, dl_digits along, const struct dl_topology *topology,
                                   const uint32_t *device_of_rank, struct dl_arena *arena);

/* Whether something else may be on the links of such exchanges while they go on: sends between stages, exchanges of
 * gradients or parameters, exchanges of lockstep groups that do not go in step with these. Ranks are taken to send to
 * those 1, 2, 4, ... places further on, as rings, trees and recursive doubling do. */
enum dl_status dl_in_step_meets(const struct dl_lower_request *request, dl_digits along, bool *out,
                                struct dl_error *err);
/* Whether such exchanges may cross links that change; where they may, lockstep groups (stage by stage) are marked, with
 * all that go in step with them. They may take any way through a network whose routes depend on load. */
enum dl_status dl_in_step_crosses(const struct dl_lower_request *request, dl_digits along, bool *lockstep_groups,
                                  bool *out, struct dl_error *err);

#endif
