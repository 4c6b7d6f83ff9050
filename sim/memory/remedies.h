/* remedies.h - changes that would make a step fit, found by trying: every changed job is lowered and its memory
 * counted.
 *
 * Single changes come first, from cheap to costly. If none is enough, the one that saves most is kept, and the others
 * are tried on top of it, and so on. What the software lacks is proposed only to a run that has it. */
#ifndef DL_MEMORY_REMEDIES_H
#define DL_MEMORY_REMEDIES_H

#include "sim/memory/memory_use.h"

struct dl_remedy {
    const char *change; /* "recompute full", "zero stage 1 and microbatch 1"; lives in the arena */
    double peak;        /* of the fullest stage then, with what is beside it */
    bool fits;
};

struct dl_remedies {
    struct dl_remedy *items;
    size_t n, capacity;
};

struct dl_remedy_request {
    struct dl_json strategy, workload; /* as the run has read them */
    uint32_t n_devices;
    const struct dl_software *software;
    const struct dl_device *device;
    struct dl_estimator *estimator;
    const char *placement; /* of the run, with its seed */
    uint64_t seed;
    /* OPTIONAL: whether this computer can hold the schedule of a changed job; those it cannot are no remedies. */
    bool (*has_room)(const void *user, const struct dl_job *changed);
    const void *user;
};

/* Changes that fit; if there are none, the last combination that was tried, which has the smallest peak. */
void dl_remedies_find(const struct dl_remedy_request *request, struct dl_arena *arena, struct dl_remedies *out);
void dl_remedies_release(struct dl_remedies *r);

#endif
