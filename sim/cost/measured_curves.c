/* measured_curves.c - kernels that are bound by memory: times over bytes, whatever the precision of what is moved. */
#include <gsl/gsl_interp.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

#include "sim/cost/measured_points.h"
#include "sim/cost/operations.h"

static bool covers(int64_t table_pass, enum dl_kernel_pass pass)
{
    switch (table_pass) {
    case DL_TABLE_FORWARD: return pass == DL_PASS_FORWARD;
    case DL_TABLE_INPUT_GRADIENT: return pass == DL_PASS_INPUT_GRADIENT;
    case DL_TABLE_WEIGHT_GRADIENT: return pass == DL_PASS_WEIGHT_GRADIENT;
    case DL_TABLE_BACKWARD: return pass != DL_PASS_FORWARD;
    default: return true;
    }
}

/* One of values as long as the kernel's if there is, else of others: an optimizer may be timed in fp32 only. */
static const struct dl_curve *find_curve(const struct dl_measured *m, const char *operation, enum dl_kernel_pass pass,
                                         enum dl_precision of)
{
    const struct dl_curve *found = NULL;
    for (size_t i = 0; i < m->n_curves; i++) {
        const struct dl_curve *const c = &m->curves[i];
        if (!covers(c->pass, pass) || strcmp(c->operation, operation)) continue;
        if (dl_precision_bytes(c->precision) == dl_precision_bytes(of)) return c;
        if (!found) found = c;
    }
    return found;
}

/* Of another operation that is like it: as it is done backward, since forward something may be timed with it, such as a
 * residual's dropout. */
static const struct dl_curve *curve_of(const struct dl_measured *m, const struct dl_kernel *k, enum dl_precision of)
{
    const struct dl_operation *const operation = dl_operation_of(k);
    const struct dl_curve *const own = find_curve(m, operation->name, k->pass, of);
    if (own || !operation->like) return own;
    const struct dl_curve *const backward = find_curve(m, operation->like, DL_PASS_INPUT_GRADIENT, of);
    return backward ? backward : find_curve(m, operation->like, DL_PASS_FORWARD, of);
}

static double inside(const struct dl_curve *c, double log_bytes)
{
    const gsl_interp_type *const type =
        c->n < gsl_interp_type_min_size(gsl_interp_steffen) ? gsl_interp_linear : gsl_interp_steffen;
    gsl_interp *const interp = gsl_interp_alloc(type, c->n);
    gsl_interp_init(interp, c->log_bytes, c->log_seconds, c->n);
    const double log_seconds = gsl_interp_eval(interp, c->log_bytes, c->log_seconds, log_bytes, NULL);
    gsl_interp_free(interp);
    return exp(log_seconds);
}

static size_t nearest(const struct dl_curve *c, double log_bytes)
{
    size_t best = 0;
    for (size_t i = 1; i < c->n; i++)
        if (fabs(c->log_bytes[i] - log_bytes) < fabs(c->log_bytes[best] - log_bytes)) best = i;
    return best;
}

/* Beyond its ends a curve goes on as the model does. */
static struct dl_price on_curve(const struct dl_curve *c, double log_bytes, double known_distance,
                                struct dl_price price)
{
    const size_t near = nearest(c, log_bytes);
    const double apart = fabs(c->log_bytes[near] - log_bytes);
    const bool is_inside = log_bytes >= c->log_bytes[0] && log_bytes <= c->log_bytes[c->n - 1];
    price.seconds = apart == 0  ? exp(c->log_seconds[near])
                    : is_inside ? inside(c, log_bytes)
                                : price.seconds * exp(c->log_ratio[near]);
    price.ground = apart == 0                            ? DL_GROUND_MEASURED
                   : is_inside || apart < known_distance ? DL_GROUND_INTERPOLATED
                                                         : DL_GROUND_MODELLED;
    return price;
}

static struct dl_price among_rows(const struct dl_curve *c, const struct dl_kernel *k, enum dl_precision precision,
                                  struct dl_price price)
{
    const struct dl_advice advice = dl_points_ask(&c->rows, k, precision);
    const double known_distance = dl_known_distance(c->rows.by);
    price.seconds = advice.timed_s > 0 ? advice.timed_s : price.seconds * exp(advice.log_ratio);
    price.ground = advice.timed_s > 0                                   ? DL_GROUND_MEASURED
                   : advice.nearest2 <= known_distance * known_distance ? DL_GROUND_INTERPOLATED
                                                                        : DL_GROUND_MODELLED;
    return price;
}

/* What was not timed is as far from the model as the one in the middle of all that were: some, such as copies to the
 * host, are very far. */
static double usual_log_ratio(const struct dl_measured *m, double log_bytes)
{
    double *const ratios = dl_alloc(m->n_curves * sizeof *ratios);
    for (size_t i = 0; i < m->n_curves; i++) ratios[i] = m->curves[i].log_ratio[nearest(&m->curves[i], log_bytes)];
    const double median = gsl_stats_median(ratios, 1, m->n_curves);
    dl_free(ratios);
    return median;
}

struct dl_price dl_curve_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                               const struct dl_price *modelled)
{
    const struct dl_measured *const m = d->measured;
    struct dl_price price = *modelled;
    if (!m->n_curves || !(k->elements > 0)) return price;
    const double log_bytes = log(dl_kernel_bytes(k, precision));
    const struct dl_curve *const curve = curve_of(m, k, precision);
    if (curve && curve->rows.n && k->n > 0) return among_rows(curve, k, precision, price);
    if (curve) return on_curve(curve, log_bytes, dl_known_distance(m->by), price);
    price.seconds *= exp(usual_log_ratio(m, log_bytes));
    return price;
}
