#include "sim/core/message_fit.h"

#include <assert.h>
#include <math.h>

static struct dl_points part(struct dl_points p, size_t from, size_t end)
{
    return (struct dl_points){p.x + from, p.y + from, end - from};
}

/* Two lines are better than one only if each is the lower one where it was fitted: software takes the faster way. */
static bool makes_sense(const struct dl_line *small, const struct dl_line *large)
{
    const double most_ratio = 100; /* of bandwidths, in transport files */
    return small->intercept > 0 && small->intercept < large->intercept && large->slope > 0 &&
           small->slope > large->slope && small->slope < most_ratio * large->slope;
}

/* Noise may put it below zero at no bytes, where nothing can be. */
static struct dl_line fit_all(struct dl_points p)
{
    const struct dl_line line = dl_fit_line(p);
    return line.intercept >= 0 ? line : dl_fit_line_through_origin(p);
}

/* Where the ways part is found by trying all places. */
struct dl_message_fit dl_fit_messages(struct dl_points p)
{
    assert(p.n >= DL_LEAST_MESSAGES);
    const struct dl_line one = fit_all(p);
    struct dl_message_fit best = {.small = one, .large = one, .small_until_bytes = p.x[p.n - 1]};
    double misfit = one.misfit;
    for (size_t i = DL_LEAST_MESSAGES; i + DL_LEAST_MESSAGES <= p.n; i++) {
        const struct dl_line small = dl_fit_line(part(p, 0, i)), large = dl_fit_line(part(p, i, p.n));
        if (!makes_sense(&small, &large) || small.misfit + large.misfit >= misfit) continue;
        misfit = small.misfit + large.misfit;
        best = (struct dl_message_fit){small, large, true, p.x[i - 1]};
    }
    return best;
}

static double at(const struct dl_line *l, double bytes) { return l->intercept + l->slope * bytes; }

double dl_message_s(const struct dl_message_fit *f, double bytes)
{
    return fmin(at(&f->small, bytes), at(&f->large, bytes));
}

double dl_message_bytes_per_s(const struct dl_message_fit *f) { return 1 / fmin(f->small.slope, f->large.slope); }
