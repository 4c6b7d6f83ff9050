/* shared_nics.h - collectives that overlap on the same NICs but are priced without contention: what that may hide. */
#ifndef DL_REPORT_SHARED_NICS_H
#define DL_REPORT_SHARED_NICS_H

#include "sim/report/run_report.h"

/* How long collectives of lockstep groups that leave a node are under way together with those over replicas that
 * overlap with work, if both are spread evenly over the step: sharing NICs would make it so much longer at most. 0
 * where all of the former are simulated. */
double dl_shared_nics_s(const struct dl_run_report *r);
/* A line, where that is a percent of the step or more. */
void dl_shared_nics_print(const struct dl_run_report *r);

#endif
