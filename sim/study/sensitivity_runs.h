/* sensitivity_runs.h - a step simulated once per constant and side, with that constant changed a little. */
#ifndef DL_STUDY_SENSITIVITY_RUNS_H
#define DL_STUDY_SENSITIVITY_RUNS_H

#include "sim/study/figures.h"

struct dl_sensitivity_request {
    const struct dl_session *session;
    size_t n_workers; /* 0: as many as there are processors, and memory for */
    double limit_s;   /* of a run; one that takes longer is the error DL_LATE; 0: none */
    const char *what; /* a progress line on terminals; NULL: none */
    /* Share of the step: constants of one kind that together leave less of it open do not count. 0: all do. */
    double least_open;
    /* What is known of the model's own errors. NULL: the interval is of constants alone. */
    const struct dl_discrepancy *model;
};

/* The shipped document of these errors; the caller releases it. */
enum dl_status dl_discrepancy_load(struct dl_arena *arena, struct dl_json *doc, struct dl_error *err);
/* That of a session that was opened, and lives as long; by all families but `left_out`, if there is one. */
enum dl_status dl_discrepancy_of(struct dl_json doc, const struct dl_session *s, const char *left_out,
                                 struct dl_discrepancy *out, struct dl_error *err);

/* Of a session that was opened and not run yet, since SimGrid allows one run a process and these runs are in children.
 * Nothing but the engine, the options and the files of the session decide it. A run that is refused or fails tells
 * nothing; where the unchanged one fails, the session's own run will say why, and the result is empty. A run whose
 * process died is an error. Texts of documents must still be there. The effects live in the arena of the session. */
enum dl_status dl_sensitivity_find(const struct dl_sensitivity_request *request, struct dl_sensitivity *out,
                                   struct dl_error *err);

#endif
