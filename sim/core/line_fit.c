#include "sim/core/line_fit.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <math.h>

#include "sim/core/memory.h"

struct dl_line dl_fit_line(struct dl_points p)
{
    const double upper = 0.975; /* of 95 % in the middle */
    double *const weights = dl_alloc(p.n * sizeof *weights);
    double cov00, cov01, cov11;
    struct dl_line line = {0};
    assert(p.n >= 3);
    for (size_t i = 0; i < p.n; i++) weights[i] = 1 / (p.y[i] * p.y[i]);
    gsl_fit_wlinear(p.x, 1, weights, 1, p.y, 1, p.n, &line.intercept, &line.slope, &cov00, &cov01, &cov11,
                    &line.misfit);
    dl_free(weights);
    /* The spread of the points is not known beforehand: it is estimated from what the line leaves. */
    const double freedom = (double)p.n - 2, variance = line.misfit / freedom;
    const double quantile = gsl_cdf_tdist_Pinv(upper, freedom);
    line.intercept_pm = quantile * sqrt(cov00 * variance);
    line.slope_pm = quantile * sqrt(cov11 * variance);
    return line;
}
