/* pool.h - many runs at once, each in a process of its own, because SimGrid allows only one simulation a process.
 *
 * The rule to remember: a job sees what its parent had read before, and nothing of other jobs; all that comes back is
 * its result, bytes without pointers. So the results do not depend on how many workers there are. */
#ifndef DL_SESSION_POOL_H
#define DL_SESSION_POOL_H

#include <stddef.h>

#include "sim/core/error.h"

struct dl_pool_request {
    size_t n_jobs;
    size_t n_workers; /* at once; 0: as many as there are processors */
    size_t result_bytes;
    void (*run)(void *user, size_t job, void *result); /* in a child; the result was zero */
    void *user;
    double limit_s;   /* a job that takes longer is ended, with the error DL_LATE; 0: none is */
    bool simulates;   /* jobs need SimGrid: it is loaded once, before they are forked */
    bool all_in_time; /* after one that was late, no other is started, and all that are left have its error */
    const char *what; /* "rows": a progress line on terminals; NULL: none */
};

size_t dl_pool_processors(void);
/* How many go on at once. */
size_t dl_pool_workers(const struct dl_pool_request *request);

/* results has room for n_jobs times result_bytes, errors for n_jobs; both in the order of the jobs. A job that crashes
 * or exits has an error, and its result is zero; the others go on. */
void dl_pool_run(const struct dl_pool_request *request, void *results, struct dl_error *errors);
/* Fail where any of them has an error: an answer without its result would look complete. `where` is the option or
 * command that asked for the runs. */
enum dl_status dl_pool_check(const struct dl_pool_request *request, const struct dl_error *errors, const char *where,
                             struct dl_error *err);

#endif
