#include "sim/calibrate/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/calibrate/calibrate_work.h"

enum { most_rounds = 6 };

/* ---- the fit ---- */

static void drop(struct dl_calibration_work *w, size_t place)
{
    const size_t constant = w->active[place];
    w->x[constant] = 0;
    w->given_up[constant] = true;
    dl_tunable_set(&w->constants.items[constant], w->constants.items[constant].base);
    memmove(&w->active[place], &w->active[place + 1], (--w->n_active - place) * sizeof *w->active);
}

static bool is_at_limit(const struct dl_tunable *k, double x) { return k->base * exp(x) >= k->max; }

/* A share that the fit pushes beyond 1 stays there, and is no longer free. Anything else that would have to be as large
 * as the format allows limits nothing: the times say nothing of it. */
static bool stop_at_limits(struct dl_calibration_work *w)
{
    for (size_t i = 0; i < w->n_active; i++) {
        const size_t constant = w->active[i];
        const struct dl_tunable *const k = &w->constants.items[constant];
        if (!is_at_limit(k, w->x[constant])) continue;
        drop(w, i);
        if (!k->is_share) return true;
        w->x[constant] = log(k->max / k->base);
        dl_tunable_set(k, k->max);
        w->c->fitted[constant] = (struct dl_fitted_constant){DL_FIT_AT_LIMIT, k->max, NAN, NAN};
        return true;
    }
    return false;
}

/* Fits the active constants, with their intervals; false where these do not tell all of them apart. */
static bool fit_active(struct dl_calibration_work *w, double *pm)
{
    const struct dl_residuals problem = dl_calibration_problem(w);
    double *const x = dl_calibration_x(w), *const slopes = dl_alloc(w->n_fit * w->n_active * sizeof *slopes);
    const double freedom = fmax((double)w->n_fit - (double)w->n_active, 0);
    const double sum = fmax(dl_least_squares(&problem, x), freedom * DL_LEAST_SPREAD * DL_LEAST_SPREAD);
    dl_residual_slopes(&problem, x, slopes);
    const bool apart = dl_residual_intervals(&problem, slopes, sum, pm);
    for (size_t i = 0; i < w->n_active; i++) w->x[w->active[i]] = x[i];
    dl_free(slopes);
    dl_free(x);
    return apart;
}

/* Those whose interval says nothing are given up, the worst first. */
static void fit_told(struct dl_calibration_work *w, double *pm)
{
    while (w->n_active && !w->err->status) {
        const bool apart = fit_active(w, pm);
        size_t worst = 0;
        if (stop_at_limits(w)) continue;
        for (size_t i = 1; i < w->n_active; i++)
            if (pm[i] > pm[worst]) worst = i;
        if (apart && pm[worst] <= DL_WIDEST_TOLD) return;
        drop(w, worst);
    }
}

static void keep(struct dl_calibration_work *w, size_t place, double pm, enum dl_fit_state state)
{
    const size_t constant = w->active[place];
    const struct dl_tunable *const k = &w->constants.items[constant];
    const double fitted = dl_calibration_value(k, w->x[constant]), value = state == DL_FIT_AGREES ? k->base : fitted;
    w->c->fitted[constant] = (struct dl_fitted_constant){.state = state,
                                                         .value = value,
                                                         .low = fmin(fitted * exp(-pm), value),
                                                         .high = fmax(fmin(fitted * exp(pm), k->max), value)};
}

/* A constant that lies in its interval as it was stays so: the times do not contradict it, and a value taken from them
 * would follow their noise. One after the other, for the others may then change. */
static void return_agreeing(struct dl_calibration_work *w, double *pm)
{
    while (w->n_active && !w->err->status) {
        size_t best = 0;
        for (size_t i = 1; i < w->n_active; i++)
            if (fabs(w->x[w->active[i]]) / pm[i] < fabs(w->x[w->active[best]]) / pm[best]) best = i;
        if (fabs(w->x[w->active[best]]) > pm[best]) return;
        keep(w, best, pm[best], DL_FIT_AGREES);
        drop(w, best);
        if (w->n_active) fit_active(w, pm);
    }
}

/* ---- all of it ---- */

static void note_before(void *user, struct dl_timed_run *run, const struct dl_choice *choice)
{
    (void)user;
    run->before_s = choice->estimate.time_s;
}

static void note_after(void *user, struct dl_timed_run *run, const struct dl_choice *choice)
{
    (void)user;
    run->after_s = choice->estimate.time_s;
    run->algorithm = choice->collective.algorithm->name;
    snprintf(run->protocol, sizeof run->protocol, "%s", choice->estimate.pace.protocol);
}

static void fit_rounds(struct dl_calibration_work *w, bool first, double *pm)
{
    for (int round = 0; round < most_rounds && !w->err->status && dl_calibration_select(w, first && !round); round++)
        fit_told(w, pm);
}

