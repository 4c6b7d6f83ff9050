/* calibrate_approach.c - large steps of one constant at a time. Far from where a fit begins other algorithms are
 * chosen, and times jump there: slopes know nothing of that. */
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "sim/calibrate/calibrate_work.h"

static const double steps[] = {-0.7, -0.35, -0.2, -0.1, 0.1, 0.2, 0.35, 0.7}; /* of a logarithm */
static const double poor = 0.03; /* mean error that slopes alone should not leave */
static const double worth = 0.8; /* of the error must go on, at most, for a step to be taken */

static double mean_error(struct dl_calibration_work *w)
{
    double *const residuals = dl_calibration_residuals(w);
    const double mean = gsl_stats_absdev_m(residuals, 1, w->n_fit, 0);
    dl_free(residuals);
    return mean;
}

static bool is_active(const struct dl_calibration_work *w, size_t constant)
{
    for (size_t i = 0; i < w->n_active; i++)
        if (w->active[i] == constant) return true;
    return false;
}

static void add(struct dl_calibration_work *w, size_t constant, double x)
{
    w->active[w->n_active++] = constant;
    w->x[constant] = x;
}

static void take_back(struct dl_calibration_work *w)
{
    const size_t constant = w->active[--w->n_active];
    w->x[constant] = 0;
    dl_tunable_set(&w->constants.items[constant], w->constants.items[constant].base);
}

/* The step that leaves the least error, and that error. */
static double best_step(struct dl_calibration_work *w, size_t *constant, double *x)
{
    double least = INFINITY;
    for (size_t j = 0; j < w->constants.n; j++)
        for (size_t i = 0; i < DL_COUNT(steps); i++) {
            if (w->c->fitted[j].state == DL_FIT_NO_EFFECT || is_active(w, j)) break;
            add(w, j, steps[i]);
            const double error = mean_error(w);
            take_back(w);
            if (error >= least) continue;
            least = error, *constant = j, *x = steps[i];
        }
    return least;
}

bool dl_calibration_approach(struct dl_calibration_work *w)
{
    enum { most_steps = 3 };
    const size_t before = w->n_active;
    double error = mean_error(w);
    for (int i = 0; i < most_steps && error > poor && !w->err->status; i++) {
        size_t constant = 0;
        double x = 0;
        const double left = best_step(w, &constant, &x);
        if (!(left < worth * error)) break;
        add(w, constant, x);
        w->given_up[constant] = false;
        error = left;
    }
    return w->n_active > before;
}
