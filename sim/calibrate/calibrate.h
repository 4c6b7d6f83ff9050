/* calibrate.h - constants of a transport from measured times of collectives, through dlsim's own model of them.
 *
 * Times are estimated as for any collective, with the algorithm and protocol that the transport would choose; the fit
 * is nonlinear least squares of the logarithms of estimated over measured times. Only constants that the times
 * determine are fitted, and only those that the times contradict change. Rows that are kept out do not take part. */
#ifndef DL_CALIBRATE_CALIBRATE_H
#define DL_CALIBRATE_CALIBRATE_H

#include "sim/collective/collective.h"
#include "topologies/transport_tunables.h"

struct dl_timed_run {
    enum dl_op op;
    const struct dl_group *group; /* runs of a group are next to each other */
    double bytes, time_s;
    bool kept_out;
    double before_s, after_s; /* as dlsim has it with the transport as it was, and as it is now */
    const char *algorithm;    /* that the transport chooses now */
    char protocol[32];
};

/* Whether both are the same but for the measured times. */
bool dl_same_timed_run(const struct dl_timed_run *a, const struct dl_timed_run *b);

enum dl_fit_state {
    DL_FIT_NO_EFFECT, /* no time depends on it */
    DL_FIT_NOT_TOLD,  /* the times do not tell it from others, or not well */
    DL_FIT_AGREES,    /* told: its value lies in the interval, and stays */
    DL_FIT_AT_LIMIT,  /* told: a share that is 1; there is no interval */
    DL_FIT_DONE,      /* told: its value changes */
};

struct dl_calibration {
    const struct dl_topology *topology;
    struct dl_json transport; /* the document that is calibrated; it is not changed */
    struct dl_timed_run *runs;
    size_t n_runs;
    /* Filled by dl_calibrate; arena memory. */
    struct dl_tunables constants; /* their objects are of a copy that is gone: for names and base values only */
    struct dl_fitted_constant {
        enum dl_fit_state state;
        double value, low, high; /* interval of 95 %, from DL_FIT_AGREES on */
    } * fitted;                  /* by constant */
};

/* Only estimate the times of all runs with the transport as it is, and note them as those before or after. */
enum dl_status dl_calibration_estimate(struct dl_calibration *c, bool after, struct dl_error *err);
enum dl_status dl_calibrate(struct dl_calibration *c, struct dl_arena *arena, struct dl_error *err);
/* Run with the fewest bytes of a group whose measured time is below what wires alone take, by the model with all
 * latencies of the transport at 0; NULL: there is none. The transport is that after dl_calibration_apply. */
const struct dl_timed_run *dl_calibration_below_wires(const struct dl_calibration *c, struct dl_json transport,
                                                      double *wires_s, struct dl_arena *arena, struct dl_error *err);
size_t dl_calibration_count(const struct dl_calibration *c, enum dl_fit_state state);

/* Mean of |estimated / measured - 1| of the runs that were fitted to, or kept out; NAN without any. */
double dl_calibration_error(const struct dl_calibration *c, bool kept_out, bool after);

/* Put what was fitted into the document, with `source` as the fact of each. */
void dl_calibration_apply(const struct dl_calibration *c, struct dl_json transport, const char *source,
                          struct dl_arena *arena);

#endif
