/* job_counts.h - devices, ranks and micro-batches of a strategy file, which must fit together. */
#ifndef DL_STRATEGIES_JOB_COUNTS_H
#define DL_STRATEGIES_JOB_COUNTS_H

#include "strategies/job.h"

enum { DL_MOST_DEVICES = 2147483647 };

struct dl_job_asked {
    uint32_t devices, devices_in_file; /* 0: not told; if neither is, the product of the ways */
    struct dl_json order;              /* of axes; OPTIONAL */
};

/* Of a job whose strategies, one for each level in the table, have told their ways. */
enum dl_status dl_job_count(struct dl_json doc, const struct dl_job_asked *asked, const struct dl_stack *levels,
                            struct dl_job *job, struct dl_arena *arena, struct dl_error *err);

#endif
