#include "sim/campaign/failures.h"

#include <math.h>
#include <stdbool.h>

double dl_restarts_between_s(const struct dl_restarts *r, double work_s)
{
    const double try_s = work_s + r->blocking_s;
    if (isinf(r->mtbf_s)) return try_s;
    return r->mtbf_s * exp((r->recovery_s + r->writing_s) / r->mtbf_s) * expm1(try_s / r->mtbf_s);
}

/* Until the first checkpoint there is nothing on its way yet: even the first try takes writing_s longer. */
static double first_s(const struct dl_restarts *r, double work_s)
{
    const double try_s = work_s + r->blocking_s + r->writing_s;
    if (isinf(r->mtbf_s)) return try_s;
    return r->mtbf_s * exp(r->recovery_s / r->mtbf_s) * expm1(try_s / r->mtbf_s);
}

double dl_restarts_whole_s(const struct dl_restarts *r, const struct dl_saved_steps *steps)
{
    const double n_whole = floor(steps->n / steps->between), interval_s = steps->between * steps->step_s;
    const double rest_s = fmod(steps->n, steps->between) * steps->step_s;
    if (n_whole == 0) return first_s(r, rest_s);
    return first_s(r, interval_s) + (n_whole - 1) * dl_restarts_between_s(r, interval_s) +
           (rest_s > 0 ? dl_restarts_between_s(r, rest_s) : 0);
}

double dl_restarts_goodput(const struct dl_restarts *r, double interval_s)
{
    return interval_s / dl_restarts_between_s(r, interval_s);
}

/* Of a failure outside of recovery comes one of M (exp(R / M) - 1), with the failures in it. With T seconds in all and
 * S of them in recovery, (T - S) / M such failures give S = (T - S) (exp(R / M) - 1). */
double dl_restarts_recovering(const struct dl_restarts *r) { return -expm1(-r->recovery_s / r->mtbf_s); }

double dl_restarts_young_s(const struct dl_restarts *r) { return sqrt(2 * r->blocking_s * r->mtbf_s); }

double dl_restarts_daly_s(const struct dl_restarts *r)
{
    const double share = r->blocking_s / (2 * r->mtbf_s);
    if (r->blocking_s >= 2 * r->mtbf_s) return r->mtbf_s;
    return dl_restarts_young_s(r) * (1 + sqrt(share) / 3 + share / 9) - r->blocking_s;
}

/* Where the derivative of between_s / work_s is 0: x = 1 - exp(-(x + c)), with x = work_s / M and c = d / M. The
 * difference is convex in x and positive at 1, from where Newton's steps go down to the root without crossing it. */
static double best_share(double c)
{
    enum { most_steps = 200 };
    const double precise = 1e-14;
    double x = 1;
    for (int i = 0; i < most_steps; i++) {
        const double step = (x + expm1(-(x + c))) / -expm1(-(x + c));
        x -= step;
        if (!(step > precise * x)) break;
    }
    return x;
}

double dl_restarts_best_s(const struct dl_restarts *r)
{
    if (isinf(r->mtbf_s)) return INFINITY;
    return fmax(r->mtbf_s * best_share(r->blocking_s / r->mtbf_s), r->writing_s - r->blocking_s);
}

double dl_restarts_fewest_steps(const struct dl_restarts *r, double step_s)
{
    return fmax(ceil((r->writing_s - r->blocking_s) / step_s), 1);
}

double dl_restarts_best_steps(const struct dl_restarts *r, double step_s, double most)
{
    const double least = dl_restarts_fewest_steps(r, step_s);
    const double below = floor(dl_restarts_best_s(r) / step_s);
    if (below >= most) return most;
    if (below < least) return fmin(least, most);
    const bool one_more = dl_restarts_goodput(r, (below + 1) * step_s) > dl_restarts_goodput(r, below * step_s);
    return below + one_more;
}

double dl_failing_together_s(const struct dl_failing *kinds, size_t n_kinds)
{
    double per_s = 0;
    for (size_t i = 0; i < n_kinds; i++) per_s += kinds[i].n / kinds[i].mtbf_s;
    return 1 / per_s;
}
