/* line_fit.h - y = intercept + slope x through measured points, with how sure both are. */
#ifndef DL_CORE_LINE_FIT_H
#define DL_CORE_LINE_FIT_H

#include <stddef.h>

struct dl_points {
    const double *x, *y;
    size_t n;
};

struct dl_line {
    double intercept, slope;
    double intercept_pm, slope_pm; /* half of the interval of 95 % */
    double misfit;                 /* sum of the squares of relative errors */
};

/* Least squares of relative errors, so that small values count as much as large ones. At least 3 points, y > 0. */
struct dl_line dl_fit_line(struct dl_points points);
/* The same with an intercept of 0. */
struct dl_line dl_fit_line_through_origin(struct dl_points points);

#endif
