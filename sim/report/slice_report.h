/* slice_report.h - the shape of the part of a machine that a job got. */
#ifndef DL_REPORT_SLICE_REPORT_H
#define DL_REPORT_SLICE_REPORT_H

#include <jansson.h>

#include "topologies/topology.h"

/* A line, where the machine gives slices to jobs; else nothing. */
void dl_slice_print(const struct dl_topology *t, uint32_t n_devices);
/* null where it does not. */
json_t *dl_slice_json(const struct dl_topology *t);

#endif
