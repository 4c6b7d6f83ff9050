#include <math.h>

#include "validation/mpi/measure/measure.h"

static struct dl_points points(const struct dl_messages *m, size_t from, size_t end)
{
    return (struct dl_points){m->bytes + from, m->seconds + from, end - from};
}

/* Two lines are better than one only if each is the lower one where it was fitted: software takes the faster way. */
static bool makes_sense(const struct dl_line *small, const struct dl_line *large)
{
    return small->intercept > 0 && small->intercept < large->intercept && small->slope > large->slope &&
           large->slope > 0;
}

/* Where the ways part is found by trying all places. */
struct dl_fitted dl_fit_messages(const struct dl_messages *m)
{
    const size_t least = 4; /* points of a line */
    const struct dl_line one = dl_fit_line(points(m, 0, m->n));
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
