#include "sim/study/sensitivity_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/session/own_memory.h"
#include "sim/session/pool.h"

/* Large enough that rounding of times does not tell, small enough that curvature does not. */
static const double change = 1.01;

enum side { UNCHANGED, SMALLER, LARGER, WORSE };

/* Most constants are not felt: neighbours are made worse together first, and apart where that is felt. */
enum { most_together = 32 };

struct job {
    size_t constant, n; /* the first, and how many in a row are changed */
    enum side side;     /* SMALLER or LARGER: of one constant; WORSE: of each its own */
};

struct playing {
    const struct dl_sensitivity_request *request;
    struct dl_figures figures;
    struct job *jobs;
    size_t n_jobs, capacity, n_played;
    double step_s, *changed_s[2];     /* by constant: smaller, larger; 0: it could not be changed so */
    const struct dl_session *network; /* whose machine and choices hold where nothing of the network changes */
    struct dl_session first;          /* nothing is changed; opened where runs may be in this process */
    struct dl_error *err;
};

static void add_job(struct playing *p, struct job job)
{
    DL_GROW(p->jobs, p->n_jobs, p->capacity);
    p->jobs[p->n_jobs++] = job;
}

/* Times get longer and rates lower: what is not felt then is not felt the other way either. */
static enum side worse(const struct dl_figure *c) { return c->effect.dimension == DL_TIME ? LARGER : SMALLER; }

static enum side better(const struct dl_figure *c) { return c->effect.dimension == DL_TIME ? SMALLER : LARGER; }

/* Relative, to the farther end of its interval. */
static double half_width(const struct dl_effect *e) { return fmax(e->high - e->value, e->value - e->low) / e->value; }

/* Where only what is left open counts, neighbours go this share of the way to the ends of their intervals. */
static const double share_of_way = 0.1;

/* Of constants that are changed together each by another factor: else a time that is longer and a count of it that is
 * smaller would cancel, and neither would be felt. */
static double factor_of(const struct playing *p, const struct job *j, size_t constant)
{
    if (j->n > 1 && p->request->least_open > 0)
        return pow(1 + half_width(&p->figures.items[constant].effect), share_of_way);
    return pow(change, 1 + (double)(constant - j->constant) / (double)j->n);
}

static void change_constants(const struct playing *p, const struct job *j, struct dl_texts *set, struct dl_arena *arena)
{
    for (size_t i = j->constant; i < j->constant + j->n; i++) {
        const struct dl_figure *const c = &p->figures.items[i];
        const enum side side = j->side == WORSE ? worse(c) : j->side;
        const double factor = factor_of(p, j, i);
        set->items[set->n++] = dl_figure_changed(c, side == LARGER ? factor : 1 / factor, arena);
    }
}

static bool is_of_network(const struct dl_figure *c) { return c->of == DL_OF_SYSTEM || c->of == DL_OF_TRANSPORT; }

/* Neighbours that are changed together are of one file. */
static bool network_stays(const struct playing *p, const struct job *j)
{
    return !j->n || !is_of_network(&p->figures.items[j->constant]);
}

static struct dl_session_request unchanged(const struct playing *p)
{
    struct dl_session_request request = p->request->session->request;
    request.timeline = false;
    request.progress = NULL;
    request.is_long = NULL;
    return request;
}

static void take_network(const struct playing *p, struct dl_session_request *request)
{
    if (!request->scenario && !request->ideal) request->network = p->network;
}

static void play(void *user, size_t job, void *result)
{
    const struct playing *const p = user;
    const struct job *const j = &p->jobs[job];
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session_request request = unchanged(p);
    struct dl_session s;
    const size_t n_asked = request.set.n;
    change_constants(p, j, &request.set, arena);
    request.n_doubts = request.set.n - n_asked;
    if (network_stays(p, j)) take_network(p, &request);
    if (!dl_session_open(&s, &request) && !dl_session_run(&s)) *(double *)result = s.report.result.step_s;
    dl_session_close(&s);
    dl_arena_free(arena);
}

