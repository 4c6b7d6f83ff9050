/* copies.h - which copies between devices and their hosts are simulated. */
#ifndef DL_PLAN_COPIES_H
#define DL_PLAN_COPIES_H

#include "sim/plan/plan.h"

/* Where their paths are shared or change; `simulated` is by call. */
void dl_plan_copies(const struct dl_plan_request *request, struct dl_lowered *l, bool *simulated);

#endif
