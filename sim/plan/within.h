/* within.h - which of the collectives that may be simulated are, where all of them would take too long.
 *
 * Replicas wait for each other at the end of a step, so that one of them with all its collectives on the links tells
 * how long the step takes: as many replicas as may be are simulated whole, in sets that share no links with others.
 * Where one set is too much already, the kinds of collectives are that take the most time for the least effort. */
#ifndef DL_PLAN_WITHIN_H
#define DL_PLAN_WITHIN_H

#include "sim/plan/counts.h"
#include "sim/plan/plan.h"

struct dl_plan_choice {
    const struct dl_plan_request *request;
    struct dl_lowered *lowered; /* its plan is made, and what it simulates counted */
    bool *calls;                /* that may be simulated; of these some are left */
    const bool *meets;          /* by call: others on their links; else they cross links that change */
    bool *lockstep_groups; /* stage by stage: those that cross links that change, which must be; others are added */
};

enum dl_status dl_plan_within(const struct dl_plan_choice *choice, struct dl_error *err);

#endif
