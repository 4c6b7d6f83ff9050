/* trace_parts.h - what the files of the trace share: the recorded slices, and text that grows. */
#ifndef DL_REPORT_TRACE_PARTS_H
#define DL_REPORT_TRACE_PARTS_H

#include "sim/engine/tap.h"
#include "sim/report/trace.h"

struct dl_counter {
    char name[160];
    double bytes[DL_TAP_BINS];
};

struct dl_trace {
    struct dl_trace_request request;
    struct dl_recorder recorder;
    uint32_t n_replicas; /* shown */
    struct dl_slice *slices;
    size_t n_slices, slices_capacity;
    uint32_t *track; /* by slice, once they are sorted: first of the work, then as many of sends as overlap, ... */
    struct dl_trace_left_out left_out;
    struct dl_counter *counters;
    size_t n_counters;
    double bin_s;
};

struct dl_text {
    char *bytes;
    size_t n, capacity;
};

/* trace_json.c: everything, as the trace event format has it. */
void dl_trace_tell(const struct dl_trace *t, bool with_instructions, struct dl_text *out);
/* How many slices of single instructions there would be. */
uint64_t dl_trace_count_instructions(const struct dl_trace *t);

#endif
