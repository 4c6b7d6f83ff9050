/* timing.h - how long a call takes: the median of samples, and how far they spread.
 *
 * Calls go in turn through sets of tensors that together are larger than the last cache, so that none finds its inputs
 * there. Samples are taken until the median is known well enough, or the time for this shape is over. */
#ifndef DL_KERNELS_TIMING_H
#define DL_KERNELS_TIMING_H

#include "kernels/harness.h"

struct dl_timing_plan {
    double spread;       /* wanted: the standard error of the median over the median */
    double most_s;       /* for one shape, after the warm-up; and for making its sets of tensors */
    double rotate_bytes; /* that the sets of tensors must have together */
    double warm_s; /* of calls before the first sample, at least: the clock follows the power of what ran before */
};

struct dl_timing {
    double seconds;   /* of one call: the median of the samples */
    double spread;    /* their median absolute deviation over the median */
    size_t n_samples; /* 0: there is none */
};

struct dl_timing dl_time(const struct dl_trial_spec *spec, const struct dl_timing_plan *plan);

/* Of a clock that only goes forward. */
double dl_now_s(void);

/* The time of the smallest thing that can be issued. */
struct dl_timing dl_time_launch(const struct dl_backend *backend);

/* The median and the relative spread of n > 0 samples, which are sorted on the way. */
struct dl_timing dl_timing_of(double *samples, size_t n);

#endif
