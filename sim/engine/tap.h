/* tap.h - an engine that hands everything on to another and keeps, for every link, the bytes that it carried over time.
 *
 * A bundle's bytes are spread evenly over its time, from start to end. Time is cut into bins; when it outgrows them,
 * pairs are joined, so that memory does not grow with time. */
#ifndef DL_ENGINE_TAP_H
#define DL_ENGINE_TAP_H

#include "sim/engine/engine.h"

enum { DL_TAP_BINS = 256 };

/* Takes over the inner engine: destroying the tap destroys it. */
struct dl_engine *dl_tap_new(struct dl_engine *inner, size_t n_links);

/* Seconds of one bin; they begin at 0. */
double dl_tap_width_s(const struct dl_engine *tap);
/* Bytes by bin, or NULL if the link carried nothing. */
const double *dl_tap_bins(const struct dl_engine *tap, uint32_t link);

#endif
