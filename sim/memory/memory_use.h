/* memory_use.h - bytes on a device of each pipeline stage at its fullest moment, by a walk of its program.
 *
 * What the program allocates and frees is all that counts. The parts are those of the fullest moment and sum to the
 * peak, PyTorch's max allocated; fragmentation is what its allocator holds beyond. */
#ifndef DL_MEMORY_MEMORY_USE_H
#define DL_MEMORY_MEMORY_USE_H

#include "strategies/lower.h"

struct dl_memory_use {
    double parameters, gradients, optimizer, activations, buffers, workspace; /* bytes; they sum to the peak */
    double peak;
    double fragmentation; /* not in the peak */
    double beside;        /* nor this, which the device has no room for either: outside of the allocator, and wasted */
    double on_host;       /* what is offloaded, at most */
};

/* use[0..n_stages). */
void dl_memory_of_programs(const struct dl_program *programs, uint32_t n_stages, const struct dl_software *software,
                           struct dl_memory_use *use);

/* The same, and a look at every moment of the walk: the fullest while an item of a stage goes on, and what is left
 * after it. The last of a stage has no item: it is the end of the step, which leaves what the step began with. */
struct dl_memory_watch {
    void *user;
    void (*see)(void *user, uint32_t stage, const struct dl_sequenced *item, const struct dl_memory_use *fullest,
                const struct dl_memory_use *left);
};
void dl_memory_watch_programs(const struct dl_program *programs, uint32_t n_stages, const struct dl_software *software,
                              struct dl_memory_use *use, const struct dl_memory_watch *watch);

/* What the devices of one node keep on their host, as if all were of the stage that keeps most there; whether that fits
 * into it, as far as the system file says how much it has. */
double dl_memory_of_host(const struct dl_topology *t, const struct dl_job *job, const struct dl_memory_use *use);
bool dl_memory_fits_host(const struct dl_topology *t, const struct dl_job *job, const struct dl_memory_use *use);
/* What devices that stream weights leave outside, once for all of them; the same of it. */
double dl_memory_outside(const struct dl_setting *setting, const struct dl_model *model);
bool dl_memory_fits_outside(const struct dl_topology *t, const struct dl_setting *setting,
                            const struct dl_model *model);
/* Parameters and optimizer states of the whole model, each once. */
double dl_memory_of_checkpoint(const struct dl_setting *setting, const struct dl_model *model);

#endif