static void work_on(struct dl_calibration_work *w)
{
    double *const pm = dl_alloc(w->constants.n * sizeof *pm);
    dl_calibration_predict(w, true, note_before, NULL);
    fit_rounds(w, true, pm);
    if (!w->err->status && dl_calibration_approach(w)) {
        fit_told(w, pm);
        fit_rounds(w, false, pm);
    }
    return_agreeing(w, pm);
    for (size_t i = 0; i < w->n_active && !w->err->status; i++) keep(w, i, pm[i], DL_FIT_DONE);
    dl_free(dl_calibration_residuals(w));
    dl_calibration_predict(w, true, note_after, NULL);
    dl_free(pm);
}

enum dl_status dl_calibrate(struct dl_calibration *c, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_calibration_work w = {.c = c, .err = err};
    w.doc = (struct dl_json){.value = json_deep_copy(c->transport.value), .where = c->transport.where};
    w.constants = c->constants = dl_transport_tunables(w.doc, c->topology, arena);
    c->fitted = dl_arena_alloc(arena, (w.constants.n + 1) * sizeof *c->fitted);
    w.active = dl_alloc((w.constants.n + 1) * sizeof *w.active);
    w.x = dl_alloc((w.constants.n + 1) * sizeof *w.x);
    w.given_up = dl_alloc((w.constants.n + 1) * sizeof *w.given_up);
    for (size_t i = 0; i < c->n_runs; i++) w.n_fit += !c->runs[i].kept_out;
    work_on(&w);
    dl_free(w.active);
    dl_free(w.x);
    dl_free(w.given_up);
    json_decref(w.doc.value);
    return err->status;
}

enum dl_status dl_calibration_estimate(struct dl_calibration *c, bool after, struct dl_error *err)
{
    const struct dl_calibration_work w = {.c = c, .doc = c->transport, .err = err};
    dl_calibration_predict(&w, true, after ? note_after : note_before, NULL);
    return err->status;
}

/* ---- wires ---- */

struct below_wires {
    const struct dl_timed_run *last, *run; /* the one before; that which is the farthest below */
    double wires_s;
};

static void note_wires(void *user, struct dl_timed_run *run, const struct dl_choice *choice)
{
    struct below_wires *const b = user;
    const double wires_s = choice->estimate.latency_s;
    const bool is_first = !b->last || b->last->group != run->group; /* tables begin with the fewest bytes */
    b->last = run;
    if (!is_first || run->time_s >= wires_s || (b->run && b->wires_s / b->run->time_s >= wires_s / run->time_s)) return;
    b->run = run;
    b->wires_s = wires_s;
}

const struct dl_timed_run *dl_calibration_below_wires(const struct dl_calibration *c, struct dl_json transport,
                                                      double *wires_s, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_calibration copy = *c;
    struct below_wires found = {0};
    const struct dl_json bare = {.value = json_deep_copy(transport.value), .where = transport.where};
    const struct dl_tunables k = dl_transport_tunables(bare, c->topology, arena);
    for (size_t i = 0; i < k.n; i++)
        if (k.items[i].is_latency) dl_tunable_set(&k.items[i], 0);
    const struct dl_calibration_work w = {.c = &copy, .doc = bare, .err = err};
    dl_calibration_predict(&w, true, note_wires, &found);
    json_decref(bare.value);
    *wires_s = found.wires_s;
    return found.run;
}

/* ---- what came of it ---- */

size_t dl_calibration_count(const struct dl_calibration *c, enum dl_fit_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < c->constants.n; i++) n += c->fitted[i].state == state;
    return n;
}

double dl_calibration_error(const struct dl_calibration *c, bool kept_out, bool after)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct dl_timed_run *const run = &c->runs[i];
        if (run->kept_out != kept_out) continue;
        sum += fabs((after ? run->after_s : run->before_s) / run->time_s - 1);
        n++;
    }
    return sum / n;
}

static bool is_fitted(const struct dl_fitted_constant *f) { return f->state >= DL_FIT_AGREES; }

/* Entries of one list come or go together. */
static bool is_key_fitted(const struct dl_calibration *c, const struct dl_tunables *k, size_t i)
{
    for (size_t j = 0; j < k->n; j++)
        if (k->items[j].object == k->items[i].object && k->items[j].key == k->items[i].key && is_fitted(&c->fitted[j]))
            return true;
    return false;
}

void dl_calibration_apply(const struct dl_calibration *c, struct dl_json transport, const char *source,
                          struct dl_arena *arena)
{
    const struct dl_tunables k = dl_transport_tunables(transport, c->topology, arena);
    for (size_t i = 0; i < k.n; i++) {
        const struct dl_fitted_constant *const f = &c->fitted[i];
        if (is_fitted(f))
            dl_tunable_state(&k.items[i], f->value, f->low, f->high, source);
        else if (!is_key_fitted(c, &k, i))
            dl_tunable_drop(&k.items[i]);
    }
}
