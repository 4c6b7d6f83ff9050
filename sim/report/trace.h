/* trace.h - a training step as a Chrome trace (trace event format, JSON), to be viewed in Perfetto.
 *
 * A process per pipeline stage and replica, a track for its work and its waiting, tracks for its sends and
 * collectives, and counters for the links that carried most. Times are microseconds of simulated time. It holds the
 * first replica, or all of them if they are few, and a bounded number of slices: what is left out is counted. */
#ifndef DL_REPORT_TRACE_H
#define DL_REPORT_TRACE_H

#include "sim/engine/recorder.h"
#include "strategies/lower.h"
#include "topologies/topology.h"

enum {
    DL_TRACE_SLICES = 1 << 20, /* that the file may hold */
    DL_TRACE_CREWS = 64,       /* stages x replicas, to show all replicas */
    DL_TRACE_LINKS = 16,       /* with a counter */
};

struct dl_trace_request {
    const struct dl_setting *setting;
    const struct dl_lowered *lowered;
    const struct dl_topology *topology;
    size_t most_slices; /* 0: DL_TRACE_SLICES */
};

struct dl_trace;
struct dl_trace *dl_trace_new(const struct dl_trace_request *request);
void dl_trace_free(struct dl_trace *t);

/* For the training to fill; lives as long as the trace. */
const struct dl_recorder *dl_trace_recorder(const struct dl_trace *t);

/* Take over the counters of a tap (tap.h) before it is destroyed. */
struct dl_engine;
void dl_trace_count_links(struct dl_trace *t, const struct dl_engine *tap);

struct dl_trace_left_out {
    uint32_t replicas;     /* all but the first, if they are not few */
    uint64_t slices;       /* that came when there was no more room */
    uint64_t instructions; /* slices inside of slices: all of them, if they do not fit */
};
/* Whole or not at all; "-" is standard output. */
enum dl_status dl_trace_write(struct dl_trace *t, const char *path, struct dl_trace_left_out *left_out,
                              struct dl_error *err);

#endif