/* Else in children: SimGrid allows one run a process, and only a process can be ended for being late. */
static bool may_play_here(const struct playing *p)
{
    return dl_session_engine(p->request->session)->alone && !p->request->limit_s;
}

static size_t count_workers(const struct dl_sensitivity_request *q)
{
    const struct dl_session *const s = q->session;
    if (q->n_workers) return q->n_workers;
    const size_t fit =
        dl_own_memory_runs(&(struct dl_own_run){s->machine.topology, &s->job, dl_session_engine(s), false});
    return fit < dl_pool_processors() ? fit : dl_pool_processors();
}

static void play_in_children(const struct playing *p, size_t n_workers, double *steps_s)
{
    struct dl_error *const errors = dl_alloc(p->n_jobs * sizeof *errors);
    const struct dl_pool_request pool = {.n_jobs = p->n_jobs,
                                         .n_workers = n_workers,
                                         .result_bytes = sizeof *steps_s,
                                         .run = play,
                                         .user = (void *)p,
                                         .simulates = !dl_session_engine(p->request->session)->alone,
                                         .limit_s = p->request->limit_s,
                                         .all_in_time = true,
                                         .what = p->request->what};
    dl_pool_run(&pool, steps_s, errors);
    for (size_t i = 0; i < p->n_jobs; i++)
        if (errors[i].status == DL_LATE) dl_fail(p->err, DL_LATE, "--sensitivity", "a run %s", errors[i].text);
    dl_pool_check(&pool, errors, "--sensitivity", p->err);
    dl_free(errors);
}

/* For dl_free, by job. */
static double *play_all(const struct playing *p)
{
    const size_t n_workers = count_workers(p->request);
    double *const steps_s = dl_alloc(p->n_jobs * sizeof *steps_s);
    if (n_workers > 1 || !may_play_here(p))
        play_in_children(p, n_workers, steps_s);
    else
        for (size_t i = 0; i < p->n_jobs; i++) play((void *)p, i, &steps_s[i]);
    return steps_s;
}

/* The collectives that it chooses need not be chosen again. */
static void play_first(struct playing *p)
{
    struct dl_session_request request = unchanged(p);
    take_network(p, &request);
    p->n_played++;
    p->network = &p->first;
    if (!dl_session_open(&p->first, &request) && !dl_session_run(&p->first)) p->step_s = p->first.report.result.step_s;
}

static void keep(struct playing *p, size_t constant, enum side side, double step_s)
{
    p->changed_s[side == LARGER][constant] = step_s;
}

/* Logarithms make it exact for every power of the constant. */
static double slope(double from_s, double to_s, double factor) { return log(to_s / from_s) / log(factor); }

/* Whether they leave enough open, were it what they do together. */
static bool matter(const struct playing *p, const struct job *j, double step_s)
{
    if (step_s == p->step_s) return false;
    if (!(step_s > 0)) return true; /* it was refused: each may do by itself */
    const double open = j->n > 1 ? log(step_s / p->step_s) / share_of_way
                                 : slope(p->step_s, step_s, change) * half_width(&p->figures.items[j->constant].effect);
    return fabs(open) >= p->request->least_open;
}

/* Play the jobs; what many together change is left to be simulated by halves. */
static void play_round(struct playing *p)
{
    const size_t n = p->n_jobs;
    double *const steps_s = play_all(p);
    p->n_played += n;
    struct job *const played = p->jobs;
    p->jobs = NULL;
    p->n_jobs = p->capacity = 0;
    for (size_t i = 0; i < n; i++) {
        const struct job *const j = &played[i];
        const size_t half = j->n / 2;
        if (j->side == UNCHANGED) p->step_s = steps_s[i];
        if (j->side == SMALLER || j->side == LARGER) keep(p, j->constant, j->side, steps_s[i]);
        if (j->side != WORSE) continue;
        const bool do_matter = matter(p, j, steps_s[i]);
        if (j->n > 1 && do_matter) {
            add_job(p, (struct job){j->constant, half, WORSE});
            add_job(p, (struct job){j->constant + half, j->n - half, WORSE});
        } else {
            for (size_t c = j->constant; c < j->constant + j->n; c++)
                keep(p, c, worse(&p->figures.items[c]), do_matter ? steps_s[i] : p->step_s);
        }
    }
    dl_free(played);
    dl_free(steps_s);
}

