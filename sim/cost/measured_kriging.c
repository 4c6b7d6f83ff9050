/* measured_kriging.c - what points say of a place between them, by kriging (Krige 1951; Rasmussen and Williams 2006,
 * Gaussian Processes for Machine Learning, eq. 2.23): with the covariance c of two points falling with their distance
 *
 *     log ratio = mean of its kind + c(place, points) [c(points, points) + noise]^-1 (log ratios - means of their
 * kinds)
 *
 * so points that lie together share one voice, and the noise of each is averaged away as far as its neighbours allow.
 * All covariances are parts of the variance of the log ratios, which then cancels. */
#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>

#include "sim/cost/measured_points.h"

static const double least_variance = 1e-6; /* a thousandth of the time: all points say the same */

static double covariance(const struct dl_measured_points *of, double d2) { return exp(-sqrt(d2) / of->by->reach); }

static double mean_of(const struct dl_measured_points *of, const struct dl_point *p)
{
    return of->mean_log_ratio[p->kind.alignment][p->kind.pass];
}

static double weighted_mean(const struct dl_measured_points *of, unsigned alignment, unsigned pass)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < of->n; i++) {
        const struct dl_point *const p = &of->points[i];
        const double weight = (p->kind.alignment == alignment ? 1 : of->by->other_alignment_weight) *
                              (p->kind.pass == pass ? 1 : of->by->other_pass_weight);
        sum += weight * p->log_ratio;
        weights += weight;
    }
    return of->n ? sum / weights : 0;
}

void dl_points_finish(struct dl_measured_points *of)
{
    const double least_noise = of->by->least_noise, spread_left = of->by->spread_left;
    double variance = 0;
    for (unsigned a = 0; a < dl_n_alignments; a++)
        for (unsigned pass = 0; pass < dl_n_passes; pass++) of->mean_log_ratio[a][pass] = weighted_mean(of, a, pass);
    for (size_t i = 0; i < of->n; i++) {
        const double apart = of->points[i].log_ratio - mean_of(of, &of->points[i]);
        variance += apart * apart / (double)of->n;
    }
    for (size_t i = 0; i < of->n; i++)
        of->points[i].noise =
            least_noise + spread_left * spread_left * of->points[i].noise / fmax(variance, least_variance);
}

static void fill(const struct dl_measured_points *of, const struct dl_neighbours *near, gsl_matrix *c,
                 gsl_vector *log_ratios)
{
    for (size_t i = 0; i < near->n; i++) {
        const struct dl_point *const p = &of->points[near->which[i]];
        gsl_vector_set(log_ratios, i, p->log_ratio - mean_of(of, p));
        gsl_matrix_set(c, i, i, covariance(of, 0) + p->noise);
        for (size_t j = 0; j < i; j++)
            gsl_matrix_set(c, i, j, covariance(of, dl_points_apart2(of, p, &of->points[near->which[j]])));
    }
}

double dl_points_log_ratio(const struct dl_measured_points *of, const struct dl_point *place,
                           const struct dl_neighbours *near)
{
    double matrix[dl_most_neighbours * dl_most_neighbours], log_ratios[dl_most_neighbours], to[dl_most_neighbours];
    gsl_matrix_view c = gsl_matrix_view_array(matrix, near->n, near->n);
    gsl_vector_view y = gsl_vector_view_array(log_ratios, near->n), t = gsl_vector_view_array(to, near->n);
    double sum;
    fill(of, near, &c.matrix, &y.vector);
    for (size_t i = 0; i < near->n; i++) to[i] = covariance(of, near->d2[i]);
    gsl_linalg_cholesky_decomp1(&c.matrix);
    gsl_linalg_cholesky_svx(&c.matrix, &y.vector);
    gsl_blas_ddot(&t.vector, &y.vector, &sum);
    return mean_of(of, place) + sum;
}
