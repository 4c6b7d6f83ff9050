/* timed_alone.h - which collectives may share links with others but are priced without contention. */
#ifndef DL_REPORT_TIMED_ALONE_H
#define DL_REPORT_TIMED_ALONE_H

#include "sim/report/run_report.h"

/* Of a step, on every rank: among ranks in lockstep, copies, and over replicas. */
double dl_n_timed_alone(const struct dl_run_report *r);
/* One line, or nothing if there are none. */
void dl_timed_alone_print(const struct dl_run_report *r);
/* By cause and operation, those of which some are: how many are, of how many. */
json_t *dl_timed_alone_json(const struct dl_run_report *r);

#endif
