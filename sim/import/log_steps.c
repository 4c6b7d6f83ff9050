/* log_steps.c - the usual seconds of a step of a log, and how far they spread. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#include "sim/import/log.h"

static double seconds_of(const struct dl_log_step *step, const struct dl_log_sizes *sizes)
{
    const double batch = step->batch > 0 ? step->batch : sizes->global_batch;
    switch (step->unit) {
    case DL_LOG_SAMPLES_PER_BLOCK_S:
    case DL_LOG_SAMPLES_PER_S: return batch / step->value;
    case DL_LOG_TOKENS_PER_DEVICE_S: return batch * sizes->tokens_per_sample / sizes->devices / step->value;
    default: return step->value;
    }
}

static enum dl_log_unit unit_of(const struct dl_log *log)
{
    enum dl_log_unit best = DL_N_LOG_UNITS;
    for (size_t i = 0; i < log->n_steps; i++)
        if (log->steps[i].unit < best) best = log->steps[i].unit;
    return best;
}

double dl_log_batch(const struct dl_log *log)
{
    for (size_t i = log->n_steps; i-- > 0;)
        if (log->steps[i].batch > 0) return log->steps[i].batch;
    return 0;
}

struct timed {
    double number;
    size_t index;
    double seconds;
};

static int by_number(const void *a, const void *b)
{
    const struct timed *const x = a, *const y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Lines of one step become one; returns how many steps there are. */
static size_t merge(struct timed *steps, size_t n)
{
    size_t n_steps = 0;
    qsort(steps, n, sizeof *steps, by_number);
    for (size_t i = 0; i < n; i++) {
        if (n_steps && steps[n_steps - 1].number == steps[i].number)
            steps[n_steps - 1].seconds = fmax(steps[n_steps - 1].seconds, steps[i].seconds);
        else
            steps[n_steps++] = steps[i];
    }
    return n_steps;
}

static size_t left_out(size_t n, size_t warmup) { return warmup < n / 2 ? warmup : n / 2; }

static void find_quantiles(struct dl_log_summary *s, double *seconds)
{
    const double low = 0.1, high = 0.9;
    if (!s->n_used) return;
    gsl_sort(seconds, 1, s->n_used);
    s->median_s = gsl_stats_median_from_sorted_data(seconds, 1, s->n_used);
    s->low_s = gsl_stats_quantile_from_sorted_data(seconds, 1, s->n_used, low);
    s->high_s = gsl_stats_quantile_from_sorted_data(seconds, 1, s->n_used, high);
}

struct dl_log_summary dl_log_summarise(const struct dl_log *log, const struct dl_log_sizes *sizes, size_t warmup)
{
    const enum dl_log_unit unit = unit_of(log);
    const double batch = dl_log_batch(log);
    struct timed *const steps = dl_alloc((log->n_steps + 1) * sizeof *steps);
    double *const seconds = dl_alloc((log->n_steps + 1) * sizeof *seconds);
    struct dl_log_summary s = {0};
    size_t n = 0, n_other = 0;
    for (size_t i = 0; i < log->n_steps; i++) {
        const struct dl_log_step *const step = &log->steps[i];
        if (step->unit != unit) continue;
        if (step->batch > 0 && step->batch != batch)
            n_other++;
        else
            steps[n++] = (struct timed){step->number, i, seconds_of(step, sizes)};
    }
    n = merge(steps, n);
    s.n_other_batch = n_other;
    s.n_steps = n + n_other;
    s.n_warmup = left_out(n, warmup);
    s.n_used = n - s.n_warmup;
    for (size_t i = 0; i < s.n_used; i++) seconds[i] = steps[s.n_warmup + i].seconds;
    find_quantiles(&s, seconds);
    dl_free(steps);
    dl_free(seconds);
    return s;
}

double dl_log_timer_s(const struct dl_log_timer *timer, size_t warmup)
{
    const size_t skipped = left_out(timer->seconds.n, warmup), n = timer->seconds.n - skipped;
    if (!n) return NAN;
    double *const sorted = dl_alloc(n * sizeof *sorted);
    for (size_t i = 0; i < n; i++) sorted[i] = timer->seconds.items[skipped + i];
    gsl_sort(sorted, 1, n);
    const double median = gsl_stats_median_from_sorted_data(sorted, 1, n);
    dl_free(sorted);
    return median;
}
