/* shared_nics.h - collectives that overlap on the same NICs but are priced without contention: what that may hide. */
#ifndef DL_REPORT_SHARED_NICS_H
#define DL_REPORT_SHARED_NICS_H

#include "sim/report/run_report.h"

/* What sharing NICs would add to the step at most: links are never idle while something waits for them, so no more than
 * the collectives of lockstep groups that leave a node take by themselves, and no more than is hidden of those over
 * replicas. 0 where all of the former are simulated. */
double dl_shared_nics_s(const struct dl_run_report *r);
/* A line, where that is a percent of the step or more. */
void dl_shared_nics_print(const struct dl_run_report *r);

#endif
