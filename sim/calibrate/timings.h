/* timings.h - measured times of collectives and of messages, as benchmarks print them.
 *
 * The format is detected from the content: nccl-tests (and rccl-tests), the OSU micro-benchmarks (osu_latency,
 * osu_bw), the Intel MPI benchmarks' PingPong, or the JSON of dlsim-measure. Other lines between the rows are
 * skipped, and so are the prefixes of mpirun and srun. */
#ifndef DL_CALIBRATE_TIMINGS_H
#define DL_CALIBRATE_TIMINGS_H

#include "sim/collective/collective.h"

enum dl_timed_what {
    DL_TIMED_COLLECTIVE,
    DL_TIMED_MESSAGE, /* one way of a ping-pong */
    DL_TIMED_STREAM,  /* a message of many that are on their way at once */
};

struct dl_timing {
    double bytes, time_s;
};

struct dl_timings {
    const char *name;   /* of the file */
    const char *format; /* "nccl-tests" */
    enum dl_timed_what timed;
    enum dl_op op;          /* DL_N_OPS: the file does not say */
    uint32_t n_ranks;       /* 0: the file does not say */
    uint32_t *host, *slot;  /* by rank: hosts in the order of their first ranks, and the number of the device there */
    struct dl_timing *rows; /* in the order of the file; the same bytes may come again */
    size_t n_rows, capacity;
};

/* Read a file. Names and ranks live in the arena; dl_timings_release is for the rest, also after an error. */
enum dl_status dl_timings_load(const char *path, struct dl_arena *arena, struct dl_timings *out, struct dl_error *err);
/* The same for text that came from a file of that name. */
enum dl_status dl_timings_parse(const char *text, const char *name, struct dl_arena *arena, struct dl_timings *out,
                                struct dl_error *err);
void dl_timings_release(struct dl_timings *t);

#endif
