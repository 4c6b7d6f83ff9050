#include "sim/core/least_squares.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "sim/core/memory.h"

static const double step = 1e-4; /* of differences: far below what constants change by, far above rounding */

static int compute(const gsl_vector *x, void *user, gsl_vector *out)
{
    const struct dl_residuals *const r = user;
    r->compute(r->user, gsl_vector_const_ptr(x, 0), gsl_vector_ptr(out, 0));
    return GSL_SUCCESS;
}

static int slopes_of(const gsl_vector *x, void *user, gsl_matrix *out)
{
    const struct dl_residuals *const r = user;
    dl_residual_slopes(r, gsl_vector_const_ptr(x, 0), gsl_matrix_ptr(out, 0, 0));
    return GSL_SUCCESS;
}

double dl_least_squares(const struct dl_residuals *r, double *x)
{
    const size_t most_steps = 60;
    const double tolerance = 1e-7;
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf problem = {
        .f = compute, .df = slopes_of, .n = r->n_points, .p = r->n_constants, .params = (void *)r};
    gsl_multifit_nlinear_workspace *const w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, r->n_points, r->n_constants);
    const gsl_vector_view start = gsl_vector_view_array(x, r->n_constants);
    int why;
    gsl_error_handler_t *const handler = gsl_set_error_handler_off(); /* no more progress is no error here */
    gsl_multifit_nlinear_init(&start.vector, &problem, w);
    gsl_multifit_nlinear_driver(most_steps, tolerance, tolerance, tolerance, NULL, NULL, &why, w);
    gsl_set_error_handler(handler);
    memcpy(x, gsl_vector_const_ptr(w->x, 0), r->n_constants * sizeof *x);
    double sum = 0;
    for (size_t i = 0; i < r->n_points; i++) sum += pow(gsl_vector_get(w->f, i), 2);
    gsl_multifit_nlinear_free(w);
    return sum;
}

void dl_residual_slopes(const struct dl_residuals *r, const double *x, double *slopes)
{
    double *const at = dl_alloc(r->n_constants * sizeof *at);
    double *const above = dl_alloc(r->n_points * sizeof *above), *const below = dl_alloc(r->n_points * sizeof *below);
    memcpy(at, x, r->n_constants * sizeof *at);
    for (size_t j = 0; j < r->n_constants; j++) {
        at[j] = x[j] + step;
        r->compute(r->user, at, above);
        at[j] = x[j] - step;
        r->compute(r->user, at, below);
        at[j] = x[j];
        for (size_t i = 0; i < r->n_points; i++) slopes[i * r->n_constants + j] = (above[i] - below[i]) / (2 * step);
    }
    dl_free(at);
    dl_free(above);
    dl_free(below);
}

static double norm(const struct dl_residuals *r, const double *slopes, size_t constant)
{
    double sum = 0;
    for (size_t i = 0; i < r->n_points; i++) sum += pow(slopes[i * r->n_constants + constant], 2);
    return sqrt(sum);
}

/* Scaled, so that what is singular does not depend on units. */
static gsl_matrix *normal_matrix(const struct dl_residuals *r, const double *slopes)
{
    const size_t n = r->n_constants;
    gsl_matrix *const m = gsl_matrix_calloc(n, n);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++) {
            const double scale = norm(r, slopes, j) * norm(r, slopes, k);
            double sum = 0;
            for (size_t i = 0; i < r->n_points; i++) sum += slopes[i * n + j] * slopes[i * n + k];
            gsl_matrix_set(m, j, k, scale > 0 ? sum / scale : 0);
        }
    return m;
}

/* Squares of the widths are on the diagonal of the inverse of slopes' * slopes. */
bool dl_residual_intervals(const struct dl_residuals *r, const double *slopes, double sum_of_squares, double *pm)
{
    const double upper = 0.975; /* of 95 % in the middle */
    const double freedom = fmax((double)r->n_points - (double)r->n_constants, 1);
    const double deviation = gsl_cdf_tdist_Pinv(upper, freedom) * sqrt(sum_of_squares / freedom);
    gsl_matrix *const normal = normal_matrix(r, slopes);
    gsl_error_handler_t *const handler = gsl_set_error_handler_off();
    const bool apart =
        r->n_points > r->n_constants && !gsl_linalg_cholesky_decomp1(normal) && !gsl_linalg_cholesky_invert(normal);
    gsl_set_error_handler(handler);
    for (size_t j = 0; j < r->n_constants; j++)
        pm[j] = deviation / norm(r, slopes, j) * (apart ? sqrt(gsl_matrix_get(normal, j, j)) : 1);
    gsl_matrix_free(normal);
    return apart;
}
