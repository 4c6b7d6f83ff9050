/* memory_floor.h - bytes that some pipeline stage needs at least, without programs or schedule.
 *
 * The rule to remember: it is never above the peak of the fullest stage (memory_use.h), so a step whose floor does not
 * fit into a device need not be looked at any further. */
#ifndef DL_MEMORY_MEMORY_FLOOR_H
#define DL_MEMORY_MEMORY_FLOOR_H

#include "strategies/job.h"

/* The model must be built for the micro-batch of the job, and the job suit its software. */
double dl_memory_floor(const struct dl_job *job, const struct dl_model *model);

#endif
