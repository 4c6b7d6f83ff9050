/* least_squares.h - constants of a model that bring its residuals down to the least sum of squares, and how sure they
 * are. */
#ifndef DL_CORE_LEAST_SQUARES_H
#define DL_CORE_LEAST_SQUARES_H

#include <stdbool.h>
#include <stddef.h>

struct dl_residuals {
    size_t n_points, n_constants;
    /* Fill `out` (n_points) for the constants x. It may have kinks, but no jumps. */
    void (*compute)(void *user, const double *x, double *out);
    void *user;
};

/* Improve x, whose entries should be of order 1; at least as many points as constants. Returns the sum of squares. */
double dl_least_squares(const struct dl_residuals *r, double *x);

/* Slopes of the residuals at x by central differences, row by row: n_points x n_constants. */
void dl_residual_slopes(const struct dl_residuals *r, const double *x, double *slopes);

/* Half of the interval of 95 % of each constant, from slopes at the least sum of squares. False where the points do not
 * tell the constants apart, or are no more than these: intervals then are as if the others were known. */
bool dl_residual_intervals(const struct dl_residuals *r, const double *slopes, double sum_of_squares, double *pm);

#endif
