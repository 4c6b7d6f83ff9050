/* split.h - the best division of a mini-batch into micro-batches under a limit of workspace.
 *
 * Fast convolution algorithms need workspace that grows with the samples; where it does not fit, a library falls back
 * to a slow one. Dividing the mini-batch lets the fast one fit (Oyama et al. 2018, Accelerating deep learning
 * frameworks with micro-batches, section III-B: dynamic programming over T(b) = min over s of t(s) + T(b - s)). */
#ifndef DL_KERNELS_SPLIT_H
#define DL_KERNELS_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* One way to do so many samples in a call. */
struct dl_micro {
    const char *way;
    int64_t samples;
    double seconds, workspace_bytes;
};

/* Fills how often each is called, of what a mini-batch of `samples` is done with in the least time, and returns that
 * time; INFINITY (and all 0) if there is none within the limit. Of equal times the earlier in the list wins. */
double dl_split(const struct dl_micro *micros, size_t n, int64_t samples, double limit_bytes, int64_t *calls);

/* The fastest that does all samples in one call within the limit; NULL: there is none. */
const struct dl_micro *dl_undivided(const struct dl_micro *micros, size_t n, int64_t samples, double limit_bytes);

#endif
