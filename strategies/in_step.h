/* in_step.h - collectives among ranks in lockstep: those of a stage and replica (a lockstep group) and, with experts,
 * of a window of replicas. What they take without contention is asked of these groups. */
#ifndef DL_STRATEGIES_IN_STEP_H
#define DL_STRATEGIES_IN_STEP_H

#include "sim/collective/seats.h"
#include "strategies/lower.h"

/* The sets of digits along which ranks in lockstep, or that share experts, communicate; returns how many these are. */
enum { DL_MOST_IN_STEP = 8 + DL_MOST_BROUGHT };
size_t dl_in_step_kinds(const struct dl_setting *s, dl_digits kinds[DL_MOST_IN_STEP]);

/* All groups along them in a lockstep group and in those that are in step with it; and how many these are. Of all
 * lockstep groups it is the one whose groups reach over the most nodes: the others wait for it sooner or later. */
uint32_t dl_in_step_n_groups(const struct dl_setting *s, dl_digits along);
struct dl_group *dl_in_step_groups(const struct dl_setting *s, dl_digits along, const struct dl_topology *topology,
                                   const uint32_t *device_of_rank, struct dl_arena *arena);

#endif
