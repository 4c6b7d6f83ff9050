/* sweep_slurm.h - a sweep as a job array of Slurm: each job has a shard, and one after them merges the parts. */
#ifndef DL_APP_SWEEP_SLURM_H
#define DL_APP_SWEEP_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/core/error.h"

struct dl_slurm_request {
    const char *file, *output; /* the sweep, and its database */
    const char *partition;     /* NULL: Slurm's default */
    size_t n_jobs;
    bool dry_run; /* only say what would be submitted */
};

/* Write OUTPUT.sbatch and submit it. */
enum dl_status dl_sweep_submit(const struct dl_slurm_request *request, struct dl_error *err);

#endif
