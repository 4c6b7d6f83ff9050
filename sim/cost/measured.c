#include "sim/cost/measured_points.h"

#include <math.h>

/* What was timed forward tells as much of the backward as a point at this distance; so does what is causal of what is
 * not, and a group of products of as many in one call. */
static const double other_pass = 0.5, other_kind = 0.5;
/* Points closer than this are averaged: libraries change their kernels from size to size. */
static const double blur = 0.2;

double dl_column_of(const struct dl_kernel *k, enum dl_column column)
{
    switch (column) {
    case DL_BATCH: return k->batch;
    case DL_M: return k->m;
    case DL_N: return k->n;
    case DL_K: return k->k;
    case DL_ELEMENTS: return k->elements;
    case DL_CAUSAL: return k->causal;
    case DL_KV_SHARE: return k->kv_share;
    case DL_ACCUMULATES: return k->accumulates;
    case DL_N_COLUMNS: break;
    }
    return NAN;
}

void dl_point_at(const struct dl_kernel *k, double *at)
{
    at[0] = log(k->batch * k->m);
    at[1] = log(k->n);
    at[2] = log(k->k);
}

const char *dl_device_libraries(const struct dl_device *d) { return d->measured ? d->measured->libraries : ""; }

enum dl_kernel_pass dl_point_pass(const struct dl_kernel *k)
{
    return k->backward && k->pass == DL_PASS_FORWARD ? DL_PASS_INPUT_GRADIENT : k->pass;
}

static bool was_timed(const struct dl_points *of, size_t i, const struct dl_kernel *k)
{
    const struct dl_timed *const t = &of->timed[i];
    if (of->points[i].pass != dl_point_pass(k) || of->points[i].is_grouped != k->among_experts) return false;
    for (int c = 0; c < DL_N_COLUMNS; c++)
        if (t->known >> c & 1 && t->column[c] != dl_column_of(k, (enum dl_column)c)) return false;
    return true;
}

static double squared(double x) { return x * x; }

/* What the points say of a place among them. */
struct advice {
    const struct dl_timed *exact; /* NULL: not timed */
    double log_ratio, nearest2;
};

static struct advice ask(const struct dl_points *of, const struct dl_kernel *k)
{
    double at[dl_n_coordinates];
    const enum dl_kernel_pass pass = dl_point_pass(k);
    dl_point_at(k, at);
    /* The mean counts as a point at the end of the reach. */
    double weights = 1 / squared(squared(DL_REACH)), sum = of->mean_log_ratio[pass] * weights, nearest2 = INFINITY;
    for (size_t i = 0; i < of->n; i++) {
        const struct dl_point *const p = &of->points[i];
        const double apart2 = squared(at[0] - p->at[0]) + squared(at[1] - p->at[1]) + squared(at[2] - p->at[2]) +
                              (p->pass == pass ? 0 : squared(other_pass)) +
                              (p->is_causal == k->causal ? 0 : squared(other_kind)) +
                              (p->is_grouped == k->among_experts ? 0 : squared(other_kind));
        if (apart2 == 0 && was_timed(of, i, k)) return (struct advice){.exact = &of->timed[i]};
        const double weight = 1 / squared(apart2 + squared(blur) + p->spread2);
        nearest2 = fmin(nearest2, apart2);
        weights += weight;
        sum += weight * p->log_ratio;
    }
    return (struct advice){.log_ratio = sum / weights, .nearest2 = nearest2};
}

/* fp16 and bf16 are the same to a device that computes as fast in both. */
static bool alike(const struct dl_device *d, enum dl_precision a, enum dl_precision b)
{
    return dl_precision_bytes(a) == dl_precision_bytes(b) &&
           dl_precision_operand_bytes(a) == dl_precision_operand_bytes(b) &&
           d->peak_flop_per_s[a] == d->peak_flop_per_s[b];
}

/* In the precision itself if anything was timed in it, else in one that is alike; NULL: none. */
static const struct dl_points *timed_points(const struct dl_device *d, enum dl_kernel_kind kind,
                                            enum dl_precision precision)
{
    const struct dl_points *const points = d->measured->points[kind];
    if (points[precision].n) return &points[precision];
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (points[p].n && alike(d, precision, (enum dl_precision)p)) return &points[p];
    return NULL;
}

struct dl_price dl_measured_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *modelled)
{
    if (k->kind == DL_KERNEL_MEMORY) return dl_curve_price(d, k, precision, modelled);
    const struct dl_points *const points = timed_points(d, k->kind, precision);
    if (!points) return *modelled;
    const struct advice advice = ask(points, k);
    if (advice.exact) return (struct dl_price){advice.exact->seconds, modelled->flop, DL_GROUND_MEASURED};
    const double least_s = modelled->flop / d->peak_flop_per_s[precision];
    return (struct dl_price){.seconds = fmax(modelled->seconds * exp(advice.log_ratio), least_s),
                             .flop = modelled->flop,
                             .ground =
                                 advice.nearest2 <= squared(DL_REACH) ? DL_GROUND_INTERPOLATED : DL_GROUND_MODELLED};
}
