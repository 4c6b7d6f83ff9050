/* trace.h - a timeline as a Chrome trace (trace event format, JSON), to be viewed in Perfetto.
 *
 * A process per pipeline stage and replica, a track for its work and its waiting, tracks for its sends and
 * collectives, and counters for the links that carried most. Times are microseconds of simulated time. */
#ifndef DL_REPORT_TRACE_H
#define DL_REPORT_TRACE_H

#include "sim/report/timeline.h"

/* Whole or not at all; "-" is standard output. left_out: slices inside of slices, of single instructions, which are
 * left out all together if they do not fit beside the slices of the timeline. */
enum dl_status dl_trace_write(const struct dl_timeline *t, const char *path, uint64_t *left_out, struct dl_error *err);

#endif
