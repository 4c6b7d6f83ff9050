/* timeline.h - what happened when in a simulated step: work, waiting, sends and collectives of every stage and replica,
 * and what the busiest links carried. The trace (trace.h) and the pictures (sim/draw) read it.
 *
 * The rule to remember: slices may be read once dl_timeline_end has sorted them by stage, replica, track and time. It
 * holds the first replica, or all of them if they are few, and a bounded number of slices: what is left out is
 * counted. */
#ifndef DL_REPORT_TIMELINE_H
#define DL_REPORT_TIMELINE_H

#include "sim/engine/recorder.h"
#include "sim/engine/tap.h"
#include "strategies/software.h"
#include "topologies/topology.h"

enum {
    DL_TIMELINE_SLICES = 1 << 20, /* that it may hold */
    DL_TIMELINE_GROUPS = 64,      /* stages x replicas, to show all replicas */
    DL_TIMELINE_LINKS = 16,       /* with a counter */
    DL_TIMELINE_TRACKS = 1 << 16, /* of a group at most */
};

struct dl_timeline_request {
    struct dl_step step;                /* that is simulated; its programs may be NULL without curves of memory */
    const struct dl_software *software; /* for these */
    const struct dl_topology *topology;
    size_t most_slices; /* 0: DL_TIMELINE_SLICES */
};

/* Bytes of a link over time, in bins of bin_s seconds from 0 on. */
struct dl_counter {
    char name[160];
    double bytes[DL_TAP_BINS];
};

/* Tracks of a stage and replica come in groups: its work and its waiting, which need one track, and as many tracks of
 * sends and of collectives as overlap. */
enum dl_track_group { DL_TRACK_WORK, DL_TRACK_SENDS, DL_TRACK_EXCHANGES };

struct dl_timeline {
    struct dl_timeline_request request;
    struct dl_recorder recorder;
    uint32_t n_replicas; /* shown */
    struct dl_slice *slices;
    size_t n_slices, slices_capacity;
    uint32_t *track; /* by slice: group x DL_TIMELINE_TRACKS + number within the group + 1 */
    struct dl_counter *counters;
    size_t n_counters;
    double bin_s;
    struct {
        uint32_t replicas; /* all but the first, if they are not few */
        uint64_t slices;   /* that came when there was no more room */
    } left_out;
};

uint32_t dl_timeline_stages(const struct dl_timeline *t);
uint32_t dl_timeline_replicas(const struct dl_timeline *t); /* of the step */

struct dl_timeline *dl_timeline_new(const struct dl_timeline_request *request);
void dl_timeline_free(struct dl_timeline *t);

/* For the training to fill; lives as long as the timeline. */
const struct dl_recorder *dl_timeline_recorder(const struct dl_timeline *t);

/* Nothing more will come: sort and lay out, and take over the counters of a tap (tap.h) before it is destroyed. Without
 * a tap, as of a step that ran for real, there are no counters, and the request needs no topology. */
void dl_timeline_end(struct dl_timeline *t, const struct dl_engine *tap);

enum dl_track_group dl_slice_group(const struct dl_slice *s);

/* The seconds of the whole part that a slice of work is of; it may be the beginning of it. */
double dl_slice_whole_s(const struct dl_slice *s);

/* "F m3 c0", "wait: bubble", "F m3 c0 to stage 1", "allreduce". Returns name. */
enum { DL_SLICE_NAME = 64 };
const char *dl_slice_name(const struct dl_timeline *t, const struct dl_slice *s, char name[DL_SLICE_NAME]);
/* The first part of it; NULL is the end of the step. */
const char *dl_item_name(const struct dl_item *item, char name[DL_SLICE_NAME]);

#endif
