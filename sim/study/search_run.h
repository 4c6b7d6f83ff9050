/* search_run.h - the points of a search run in workers: all of them screened, the best simulated.
 *
 * The rule to remember: results come in whatever order, so what is told of them is sorted first. */
#ifndef DL_STUDY_SEARCH_RUN_H
#define DL_STUDY_SEARCH_RUN_H

#include "sim/report/search_report.h"
#include "sim/study/search_known.h"

struct dl_search_run {
    struct dl_search search;
    struct dl_search_report report;
    struct dl_refusals refused, lost;
    struct dl_known *known;     /* NULL: nothing */
    struct dl_candidate *found; /* of the points that are run now, in whatever order they come */
    size_t n_found, capacity;
    size_t n_now;
    double begun_s;
    const char *what; /* happens to these points */
};

/* All points by the analytic engine, then the best `top` with the network, into the report. They return the number of a
 * signal that ended them, or 0. */
int dl_search_screen(struct dl_search_run *r, struct dl_error *err);
int dl_search_simulate(struct dl_search_run *r, size_t top, struct dl_error *err);

#endif