static bool are_alike(const struct dl_figure *a, const struct dl_figure *b)
{
    return a->of == b->of && a->effect.dimension == b->effect.dimension;
}

static int by_kind(const void *a, const void *b)
{
    const struct dl_figure *const x = a, *const y = b;
    if (x->of != y->of) return x->of < y->of ? -1 : 1;
    if (x->effect.dimension != y->effect.dimension) return x->effect.dimension < y->effect.dimension ? -1 : 1;
    return strcmp(x->effect.path, y->effect.path);
}

/* From this one on, that can be changed together: of one file, and where sums of effects decide, of one sign. */
static size_t count_alike(const struct playing *p, size_t first, size_t most)
{
    const struct dl_figure *const items = p->figures.items;
    const bool by_sign = p->request->least_open > 0;
    size_t n = 1;
    while (n < most && first + n < p->figures.n &&
           (by_sign ? are_alike(&items[first + n], &items[first]) : items[first + n].of == items[first].of))
        n++;
    return n;
}

static void play_both_sides(struct playing *p)
{
    const size_t room = DL_COUNT(p->request->session->request.set.items) - p->request->session->request.set.n;
    const size_t together = room < most_together ? room : most_together;
    if (p->request->least_open > 0) qsort(p->figures.items, p->figures.n, sizeof *p->figures.items, by_kind);
    if (may_play_here(p)) {
        play_first(p);
        if (!(p->step_s > 0)) return;
    } else {
        add_job(p, (struct job){0, 0, UNCHANGED});
    }
    for (size_t i = 0, n; i < p->figures.n; i += n) {
        n = count_alike(p, i, together);
        add_job(p, (struct job){i, n, WORSE});
    }
    while (p->n_jobs && !p->err->status) play_round(p);
    if (p->err->status) return;
    for (size_t i = 0; i < p->figures.n; i++) {
        const struct dl_figure *const c = &p->figures.items[i];
        if (p->changed_s[worse(c) == LARGER][i] != p->step_s) add_job(p, (struct job){i, 1, better(c)});
    }
    play_round(p);
}

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
    found.n_runs = p->n_played;
    found.n_unfelt = p->figures.n - n - n_fixed;
    found.n_fixed = n_fixed;
    if (p->request->model) {
        found.model = *p->request->model;
        dl_sensitivity_cover(&found, dl_discrepancy_open(&found.model));
    }
    return found;
}

enum dl_status dl_discrepancy_load(struct dl_arena *arena, struct dl_json *doc, struct dl_error *err)
{
    return dl_json_load(dl_shipped("validation/discrepancy.json", arena), arena, doc, err);
}

enum dl_status dl_discrepancy_of(struct dl_json doc, const struct dl_session *s, const char *left_out,
                                 struct dl_discrepancy *out, struct dl_error *err)
{
    const struct dl_setup setup = {.software = s->software.name,
                                   .system = s->machine.topology->name,
                                   .experts = dl_session_has_experts(s),
                                   .domain = dl_session_domain(s),
                                   .family = left_out};
    return dl_discrepancy_read_like(doc, &setup, &s->software_like, s->arena, out, err);
}

enum dl_status dl_sensitivity_find(const struct dl_sensitivity_request *request, struct dl_sensitivity *out,
                                   struct dl_error *err)
{
    struct playing p = {.request = request, .err = err, .network = request->session};
    dl_figures_find(request->session, &p.figures);
    for (int side = 0; side < 2; side++) p.changed_s[side] = dl_alloc(p.figures.n * sizeof *p.changed_s[side]);
    play_both_sides(&p);
    if (!err->status) *out = collect(&p, request->session->arena);
    for (int side = 0; side < 2; side++) dl_free(p.changed_s[side]);
    if (p.network == &p.first) dl_session_close(&p.first);
    dl_free(p.jobs);
    dl_free(p.figures.items);
    return err->status;
}
