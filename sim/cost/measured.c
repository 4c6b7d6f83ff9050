#include "sim/cost/measured_points.h"

#include <gsl/gsl_interp.h>
#include <math.h>
#include <string.h>

/* As far as a point tells something of its neighbours: a factor of 4 in one dimension. */
static const double reach = 1.3862943611198906; /* log 4 */
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

void dl_point_at(const struct dl_kernel *k, enum dl_precision precision, double *at)
{
    const bool is_product = k->kind != DL_KERNEL_MEMORY;
    at[0] = log(is_product ? k->batch * k->m : dl_kernel_bytes(k, precision));
    at[1] = is_product ? log(k->n) : 0;
    at[2] = is_product ? log(k->k) : 0;
}

const char *dl_device_libraries(const struct dl_device *d) { return d->measured ? d->measured->libraries : ""; }

enum dl_kernel_pass dl_point_pass(const struct dl_kernel *k)
{
    return k->backward && k->pass == DL_PASS_FORWARD ? DL_PASS_INPUT_GRADIENT : k->pass;
}

static bool was_timed(const struct dl_points *of, size_t i, const struct dl_kernel *k)
{
    const struct dl_timed *const t = &of->timed[i];
    if (k->kind == DL_KERNEL_MEMORY) return false; /* those that were timed have curves */
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

static struct advice ask(const struct dl_points *of, const struct dl_kernel *k, enum dl_precision precision)
{
    double at[dl_n_coordinates];
    const enum dl_kernel_pass pass = dl_point_pass(k);
    dl_point_at(k, precision, at);
    /* The mean counts as a point at the end of the reach. */
    double weights = 1 / squared(squared(reach)), sum = of->mean_log_ratio[pass] * weights, nearest2 = INFINITY;
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
static bool alike(const struct dl_device *d, bool is_product, enum dl_precision a, enum dl_precision b)
{
    if (dl_precision_bytes(a) != dl_precision_bytes(b)) return false;
    return !is_product || (dl_precision_operand_bytes(a) == dl_precision_operand_bytes(b) &&
                           d->peak_flop_per_s[a] == d->peak_flop_per_s[b]);
}

/* The precision itself if anything was timed in it, else one that is alike; DL_N_PRECISIONS: none. */
static int timed_precision(const struct dl_device *d, enum dl_kernel_kind kind, enum dl_precision precision)
{
    if (d->measured->points[kind][precision].n) return precision;
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (d->measured->points[kind][p].n && alike(d, kind != DL_KERNEL_MEMORY, precision, (enum dl_precision)p))
            return p;
    return DL_N_PRECISIONS;
}

static bool covers(int64_t table_pass, const struct dl_kernel *k)
{
    switch (table_pass) {
    case DL_TABLE_FORWARD: return dl_point_pass(k) == DL_PASS_FORWARD;
    case DL_TABLE_INPUT_GRADIENT: return k->pass == DL_PASS_INPUT_GRADIENT;
    case DL_TABLE_WEIGHT_GRADIENT: return k->pass == DL_PASS_WEIGHT_GRADIENT;
    case DL_TABLE_BACKWARD: return dl_point_pass(k) != DL_PASS_FORWARD;
    default: return true;
    }
}

static const struct dl_curve *curve_of(const struct dl_measured *m, const struct dl_kernel *k, int precision)
{
    const char *const operation = dl_kernel_operation(k);
    for (size_t i = 0; operation && i < m->n_curves[precision]; i++) {
        const struct dl_curve *const c = &m->curves[precision][i];
        if (covers(c->pass, k) && strcmp(c->operation, operation) == 0) return c;
    }
    return NULL;
}

static double inside_curve(const struct dl_curve *c, double log_bytes)
{
    const gsl_interp_type *const type =
        c->n < gsl_interp_type_min_size(gsl_interp_steffen) ? gsl_interp_linear : gsl_interp_steffen;
    gsl_interp *const interp = gsl_interp_alloc(type, c->n);
    gsl_interp_init(interp, c->log_bytes, c->log_seconds, c->n);
    const double log_seconds = gsl_interp_eval(interp, c->log_bytes, c->log_seconds, log_bytes, NULL);
    gsl_interp_free(interp);
    return exp(log_seconds);
}

/* Beyond its ends a curve goes on as the model does. */
static double beyond_curve(const struct dl_device *d, const struct dl_curve *c, bool is_longer, enum dl_precision of)
{
    const size_t end = is_longer ? c->n - 1 : 0;
    const struct dl_kernel k = {
        .kind = DL_KERNEL_MEMORY, .name = c->operation, .elements = exp(c->log_bytes[end]) / dl_precision_bytes(of)};
    return exp(c->log_seconds[end]) / d->model->price(d, &k, of).seconds;
}

static struct dl_price on_curve(const struct dl_device *d, const struct dl_curve *c, const struct dl_kernel *k,
                                enum dl_precision precision, struct dl_price price)
{
    const double log_bytes = log(dl_kernel_bytes(k, precision));
    const double first = c->log_bytes[0], last = c->log_bytes[c->n - 1];
    price.ground = DL_GROUND_INTERPOLATED;
    if (log_bytes >= first && log_bytes <= last && c->n > 1) {
        price.seconds = inside_curve(c, log_bytes);
    } else {
        price.seconds *= beyond_curve(d, c, log_bytes > last, precision);
        if (log_bytes < first - reach || log_bytes > last + reach) price.ground = DL_GROUND_MODELLED;
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->log_bytes[i] == log_bytes) price.ground = DL_GROUND_MEASURED;
    return price;
}

static struct dl_price corrected(const struct dl_device *d, const struct advice *advice, enum dl_precision precision,
                                 struct dl_price price)
{
    const double least_s = price.flop / d->peak_flop_per_s[precision];
    price.seconds = fmax(price.seconds * exp(advice->log_ratio), least_s);
    price.ground = advice->nearest2 <= squared(reach) ? DL_GROUND_INTERPOLATED : DL_GROUND_MODELLED;
    return price;
}

struct dl_price dl_measured_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                  const struct dl_price *modelled)
{
    const int timed = timed_precision(d, k->kind, precision);
    const bool is_memory = k->kind == DL_KERNEL_MEMORY;
    if (timed == DL_N_PRECISIONS || (is_memory && !(k->elements > 0))) return *modelled;
    const struct dl_curve *const curve = is_memory ? curve_of(d->measured, k, timed) : NULL;
    if (curve) return on_curve(d, curve, k, precision, *modelled);
    const struct advice advice = ask(&d->measured->points[k->kind][timed], k, precision);
    if (advice.exact) return (struct dl_price){advice.exact->seconds, modelled->flop, DL_GROUND_MEASURED};
    struct dl_price price = corrected(d, &advice, precision, *modelled);
    if (is_memory) price.ground = DL_GROUND_MODELLED; /* other kernels were timed, not this one */
    return price;
}
