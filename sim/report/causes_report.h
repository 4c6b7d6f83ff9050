/* causes_report.h - where the time of a step goes, for people and for programs. */
#ifndef DL_REPORT_CAUSES_REPORT_H
#define DL_REPORT_CAUSES_REPORT_H

#include "sim/report/run_report.h"

void dl_causes_print(const struct dl_run_report *r);
/* `causes` and `causes_by_stage`. */
json_t *dl_causes_json(const struct dl_run_report *r);
json_t *dl_causes_by_stage_json(const struct dl_stage_causes *stages, uint32_t n);

#endif
