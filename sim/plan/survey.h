/* survey.h - who may be on whose links: asked of the placement, before anything runs. */
#ifndef DL_PLAN_SURVEY_H
#define DL_PLAN_SURVEY_H

#include "sim/plan/plan.h"

/* Whether something else may be on the links of such exchanges while they go on: sends between stages, exchanges of
 * gradients or parameters, exchanges of lockstep groups that do not go in step with these. Ranks are taken to send to
 * those 1, 2, 4, ... places further on, as rings, trees and recursive doubling do. Where some go on beside layers,
 * others of the same lockstep group are in their way too. */
enum dl_status dl_survey_meets(const struct dl_plan_request *request, dl_digits along, bool beside_layers, bool *out,
                               struct dl_error *err);
/* Whether such exchanges may cross links that change; where they may, lockstep groups (stage by stage) are marked, with
 * all that go in step with them. They may take any way through a network whose routes depend on load. */
enum dl_status dl_survey_crosses(const struct dl_plan_request *request, dl_digits along, bool *lockstep_groups,
                                 bool *out, struct dl_error *err);
/* Sets of replicas that none of these exchanges reaches out of: whoever shares a link with a replica, or goes in step
 * with it, is in its set. By replica: the first of its set. */
enum dl_status dl_survey_sets(const struct dl_plan_request *request, const dl_digits *along, size_t n,
                              uint32_t *first_of_set, struct dl_error *err);

#endif
