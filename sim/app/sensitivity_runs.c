#include "sim/app/sensitivity_runs.h"

#include <math.h>

#include "sim/app/own_memory.h"
#include "sim/app/pool.h"
#include "sim/core/files.h"

/* Large enough that rounding of times does not tell, small enough that curvature does not. */
static const double change = 1.01;

enum side { UNCHANGED, SMALLER, LARGER };

struct job {
    size_t constant;
    enum side side;
};

struct playing {
    const struct dl_sensitivity_request *request;
    struct dl_figures figures;
    struct job *jobs;
    size_t n_jobs, capacity;
    double step_s, *changed_s[2]; /* by constant: smaller, larger; 0: it could not be changed so */
};

static void add_job(struct playing *p, size_t constant, enum side side)
{
    DL_GROW(p->jobs, p->n_jobs, p->capacity);
    p->jobs[p->n_jobs++] = (struct job){constant, side};
}

/* In a child. */
static void play(void *user, size_t job, void *result)
{
    const struct playing *const p = user;
    const struct job *const j = &p->jobs[job];
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session_request request = p->request->session->request;
    struct dl_session s;
    request.trace = false;
    request.progress = NULL;
    if (j->side != UNCHANGED)
        request.set.items[request.set.n++] =
            dl_figure_changed(&p->figures.items[j->constant], j->side == LARGER ? change : 1 / change, arena);
    if (!dl_session_open(&s, &request) && !dl_session_run(&s)) *(double *)result = s.report.result.step_s;
    dl_session_close(&s);
    dl_arena_free(arena);
}

static size_t count_workers(const struct dl_sensitivity_request *q)
{
    const struct dl_session *const s = q->session;
    if (q->n_workers) return q->n_workers;
    const size_t fit = dl_own_memory_runs(s->machine.topology, &s->job, s->request.engine);
    return fit < dl_pool_processors() ? fit : dl_pool_processors();
}

static void play_all(struct playing *p)
{
    double *const steps_s = dl_alloc(p->n_jobs * sizeof *steps_s);
    struct dl_error *const errors = dl_alloc(p->n_jobs * sizeof *errors);
    dl_pool_run(&(struct dl_pool_request){.n_jobs = p->n_jobs,
                                          .n_workers = count_workers(p->request),
                                          .result_bytes = sizeof *steps_s,
                                          .run = play,
                                          .user = p,
                                          .what = p->request->what},
                steps_s, errors);
    for (size_t i = 0; i < p->n_jobs; i++)
        if (p->jobs[i].side == UNCHANGED)
            p->step_s = steps_s[i];
        else
            p->changed_s[p->jobs[i].side == LARGER][p->jobs[i].constant] = steps_s[i];
    p->n_jobs = 0;
    dl_free(steps_s);
    dl_free(errors);
}

/* Times get longer and rates lower: what is not felt then is not felt the other way either. */
static enum side worse(const struct dl_figure *c) { return c->effect.dimension == DL_TIME ? LARGER : SMALLER; }

static enum side better(const struct dl_figure *c) { return c->effect.dimension == DL_TIME ? SMALLER : LARGER; }

static void play_both_sides(struct playing *p)
{
    add_job(p, 0, UNCHANGED);
    for (size_t i = 0; i < p->figures.n; i++) add_job(p, i, worse(&p->figures.items[i]));
    play_all(p);
    for (size_t i = 0; i < p->figures.n; i++) {
        const enum side side = worse(&p->figures.items[i]);
        if (p->changed_s[side == LARGER][i] != p->step_s) add_job(p, i, better(&p->figures.items[i]));
    }
    play_all(p);
}

/* Logarithms make it exact for every power of the constant. */
static double slope(double from_s, double to_s, double factor) { return log(to_s / from_s) / log(factor); }

/* Runs were refused on both sides: a limit, or a key that --set cannot write. */
static bool is_fixed(const struct playing *p, size_t i) { return !(p->changed_s[0][i] > 0 || p->changed_s[1][i] > 0); }

/* False: the constant has no effect, or is fixed. */
static bool fill_effect(const struct playing *p, size_t i, struct dl_effect *e)
{
    const double smaller_s = p->changed_s[0][i], larger_s = p->changed_s[1][i];
    if (smaller_s > 0) e->below = slope(smaller_s, p->step_s, change);
    if (larger_s > 0) e->above = slope(p->step_s, larger_s, change);
    if (!(smaller_s > 0)) e->below = e->above;
    if (!(larger_s > 0)) e->above = e->below;
    e->elasticity = (e->below + e->above) / 2;
    return e->below != 0 || e->above != 0;
}

static struct dl_sensitivity collect(const struct playing *p, struct dl_arena *arena)
{
    struct dl_effect *const effects = dl_arena_alloc(arena, p->figures.n * sizeof *effects);
    size_t n = 0, n_fixed = 0;
    for (size_t i = 0; i < p->figures.n && p->step_s > 0; i++) {
        effects[n] = p->figures.items[i].effect;
        n += fill_effect(p, i, &effects[n]);
        n_fixed += is_fixed(p, i);
    }
    struct dl_sensitivity found = dl_sensitivity_of(p->step_s, effects, n);
    found.n_unfelt = p->figures.n - n - n_fixed;
    found.n_fixed = n_fixed;
    if (p->request->model) {
        found.model = *p->request->model;
        dl_sensitivity_widen(&found, dl_discrepancy_half_width(&found.model));
    }
    return found;
}

enum dl_status dl_discrepancy_load(struct dl_arena *arena, struct dl_json *doc, struct dl_error *err)
{
    return dl_json_load(dl_shipped("validation/discrepancy.json", arena), arena, doc, err);
}

enum dl_status dl_discrepancy_of(struct dl_json doc, const struct dl_session *s, struct dl_discrepancy *out,
                                 struct dl_error *err)
{
    const struct dl_setup setup = {
        .software = s->software.name, .system = s->machine.topology->name, .experts = dl_session_has_experts(s)};
    return dl_discrepancy_read(doc, &setup, s->arena, out, err);
}

struct dl_sensitivity dl_sensitivity_find(const struct dl_sensitivity_request *request)
{
    struct playing p = {.request = request};
    dl_figures_find(request->session, &p.figures);
    for (int side = 0; side < 2; side++) p.changed_s[side] = dl_alloc(p.figures.n * sizeof *p.changed_s[side]);
    play_both_sides(&p);
    const struct dl_sensitivity found = collect(&p, request->session->arena);
    for (int side = 0; side < 2; side++) dl_free(p.changed_s[side]);
    dl_free(p.jobs);
    dl_free(p.figures.items);
    return found;
}
