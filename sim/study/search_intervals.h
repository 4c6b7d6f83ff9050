/* search_intervals.h - how sure the steps of the best points are, and which of them cannot be told apart.
 *
 * As `dlsim run --sensitivity` and `dlsim compare` say it of two strategy files: constants that both steps rest on
 * cancel as far as both feel them alike. The rule to remember: steps are those of the simulation with the network, but
 * how much they change with a constant is found by the analytic engine, since that takes about a hundred runs. */
#ifndef DL_STUDY_SEARCH_INTERVALS_H
#define DL_STUDY_SEARCH_INTERVALS_H

#include "sim/report/search_report.h"
#include "sim/study/search_point.h"

/* Of the first `most` that were simulated; which they are and how many runs it took is noted in the report. */
enum dl_status dl_search_intervals(const struct dl_search *s, size_t most, struct dl_search_report *report,
                                   struct dl_error *err);

#endif
