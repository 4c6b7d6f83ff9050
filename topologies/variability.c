#include "topologies/variability.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"

static const struct dl_field fields[] = {
    {"spread_fraction", DL_NUMBER, offsetof(struct dl_variability, spread_fraction), 0, 1, true, NULL,
     "standard deviation over mean of the time that devices take for the same work; 0 if absent"},
    {"slow_node_fraction", DL_NUMBER, offsetof(struct dl_variability, slow_node_fraction), 0, 1, true, NULL,
     "share of the nodes that are slow; 0 if absent"},
    {"slow_node_slowdown", DL_NUMBER, offsetof(struct dl_variability, slow_node_slowdown), 1, 1000, true, NULL,
     "work on a slow node takes so many times as long; 1 if absent"},
};

const struct dl_field *dl_variability_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_variability_read(struct dl_json object, struct dl_variability *out, struct dl_arena *arena,
                                   struct dl_error *err)
{
    *out = (struct dl_variability){.slow_node_slowdown = 1};
    if (!object.value) return DL_OK;
    if (dl_read(object, fields, DL_COUNT(fields), out, arena, err)) return err->status;
    if ((out->slow_node_fraction > 0) != (out->slow_node_slowdown > 1))
        return dl_fail(err, DL_KEY, object.where,
                       "slow_node_fraction and slow_node_slowdown go together: how many nodes, and how slow");
    if (!json_object_get(object.value, "spread_fraction") && !json_object_get(object.value, "slow_node_fraction"))
        return dl_fail(err, DL_KEY, object.where, "must say what differs: spread_fraction or slow_node_fraction");
    return DL_OK;
}

/* Of ln x, whose mean is then -deviation^2 / 2. */
static double log_deviation(const struct dl_variability *v)
{
    return sqrt(log1p(v->spread_fraction * v->spread_fraction));
}

void dl_variability_draw(const struct dl_variability *v, uint64_t seed, uint32_t node, uint32_t n, double *slowdowns)
{
    gsl_rng *const r = dl_random_new(seed, "variability", node);
    const double deviation = log_deviation(v);
    const double of_node = gsl_rng_uniform(r) < v->slow_node_fraction ? v->slow_node_slowdown : 1;
    for (uint32_t i = 0; i < n; i++)
        slowdowns[i] = of_node * (deviation > 0 ? gsl_ran_lognormal(r, -deviation * deviation / 2, deviation) : 1);
    gsl_rng_free(r);
}

/* ---- the last ---- */

struct job {
    const struct dl_variability *v;
    const struct dl_alike *alike;
    size_t n_alike;
    double deviation, most_s; /* that one takes which is not slow */
};

/* The logarithm of what one takes in a node that is slow or not, over most_s. */
static double middle_of(const struct job *j, const struct dl_alike *a, double slowdown)
{
    return log((a->work_s * slowdown + a->network_s) / j->most_s);
}

/* That a device takes no longer than e^t, which is then its work alone. */
static double holds(const struct job *j, const struct dl_alike *a, double slowdown, double t)
{
    if (j->deviation == 0) return t >= middle_of(j, a, slowdown);
    const double left_s = exp(t) * j->most_s - a->network_s;
    if (left_s <= 0) return 0;
    return erfc(-(log(left_s / (a->work_s * slowdown)) / j->deviation + j->deviation / 2) / sqrt(2)) / 2;
}

/* That all devices of a node do, if it is slow or not. */
static double holds_in_node(const struct job *j, const struct dl_alike *a, double t)
{
    const struct dl_variability *const v = j->v;
    const double per_node = a->n_devices / a->n_nodes;
    return (1 - v->slow_node_fraction) * pow(holds(j, a, 1, t), per_node) +
           v->slow_node_fraction * pow(holds(j, a, v->slow_node_slowdown, t), per_node);
}

/* That the job takes longer. */
static double is_exceeded(const struct job *j, double t)
{
    double all_hold = 1;
    for (size_t i = 0; i < j->n_alike; i++) all_hold *= pow(holds_in_node(j, &j->alike[i], t), j->alike[i].n_nodes);
    return 1 - all_hold;
}

/* Of that over e^t, by Simpson's rule. */
static double integral(const struct job *j, double from, double to)
{
    const double steps_of_deviation = 64;
    if (to <= from) return 0;
    const int n = 2 * (int)ceil((to - from) / j->deviation * steps_of_deviation / 2);
    const double step = (to - from) / n;
    double sum = 0;
    for (int i = 0; i <= n; i++) {
        const double t = from + i * step;
        sum += (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * is_exceeded(j, t) * exp(t);
    }
    return sum * step / 3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the chance changes: about the work of each, and that on slow nodes. Sorted. */
static void find_middles(const struct job *j, double *middles)
{
    for (size_t i = 0; i < j->n_alike; i++) {
        middles[2 * i] = middle_of(j, &j->alike[i], 1);
        middles[2 * i + 1] = middle_of(j, &j->alike[i], j->v->slow_node_slowdown);
    }
    qsort(middles, 2 * j->n_alike, sizeof *middles, compare);
}

/* E max = integral of P(max > y) dy from 0. Further than nine deviations from all middles, which even 2^31 devices do
 * not reach, the chance does not change. */
static double expected_last(const struct job *j, const double *middles)
{
    const double reach = 9 * j->deviation + j->deviation * j->deviation;
    double from = middles[0] - reach, to = middles[0] + reach, sum = exp(from);
    for (size_t i = 1; i < 2 * j->n_alike; i++) {
        if (middles[i] - reach > to) {
            const double next = middles[i] - reach;
            sum += integral(j, from, to) + is_exceeded(j, (to + next) / 2) * (exp(next) - exp(to));
            from = next;
        }
        to = middles[i] + reach;
    }
    return sum + integral(j, from, to);
}

struct dl_last dl_variability_last(const struct dl_variability *v, const struct dl_alike *alike, size_t n)
{
    struct job j = {v, alike, n, log_deviation(v), 0};
    for (size_t i = 0; i < n; i++) j.most_s = fmax(j.most_s, alike[i].work_s + alike[i].network_s);
    double *const middles = dl_alloc(2 * n * sizeof *middles);
    find_middles(&j, middles);
    const double last_s = expected_last(&j, middles) * j.most_s;
    struct dl_last last = {0, INFINITY};
    for (size_t i = 0; i < n; i++) {
        const double slowdown = (last_s - alike[i].network_s) / alike[i].work_s;
        if (slowdown < last.slowdown) last = (struct dl_last){i, slowdown};
    }
    dl_free(middles);
    return last;
}
