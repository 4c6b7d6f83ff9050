#include <math.h>

#include "validation/mpi/measure/measure.h"

static struct dl_points points(const struct dl_messages *m, size_t from, size_t end)
{
    return (struct dl_points){m->bytes + from, m->seconds + from, end - from};
}

/* Two lines are better than one only if each is the lower one where it was fitted: software takes the faster way. */
static bool makes_sense(const struct dl_line *small, const struct dl_line *large)
{
    const double most_ratio = 100; /* of bandwidths, in transport files */
    return small->intercept > 0 && small->intercept < large->intercept && large->slope > 0 &&
           small->slope > large->slope && small->slope < most_ratio * large->slope;
}

/* Noise may put it below zero at no bytes, where nothing can be. */
static struct dl_line fit_all(const struct dl_messages *m)
{
    const struct dl_line line = dl_fit_line(points(m, 0, m->n));
    return line.intercept >= 0 ? line : dl_fit_line_through_origin(points(m, 0, m->n));
}

/* Where the ways part is found by trying all places. */
struct dl_fitted dl_fit_messages(const struct dl_messages *m)
{
    const size_t least = 4; /* points of a line */
    const struct dl_line one = fit_all(m);
    struct dl_fitted best = {.small = one, .large = one, .small_until_bytes = m->bytes[m->n - 1]};
    double misfit = one.misfit;
    for (size_t i = least; i + least <= m->n; i++) {
        const struct dl_line small = dl_fit_line(points(m, 0, i)), large = dl_fit_line(points(m, i, m->n));
        if (!makes_sense(&small, &large) || small.misfit + large.misfit >= misfit) continue;
        misfit = small.misfit + large.misfit;
        best = (struct dl_fitted){small, large, true, m->bytes[i - 1]};
    }
    return best;
}

static double at(const struct dl_line *l, double bytes) { return l->intercept + l->slope * bytes; }

double dl_fitted_s(const struct dl_fitted *f, double bytes) { return fmin(at(&f->small, bytes), at(&f->large, bytes)); }
