/* failures.h - a job that fails at random, restarts, and goes on from its last checkpoint: how long it takes.
 *
 * Failures come at a constant rate, so the time to the next one is exponential with mean mtbf_s (M). At a checkpoint
 * training stops for blocking_s (d); the checkpoint can be used writing_s (L) later, while training goes on. After a
 * failure recovery_s (R) pass before training goes on. Failures strike at any time, in checkpoints and recovery too.
 *
 * The rule to remember: w seconds of work between two checkpoints take, in the mean,
 *
 *     M exp((R + L) / M) (exp((w + d) / M) - 1)
 *
 * because the first try needs w + d seconds without a failure, and every later one R + L + w + d. For L = 0 this is
 * the complete cost function of J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart
 * dumps, Future Generation Computer Systems 22 (2006). failures_simulated.c is the second way to get it. */
#ifndef DL_CAMPAIGN_FAILURES_H
#define DL_CAMPAIGN_FAILURES_H

#include <stddef.h>
#include <stdint.h>

struct dl_restarts {
    double mtbf_s;     /* of the whole job; INFINITY: nothing fails */
    double recovery_s; /* detect, restart, load */
    double blocking_s; /* training stops for a checkpoint */
    double writing_s;  /* and goes on while the checkpoint is written; 0: it is there at once */
};

/* Steps one after the other, with a checkpoint after every so many and one at the end. */
struct dl_saved_steps {
    double step_s, n, between;
};

/* Mean seconds from a checkpoint to the next, with so much work between them. INFINITY where that is out of reach. */
double dl_restarts_between_s(const struct dl_restarts *r, double work_s);
/* Of a whole run. */
double dl_restarts_whole_s(const struct dl_restarts *r, const struct dl_saved_steps *steps);
/* The share of a long run that is work which no failure undoes. */
double dl_restarts_goodput(const struct dl_restarts *r, double interval_s);
/* The share of any run that is recovery. */
double dl_restarts_recovering(const struct dl_restarts *r);

/* Work between checkpoints for the highest goodput: exactly, and as two papers approximate it (J. W. Young, A first
 * order approximation to the optimum checkpoint interval, Communications of the ACM 17, 1974; Daly 2006).
 * The exact one is never so short that a checkpoint would begin while the one before is being written. */
double dl_restarts_best_s(const struct dl_restarts *r);
double dl_restarts_young_s(const struct dl_restarts *r);
double dl_restarts_daly_s(const struct dl_restarts *r);
/* The fewest that let one checkpoint be written before the next begins. */
double dl_restarts_fewest_steps(const struct dl_restarts *r, double step_s);
/* The best whole number of steps, at least 1 and at most `most`. */
double dl_restarts_best_steps(const struct dl_restarts *r, double step_s, double most);

/* ---- by simulation ---- */

/* Parts of one kind, any of which stops the job when it fails. */
struct dl_failing {
    const char *what; /* "device" */
    double n, mtbf_s; /* mtbf_s is that of one */
};
double dl_failing_together_s(const struct dl_failing *kinds, size_t n_kinds); /* mean time to the next of any */

enum { DL_MAX_FAILING = 4 };

struct dl_failure_trials {
    const struct dl_restarts *restarts; /* its mtbf_s is not used */
    const struct dl_failing *kinds;
    size_t n_kinds;
    struct dl_saved_steps steps;
    uint64_t seed, n_trials;
};

struct dl_failures_simulated {
    double seconds;                  /* mean over the trials */
    double low_s, high_s;            /* nine of ten trials are between them */
    double failures[DL_MAX_FAILING]; /* mean number, by kind */
    double recovering_s, lost_s;     /* mean; lost: work and checkpoints that were done again */
};

/* The same seed gives the same bits. */
struct dl_failures_simulated dl_failures_simulate(const struct dl_failure_trials *q);

#endif
