#define _POSIX_C_SOURCE 200809L
#include "kernels/timing.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { most_sets = 1024, most_samples = 200, least_samples = 7, most_calls = 4096 };
static const double least_sample_s = 1e-4;             /* far above the resolution of any clock here */
static const double most_memory_bytes = 4e9;           /* for all sets of tensors */
static const double deviation_of_mad = 1.4826;         /* standard deviation over MAD of normal noise */
static const double error_of_median = 1.2533141373155; /* sqrt(pi / 2): over that of the mean */

double dl_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

struct dl_timing dl_timing_of(double *samples, size_t n)
{
    double deviations[most_samples];
    const size_t n_deviations = n < most_samples ? n : most_samples;
    const double middle = median(samples, n);
    for (size_t i = 0; i < n_deviations; i++) deviations[i] = fabs(samples[i] - middle);
    return (struct dl_timing){middle, median(deviations, n_deviations) / middle, n};
}

struct rotation {
    struct dl_trial *sets[most_sets];
    size_t n, next;
};

/* A look-up reads little of its table. */
static double touched_bytes(const struct dl_trial *t)
{
    return fmin(dl_trial_bytes(t), dl_problem_bytes(t->problem, t->dim, t->precision));
}

/* As many sets as are larger than the cache together, unless making them takes longer than timing may. */
static void rotation_init(struct rotation *r, const struct dl_trial_spec *spec, const struct dl_timing_plan *plan)
{
    const double end_s = dl_now_s() + plan->most_s;
    r->next = 0;
    r->n = 1;
    r->sets[0] = dl_trial_new(spec);
    const double held = dl_trial_bytes(r->sets[0]), touched = touched_bytes(r->sets[0]);
    while (touched * (double)r->n < plan->rotate_bytes && r->n < most_sets &&
           held * (double)(r->n + 1) < most_memory_bytes && dl_now_s() < end_s)
        r->sets[r->n++] = dl_trial_twin(r->sets[0]);
}

static void rotation_release(struct rotation *r)
{
    for (size_t i = 0; i < r->n; i++) dl_trial_free(r->sets[i]);
}

/* Seconds of one call, over so many. */
static double sample(struct rotation *r, const struct dl_backend *backend, size_t calls)
{
    backend->start();
    for (size_t i = 0; i < calls; i++) {
        dl_trial_run(r->sets[r->next]);
        r->next = (r->next + 1) % r->n;
    }
    return backend->stop() / (double)calls;
}

/* The first call pays for what is set up once; then as many calls as make a sample long enough. */
static size_t warm_up(struct rotation *r, const struct dl_backend *backend, double least_s)
{
    sample(r, backend, 1);
    size_t calls = 1;
    while (calls < most_calls && sample(r, backend, calls) * (double)calls < least_sample_s) calls *= 2;
    for (double used_s = 0; used_s < least_s;) used_s += sample(r, backend, calls) * (double)calls;
    return calls;
}

static bool is_known(const struct dl_timing *t, double spread)
{
    return error_of_median * deviation_of_mad * t->spread / sqrt((double)t->n_samples) <= spread;
}

struct dl_timing dl_time(const struct dl_trial_spec *spec, const struct dl_timing_plan *plan)
{
    struct rotation r;
    double samples[most_samples], used_s = 0;
    struct dl_timing t = {0};
    rotation_init(&r, spec, plan);
    const size_t calls = warm_up(&r, spec->backend, plan->warm_s);
    for (size_t n = 0; n < most_samples;) {
        samples[n++] = sample(&r, spec->backend, calls);
        used_s += samples[n - 1] * (double)calls;
        t = dl_timing_of(samples, n);
        if (n >= least_samples && is_known(&t, plan->spread)) break;
        if (n >= 3 && used_s >= plan->most_s) break;
    }
    rotation_release(&r);
    return t;
}

struct dl_timing dl_time_launch(const struct dl_backend *backend)
{
    enum { calls = 1000, samples = 21 };
    double seconds[samples];
    for (int i = 0; i < samples; i++) {
        backend->start();
        for (int j = 0; j < calls; j++) backend->launch_nothing();
        seconds[i] = backend->stop() / calls;
    }
    return dl_timing_of(seconds, samples);
}
