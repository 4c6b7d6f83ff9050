/* collective_sizes.h - one operation over sizes and algorithms, for `collective --sizes`.
 *
 * Times are estimates, unless there is a way to simulate them: then each is simulated in a process of its own, and
 * cross-overs are only known to lie between two sizes. */
#ifndef DL_APP_COLLECTIVE_SIZES_H
#define DL_APP_COLLECTIVE_SIZES_H

#include "sim/app/options.h"
#include "sim/report/sizes_report.h"

struct dl_sizes_request {
    struct dl_estimator *estimator;
    struct dl_wish wish; /* its algorithm: auto for all that are possible, or names with commas between; no bytes */
    struct dl_sizes_range range;
    /* OPTIONAL: how long a choice takes. It is called in a child; NULL: as long as is estimated. */
    double (*simulate)(void *user, const struct dl_choice *choice, struct dl_error *err);
    void *user;
};

/* The lists of `out`, which live in the arena. */
enum dl_status dl_sizes_find(const struct dl_sizes_request *request, struct dl_arena *arena, struct dl_sizes *out,
                             struct dl_error *err);

#endif
