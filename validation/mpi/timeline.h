/* timeline.h - what this rank does when: seconds by cause, and the slices of one step for a trace.
 *
 * Every instant of the main thread has exactly one cause, the one switched to last. Exchanges that go on beside it are
 * slices of their own and no cause. */
#ifndef DL_MPI_TIMELINE_H
#define DL_MPI_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/engine/recorder.h"
#include "validation/mpi/pacer.h"

#define DL_END_OF_STEP UINT32_MAX

struct dl_moment {
    enum dl_slice_kind kind;
    uint32_t stage, replica;
    uint32_t item;     /* of the stage's schedule, or DL_END_OF_STEP */
    uint32_t to_stage; /* SEND */
    enum dl_cause cause;
    enum dl_op op;
    double from_s, to_s, bytes;
    double by_cause[DL_N_CAUSES]; /* WORK */
};

struct dl_moments {
    struct dl_moment *list;
    size_t n, capacity;
};

struct dl_rank_timeline {
    double zero_s; /* by the clock */
    struct dl_pacer *pacer;
    enum dl_cause cause;
    double since_s;
    double by_cause[DL_N_CAUSES];
    double by_item[3], optimizer_s; /* forward, backward, weight gradients; without waits between items */
    bool records;
    struct dl_moments moments;
    struct dl_moments exchanges; /* written by whoever does them */
};

/* Seconds since all ranks agreed to begin. */
double dl_now_s(const struct dl_rank_timeline *l);
/* From now on another cause; returns the one before. */
enum dl_cause dl_switch_cause(struct dl_rank_timeline *l, enum dl_cause cause);
/* As if none had passed: by cause and by item. */
void dl_forget_times(struct dl_rank_timeline *l);
void dl_add_moment(struct dl_moments *moments, struct dl_moment moment);

#endif
