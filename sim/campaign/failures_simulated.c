/* failures_simulated.c - runs with failures drawn at random, one after the other.
 *
 * Between two failures nothing is random, so a run jumps from failure to failure: which checkpoints were there by then
 * follows from the time since training went on. */
#include <assert.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sim/campaign/failures.h"
#include "sim/core/memory.h"
#include "sim/core/random.h"

struct trial {
    const struct dl_failure_trials *q;
    gsl_rng *rng;
    double next_s[DL_MAX_FAILING]; /* by kind: when one of it fails next */
    double interval_s, n_whole;    /* between checkpoints; how many of these a run has */
    double rest_s;                 /* of work after them */
    double n_saved;                /* of them, so far */
    double now_s;
};

static double wait_s(const struct trial *t, size_t kind)
{
    const struct dl_failing *const k = &t->q->kinds[kind];
    return gsl_ran_exponential(t->rng, k->mtbf_s / k->n);
}

static size_t next_kind(const struct trial *t)
{
    size_t first = 0;
    for (size_t i = 1; i < t->q->n_kinds; i++)
        if (t->next_s[i] < t->next_s[first]) first = i;
    return first;
}

/* From where training goes on to the end of the run, if nothing fails. */
static double left_s(const struct trial *t)
{
    const struct dl_restarts *const r = t->q->restarts;
    const double n_left = t->n_whole - t->n_saved;
    return n_left * (t->interval_s + r->blocking_s) + (t->rest_s > 0 ? t->rest_s + r->blocking_s : 0) + r->writing_s;
}

/* That are there so long after training went on. */
static double n_more_saved(const struct trial *t, double trained_s)
{
    const struct dl_restarts *const r = t->q->restarts;
    const double n = floor((trained_s - r->writing_s) / (t->interval_s + r->blocking_s));
    return fmin(fmax(n, 0), t->n_whole - t->n_saved);
}

/* From one failure to the next; false: the run has ended. */
static bool go_on(struct trial *t, double recovery_s, struct dl_failures_simulated *sum)
{
    const struct dl_restarts *const r = t->q->restarts;
    const size_t kind = next_kind(t);
    const double failure_s = t->next_s[kind], resumed_s = t->now_s + recovery_s;
    if (resumed_s + left_s(t) <= failure_s) {
        sum->recovering_s += recovery_s;
        t->now_s = resumed_s + left_s(t);
        return false;
    }
    const double trained_s = fmax(failure_s - resumed_s, 0), saved = n_more_saved(t, trained_s);
    sum->failures[kind]++;
    sum->recovering_s += failure_s - t->now_s - trained_s;
    sum->lost_s += trained_s - saved * (t->interval_s + r->blocking_s);
    t->n_saved += saved;
    t->now_s = failure_s;
    t->next_s[kind] = failure_s + wait_s(t, kind);
    return true;
}

static double run_trial(const struct dl_failure_trials *q, uint64_t index, struct dl_failures_simulated *sum)
{
    struct trial t = {.q = q, .rng = dl_random_new(q->seed, "failures", index)};
    t.interval_s = q->steps.between * q->steps.step_s;
    t.n_whole = floor(q->steps.n / q->steps.between);
    t.rest_s = fmod(q->steps.n, q->steps.between) * q->steps.step_s;
    for (size_t i = 0; i < q->n_kinds; i++) t.next_s[i] = wait_s(&t, i);
    bool goes_on = go_on(&t, 0, sum);
    while (goes_on) goes_on = go_on(&t, q->restarts->recovery_s, sum);
    gsl_rng_free(t.rng);
    return t.now_s;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct dl_failures_simulated dl_failures_simulate(const struct dl_failure_trials *q)
{
    static const double tail = 0.05;
    assert(q->n_kinds > 0 && q->n_kinds <= DL_MAX_FAILING && q->n_trials > 0);
    struct dl_failures_simulated out = {0};
    double *const seconds = dl_alloc(q->n_trials * sizeof *seconds), n = (double)q->n_trials;
    for (uint64_t i = 0; i < q->n_trials; i++) out.seconds += seconds[i] = run_trial(q, i, &out);
    qsort(seconds, q->n_trials, sizeof *seconds, by_size);
    out.low_s = seconds[(size_t)(tail * (n - 1))];
    out.high_s = seconds[(size_t)ceil((1 - tail) * (n - 1))];
    out.seconds /= n;
    out.recovering_s /= n;
    out.lost_s /= n;
    for (size_t i = 0; i < q->n_kinds; i++) out.failures[i] /= n;
    dl_free(seconds);
    return out;
}
