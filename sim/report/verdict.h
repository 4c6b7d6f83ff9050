/* verdict.h - whether a step fits into memory: by how much, or by how much not, why, and what would help. */
#ifndef DL_REPORT_VERDICT_H
#define DL_REPORT_VERDICT_H

#include "sim/report/run_report.h"

void dl_verdict_print(const struct dl_run_report *r);
json_t *dl_verdict_json(const struct dl_run_report *r);

#endif
