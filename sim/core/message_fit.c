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
        best =
            (struct dl_message_fit){.small = small, .large = large, .two_ways = true, .small_until_bytes = p.x[i - 1]};
    }
    return best;
}

size_t dl_count_sizes(struct dl_points p, double until_bytes)
{
    size_t n = 0;
    while (n < p.n && p.x[n] <= until_bytes) n++;
    return n;
}

struct dl_message_fit dl_fit_messages_and_pieces(struct dl_points p, double pieces_above_bytes)
{
    const size_t n_whole = dl_count_sizes(p, pieces_above_bytes);
    assert(n_whole + DL_LEAST_PIECES <= p.n);
    struct dl_message_fit out = dl_fit_messages(part(p, 0, n_whole));
    out.pieces = fit_all(part(p, n_whole, p.n));
    out.pieces_above_bytes = pieces_above_bytes;
    return out;
}

static double at(const struct dl_line *l, double bytes) { return l->intercept + l->slope * bytes; }

double dl_message_s(const struct dl_message_fit *f, double bytes)
{
    if (f->pieces_above_bytes > 0 && bytes > f->pieces_above_bytes) return at(&f->pieces, bytes);
    return fmin(at(&f->small, bytes), at(&f->large, bytes));
}

double dl_message_bytes_per_s(const struct dl_message_fit *f)
{
    const double whole = fmin(f->small.slope, f->large.slope);
    return 1 / (f->pieces_above_bytes > 0 ? fmin(whole, f->pieces.slope) : whole);
}
