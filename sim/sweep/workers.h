/* workers.h - points of a sweep in forked processes: cheap ones many to a process, each under a limit of time.
 *
 * The rule to remember: a point that crashes, hangs or cannot be had gets a result that says so, and the others go on.
 */
#ifndef DL_SWEEP_WORKERS_H
#define DL_SWEEP_WORKERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/core/error.h"

struct dl_workers_request {
    const uint64_t *points;
    size_t n_points, n_workers;
    bool simulates;   /* points may need SimGrid: it is loaded once, before workers are forked */
    double limit_s;   /* of a point */
    const char *file; /* the sweep file, for workers that are not forked from here */
    /* In a worker: read what the point needs, for the three functions after it. */
    void *(*open)(void *user, uint64_t point);
    /* Whether a process can run only one such point. Then it is run in one that is forked from the worker, which has
     * read what the points share. */
    bool (*stands_alone)(const void *opened);
    /* The result, a JSON object with `status`; `point` and `seconds` are added to it. */
    json_t *(*run)(void *opened);
    void (*close)(void *opened);
    /* In the parent: a result. An error ends the whole. */
    enum dl_status (*take)(void *user, const json_t *result, struct dl_error *err);
    /* In the parent, some times a second. An error ends the whole. */
    enum dl_status (*tick)(void *user, size_t n_done, struct dl_error *err);
    void *user;
};

/* Runs all of them. After SIGINT, SIGTERM or SIGHUP it ends the children, takes what they had finished, and returns the
 * number of the signal; else 0. */
int dl_workers_run(const struct dl_workers_request *request, struct dl_error *err);

/* Call tick() if it was last called a while ago, at *ticked_s, which is then now. */
void dl_workers_tick(const struct dl_workers_request *request, double *ticked_s, size_t n_done, struct dl_error *err);

/* What `dlsim sweep` calls: dl_workers_run, unless a program has put another way in its place (sweep_mpi.c). */
extern int (*dl_sweep_workers)(const struct dl_workers_request *request, struct dl_error *err);

#endif
