/* sweep_point.h - a point of a sweep as a run: its columns are options of `dlsim run` and values of --set. */
#ifndef DL_STUDY_SWEEP_POINT_H
#define DL_STUDY_SWEEP_POINT_H

#include "sim/session/session.h"
#include "sim/sweep/sweep.h"

/* Whether every column that is an option has values that it takes, and the options that a run needs are there. */
enum dl_status dl_sweep_check_options(const struct dl_sweep *s, struct dl_error *err);

/* Texts live in the arena. */
void dl_sweep_request(const struct dl_sweep *s, uint64_t point, struct dl_arena *arena, struct dl_session_request *out);

/* What the points of a process share. */
struct dl_sweep_means {
    struct dl_machines *machines; /* OPTIONAL */
    double memory_bytes;          /* of this computer, that a point may have; 0: what is free */
};

/* Whether a point may have an engine that needs SimGrid, as that has which is taken where none is named. */
bool dl_sweep_simulates(const struct dl_sweep *s);

/* As workers.h wants them: read a point; its errors become its result. */
void *dl_sweep_open(const struct dl_sweep *s, uint64_t point, const struct dl_sweep_means *means);
/* Whether its engine allows one run a process. */
bool dl_sweep_stands_alone(const void *opened);
/* Run it: {"status", "reason", "files", "figures", "answer"}, as store.h takes it. */
json_t *dl_sweep_run(void *opened);
void dl_sweep_close_point(void *opened);

#endif
