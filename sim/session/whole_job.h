/* whole_job.h - a strategy with the software and the model that it names, read without a machine. */
#ifndef DL_SESSION_WHOLE_JOB_H
#define DL_SESSION_WHOLE_JOB_H

#include "sim/session/session.h"

struct dl_whole_job {
    struct dl_job job;
    struct dl_software software;
    struct dl_model model;
};

/* What the request gives goes before what the strategy names. The job points into `out`. */
enum dl_status dl_whole_job_read(struct dl_json strategy, const struct dl_session_request *given,
                                 struct dl_arena *arena, struct dl_whole_job *out, struct dl_error *err);

#endif
