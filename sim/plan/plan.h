/* plan.h - which collectives of ranks in lockstep are simulated on the links, and which are priced.
 *
 * Where nothing else can be on their links, their time is known, and they are priced without contention. Where
 * something else can be, they are simulated on the network like any other collective, as long as that is not too much;
 * where it is, some of them are: see within.h. Placement and programs decide, before anything runs: blocks are then
 * fused by the plan. */
#ifndef DL_PLAN_PLAN_H
#define DL_PLAN_PLAN_H

#include "strategies/lower.h"

struct dl_plan_request {
    const struct dl_job *job;
    const struct dl_topology *topology;
    const uint32_t *device_of_rank;
    /* All of a step are simulated if they are at most so many, by both counts. 0: none are. */
    struct dl_played most_played;
    double most_in_part; /* bundles, with the messages between stages, where some are simulated and others are not */
    /* Links whose bandwidth changes on the way: what may cross them is simulated, however many these are, or refused
     * where that cannot be. */
    const uint32_t *changing;
    size_t n_changing;
};

/* Make the plan of a step, count what it simulates, and give its templates their parts. */
enum dl_status dl_plan_lowered(const struct dl_plan_request *request, struct dl_arena *arena, struct dl_lowered *l,
                               struct dl_error *err);
/* Shifts and tokens that go to nodes first are never simulated. */
bool dl_plan_always_prices(const struct dl_comm *comm);
/* Price all collectives of ranks in lockstep instead. */
void dl_plan_nothing(struct dl_lowered *l);

#endif
