/* calibrate_work.h - what the files of calibrate.c share: a calibration in progress. */
#ifndef DL_CALIBRATE_CALIBRATE_WORK_H
#define DL_CALIBRATE_CALIBRATE_WORK_H

#include "sim/calibrate/calibrate.h"
#include "sim/collective/choose.h"
#include "sim/core/least_squares.h"

#define DL_WIDEST_TOLD 0.2    /* half interval of a logarithm that still says something */
#define DL_LEAST_SPREAD 0.005 /* of measured times: repeated runs differ by that much, however well they are fitted */

/* A copy of the document whose numbers are changed, and which of them. */
struct dl_calibration_work {
    struct dl_calibration *c;
    struct dl_json doc;
    struct dl_tunables constants; /* of the copy */
    size_t *active, n_active;
    double *x;      /* by constant: logarithm of value over base */
    bool *given_up; /* by constant: tried, and not to be tried again */
    size_t n_fit;
    struct dl_error *err;
};

/* calibrate_estimate.c. Calls tell for every run, or for those fitted to, in order; errors go to w->err. */
typedef void (*dl_tell_fn)(void *user, struct dl_timed_run *run, const struct dl_choice *choice);
void dl_calibration_predict(const struct dl_calibration_work *w, bool kept_out_too, dl_tell_fn tell, void *user);
double dl_calibration_value(const struct dl_tunable *k, double x);
/* Of the active constants: their x, for dl_free; the least squares to solve; the residuals as they are now, for
 * dl_free, which leaves the document with these x. */
double *dl_calibration_x(const struct dl_calibration_work *w);
struct dl_residuals dl_calibration_problem(struct dl_calibration_work *w);
double *dl_calibration_residuals(struct dl_calibration_work *w);

/* calibrate_select.c. Make those active that the times tell, the best told first. Returns how many are new. */
size_t dl_calibration_select(struct dl_calibration_work *w, bool first);

/* calibrate_approach.c. Make those active that bring the predicted times much nearer by a large step, which is their
 * first x. Returns whether there are any. */
bool dl_calibration_approach(struct dl_calibration_work *w);

#endif
