/* memory_curve.h - bytes on a device of each stage over the step: the walk of memory_use.h at the times of a timeline.
 *
 * The rule to remember: an item counts with its fullest moment for as long as it runs, and with what it leaves from
 * then on. So the highest point of a curve is the peak that the report has. */
#ifndef DL_REPORT_MEMORY_CURVE_H
#define DL_REPORT_MEMORY_CURVE_H

#include "sim/memory/memory_use.h"
#include "sim/report/timeline.h"

struct dl_memory_span {
    double from_s, to_s; /* each begins where the one before it ends */
    struct dl_memory_use use;
};

struct dl_memory_curve {
    struct dl_memory_span *spans;
    size_t n, capacity;
};

/* One for each stage, from from_s to to_s on the clock of the timeline, for dl_memory_curves_free. If that holds
 * several steps, items are where they ran last. */
struct dl_memory_curve *dl_memory_curves(const struct dl_timeline *t, double from_s, double to_s);
void dl_memory_curves_free(struct dl_memory_curve *curves, uint32_t n_stages);

#endif
