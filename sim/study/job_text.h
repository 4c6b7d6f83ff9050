/* job_text.h - what a strategy file asks for as one text, the same for all files that ask for the same.
 *
 * Defaults are filled in, and what has no effect is left out: entries of one way, the place of such an axis in the
 * order, the order of entries. The rule to remember: equal texts mean equal runs, but the other way round a file may
 * still find another way to say the same. */
#ifndef DL_STUDY_JOB_TEXT_H
#define DL_STUDY_JOB_TEXT_H

#include "strategies/job.h"

/* Of a job that was read and suited to its software and model; in the arena. */
const char *dl_job_text(const struct dl_job *job, struct dl_arena *arena);

#endif
