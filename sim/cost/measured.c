#include "sim/cost/measured_points.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

/* How far what was timed forward is from the backward, what is causal from what is not, a group of products from as
 * many in one call; and kernels for rows that begin otherwise, which are other programs. */
static const double other_pass = 1, other_kind = 0.5, other_alignment = 3;
/* The mean of all counts as little as this part of a point at the place itself. */
static const double mean_weight = 1e-3;

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

struct dl_point dl_point_at(const struct dl_kernel *k, enum dl_precision precision)
{
    const bool is_product = k->kind != DL_KERNEL_MEMORY;
    return (struct dl_point){
        .at = {log(is_product ? k->batch * k->m : dl_kernel_bytes(k, precision)), log(k->n),
               is_product ? log(k->k) : 0},
        .kind.pass = (unsigned char)(is_product ? dl_point_pass(k) : DL_PASS_FORWARD), /* a curve has its own */
        .kind.alignment =
            (unsigned char)(k->kind == DL_KERNEL_ATTENTION ? DL_ALIGNED : dl_kernel_alignment(k, precision)),
        .kind.is_causal = k->causal,
        .kind.is_grouped = k->among_experts};
}

const char *dl_device_libraries(const struct dl_device *d) { return d->measured ? d->measured->libraries : ""; }

enum dl_kernel_pass dl_point_pass(const struct dl_kernel *k)
{
    return k->backward && k->pass == DL_PASS_FORWARD ? DL_PASS_INPUT_GRADIENT : k->pass;
}

/* At a point's place and of its kind. */
static bool was_timed(const struct dl_points *of, size_t i, const struct dl_kernel *k)
{
    const struct dl_timed *const t = &of->timed[i];
    for (int c = 0; c < DL_N_COLUMNS; c++)
        if (t->known >> c & 1 && t->column[c] != dl_column_of(k, (enum dl_column)c)) return false;
    return true;
}

static double squared(double x) { return x * x; }

/* Between kernels of different kinds; most points are of the same, which is found out first. */
static double kinds_apart2(const struct dl_point *a, const struct dl_point *b)
{
    if (memcmp(&a->kind, &b->kind, sizeof a->kind) == 0) return 0;
    return (a->kind.pass == b->kind.pass ? 0 : squared(other_pass)) +
           (a->kind.alignment == b->kind.alignment ? 0 : squared(other_alignment)) +
           (a->kind.is_causal == b->kind.is_causal ? 0 : squared(other_kind)) +
           (a->kind.is_grouped == b->kind.is_grouped ? 0 : squared(other_kind));
}

static double apart2(const struct dl_point *a, const struct dl_point *b)
{
    return squared(a->at[0] - b->at[0]) + squared(a->at[1] - b->at[1]) + squared(a->at[2] - b->at[2]) +
           kinds_apart2(a, b);
}

static double weight(double distance2, double width2)
{
    const double far2 = 16; /* beyond it nothing is said any more */
    return distance2 > far2 * width2 ? 0 : 1 / squared(squared(1 + distance2 / width2));
}

/* A weighted mean of what points say, which begins with the mean of all. */
struct mean {
    double weights, sum;
};

static struct mean mean_of(const struct dl_points *of, const struct dl_point *place)
{
    return (struct mean){mean_weight, mean_weight * of->mean_log_ratio[place->kind.pass]};
}

static void add_to(struct mean *m, const struct dl_point *p, double distance2, double width2)
{
    const double w = weight(distance2 + p->spread2, width2);
    m->weights += w;
    m->sum += w * p->log_ratio;
}

static const double widths[] = {0.1, 0.2, 0.4, 0.8, 1.6};

/* How wrong the others are about a point, with each of the widths. */
static void leave_out(const struct dl_points *of, size_t which, double *errors)
{
    const struct dl_point *const place = &of->points[which];
    struct mean means[DL_COUNT(widths)];
    for (size_t w = 0; w < DL_COUNT(widths); w++) means[w] = mean_of(of, place);
    for (size_t i = 0; i < of->n; i++) {
        if (i == which) continue;
        const double distance2 = apart2(place, &of->points[i]);
        for (size_t w = 0; w < DL_COUNT(widths); w++) add_to(&means[w], &of->points[i], distance2, squared(widths[w]));
    }
    for (size_t w = 0; w < DL_COUNT(widths); w++) errors[w] += fabs(place->log_ratio - means[w].sum / means[w].weights);
}

void dl_points_choose_width(struct dl_points *of)
{
    enum { most = 128 }; /* are left out, evenly spread over the tables */
    double errors[DL_COUNT(widths)] = {0};
    for (size_t i = 0; i < of->n; i += of->n / most + 1) leave_out(of, i, errors);
    of->width2 = squared(widths[gsl_stats_min_index(errors, 1, DL_COUNT(widths))]);
}

struct dl_advice dl_points_ask(const struct dl_points *of, const struct dl_kernel *k, enum dl_precision precision)
{
    struct dl_point place = dl_point_at(k, precision);
    while (place.kind.alignment > DL_ALIGNED && !of->has[place.kind.alignment]) place.kind.alignment--;
    struct mean mean = mean_of(of, &place);
    double nearest2 = INFINITY;
    for (size_t i = 0; i < of->n; i++) {
        const double distance2 = apart2(&place, &of->points[i]);
        if (distance2 == 0 && was_timed(of, i, k)) return (struct dl_advice){.exact = &of->timed[i]};
        nearest2 = distance2 < nearest2 ? distance2 : nearest2;
        add_to(&mean, &of->points[i], distance2, of->width2);
    }
    return (struct dl_advice){.log_ratio = mean.sum / mean.weights, .nearest2 = nearest2};
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
    const struct dl_advice advice = dl_points_ask(points, k, precision);
    if (advice.exact) return (struct dl_price){advice.exact->seconds, modelled->flop, DL_GROUND_MEASURED};
    const double least_s = modelled->flop / d->peak_flop_per_s[precision];
    return (struct dl_price){.seconds = fmax(modelled->seconds * exp(advice.log_ratio), least_s),
                             .flop = modelled->flop,
                             .ground =
                                 advice.nearest2 <= squared(DL_REACH) ? DL_GROUND_INTERPOLATED : DL_GROUND_MODELLED};
}
