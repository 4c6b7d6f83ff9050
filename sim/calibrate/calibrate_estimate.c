/* calibrate_estimate.c - times by the constants as they are, and how far they are from the measured ones. */
#include <math.h>
#include <string.h>

#include "sim/calibrate/calibrate_work.h"

double dl_calibration_value(const struct dl_tunable *k, double x) { return fmin(k->base * exp(x), k->max); }

struct reading {
    struct dl_arena *arena;
    struct dl_transport transport;
    double *bytes_per_s;
    struct dl_estimator estimator;
};

static enum dl_status open_transport(struct reading *r, const struct dl_calibration_work *w,
                                     const struct dl_group *group)
{
    const struct dl_topology *const t = w->c->topology;
    r->bytes_per_s = dl_arena_alloc(r->arena, t->n_links * sizeof *r->bytes_per_s);
    if (dl_transport_read(w->doc, t, group->n_nodes, r->arena, &r->transport, w->err)) return w->err->status;
    for (size_t i = 0; i < t->n_links; i++)
        r->bytes_per_s[i] = t->links[i].bandwidth_bytes_per_s * r->transport.efficiency[t->links[i].kind];
    dl_estimator_release(&r->estimator);
    dl_estimator_init(&r->estimator, t, &r->transport, r->bytes_per_s);
    return DL_OK;
}

static enum dl_status choose(struct reading *r, const struct dl_timed_run *run, struct dl_choice *out,
                             struct dl_error *err)
{
    const struct dl_wish wish = {
        .op = run->op, .algorithm = "auto", .protocol = "auto", .group = run->group, .bytes = run->bytes};
    return dl_choose(&r->estimator, &wish, r->arena, out, err);
}

bool dl_same_timed_run(const struct dl_timed_run *a, const struct dl_timed_run *b)
{
    return a->group == b->group && a->op == b->op && a->bytes == b->bytes;
}

void dl_calibration_predict(const struct dl_calibration_work *w, bool kept_out_too, dl_tell_fn tell, void *user)
{
    struct reading r = {.arena = dl_arena_new()};
    const struct dl_timed_run *last = NULL;
    struct dl_choice choice;
    for (size_t i = 0; i < w->c->n_runs && !w->err->status; i++) {
        struct dl_timed_run *const run = &w->c->runs[i];
        if (run->kept_out && !kept_out_too) continue;
        if ((!last || last->group != run->group) && open_transport(&r, w, run->group)) break;
        if ((!last || !dl_same_timed_run(last, run)) && choose(&r, run, &choice, w->err)) break;
        last = run;
        tell(user, run, &choice);
    }
    dl_estimator_release(&r.estimator);
    dl_arena_free(r.arena);
}

/* ---- residuals ---- */

static void put_residual(void *user, struct dl_timed_run *run, const struct dl_choice *choice)
{
    double **const next = user;
    *(*next)++ = log(choice->estimate.time_s / run->time_s);
}

static void residuals(void *user, const double *x, double *out)
{
    struct dl_calibration_work *const w = user;
    for (size_t i = 0; i < w->n_active; i++) {
        const struct dl_tunable *const k = &w->constants.items[w->active[i]];
        dl_tunable_set(k, dl_calibration_value(k, x[i]));
    }
    memset(out, 0, w->n_fit * sizeof *out); /* where the estimate fails, the error is kept and all ends */
    dl_calibration_predict(w, false, put_residual, &out);
}

struct dl_residuals dl_calibration_problem(struct dl_calibration_work *w)
{
    return (struct dl_residuals){.n_points = w->n_fit, .n_constants = w->n_active, .compute = residuals, .user = w};
}

double *dl_calibration_x(const struct dl_calibration_work *w)
{
    double *const x = dl_alloc((w->n_active + 1) * sizeof *x);
    for (size_t i = 0; i < w->n_active; i++) x[i] = w->x[w->active[i]];
    return x;
}

double *dl_calibration_residuals(struct dl_calibration_work *w)
{
    double *const out = dl_alloc(w->n_fit * sizeof *out), *const x = dl_calibration_x(w);
    residuals(w, x, out);
    dl_free(x);
    return out;
}
