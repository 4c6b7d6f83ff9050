/* failing_report.h - the failures of a whole run, for people and for programs. */
#ifndef DL_REPORT_FAILING_REPORT_H
#define DL_REPORT_FAILING_REPORT_H

#include <jansson.h>

#include "sim/campaign/failing_run.h"
#include "sim/report/sources.h"

/* `sources` are those of the figures that it rests on. */
void dl_failing_print(const struct dl_failing_run *f, const struct dl_topology *topology,
                      const struct dl_sources *sources);
/* Energy, carbon and money with failures; nothing if none is known. */
void dl_failing_print_footprint(const struct dl_failing_run *f);
json_t *dl_failing_json(const struct dl_failing_run *f, const struct dl_sources *sources);

#endif
