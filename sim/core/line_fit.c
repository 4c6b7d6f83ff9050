#include "sim/core/line_fit.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <math.h>

#include "sim/core/memory.h"

static double *weigh(struct dl_points p)
{
    double *const weights = dl_alloc(p.n * sizeof *weights);
    for (size_t i = 0; i < p.n; i++) weights[i] = 1 / (p.y[i] * p.y[i]);
    return weights;
}

/* Half of the interval of a constant. The spread of the points is not known beforehand: it is estimated from what the
 * line leaves. */
static double half_width(double covariance, double misfit, double freedom)
{
    const double upper = 0.975; /* of 95 % in the middle */
    return gsl_cdf_tdist_Pinv(upper, freedom) * sqrt(covariance * misfit / freedom);
}

struct dl_line dl_fit_line(struct dl_points p)
{
    struct dl_line l = {0};
    double cov00, cov01, cov11;
    assert(p.n >= 3);
    double *const weights = weigh(p);
    gsl_fit_wlinear(p.x, 1, weights, 1, p.y, 1, p.n, &l.intercept, &l.slope, &cov00, &cov01, &cov11, &l.misfit);
    dl_free(weights);
    l.intercept_pm = half_width(cov00, l.misfit, (double)p.n - 2);
    l.slope_pm = half_width(cov11, l.misfit, (double)p.n - 2);
    return l;
}

struct dl_line dl_fit_line_through_origin(struct dl_points p)
{
    struct dl_line l = {0};
    double cov11;
    assert(p.n >= 3);
    double *const weights = weigh(p);
    gsl_fit_wmul(p.x, 1, weights, 1, p.y, 1, p.n, &l.slope, &cov11, &l.misfit);
    dl_free(weights);
    l.slope_pm = half_width(cov11, l.misfit, (double)p.n - 1);
    return l;
}
