#include "sim/study/search_run.h"

#include "sim/core/clock.h"
#include "sim/report/progress.h"
#include "sim/sweep/workers.h"

enum { limit_s = 600 }; /* of a point */

/* ---- results ---- */

static double number(const json_t *result, const char *key) { return json_number_value(json_object_get(result, key)); }

static void add_candidate(struct dl_search_run *r, const json_t *result)
{
    const json_t *const causes = json_object_get(result, "exposed_s");
    struct dl_candidate c = {.point = (uint64_t)json_integer_value(json_object_get(result, "point")),
                             .step_s = number(result, "step_s"),
                             .screened_s = number(result, "step_s"),
                             .mfu = number(result, "mfu"),
                             .tokens_per_s = number(result, "tokens_per_s"),
                             .peak_bytes = number(result, "peak_bytes"),
                             .left_fraction = number(result, "left_fraction"),
                             .energy_j = number(result, "energy_j"),
                             .cost_usd = number(result, "cost_usd")};
    for (size_t i = 0; i < DL_N_CAUSES; i++) c.exposed_s[i] = json_number_value(json_array_get(causes, i));
    DL_GROW(r->found, r->n_found, r->capacity);
    r->found[r->n_found++] = c;
}

static enum dl_status take(void *user, const json_t *result, struct dl_error *err)
{
    struct dl_search_run *const r = user;
    const char *const refusal = json_string_value(json_object_get(result, "refused"));
    const char *const failure = json_string_value(json_object_get(result, "reason"));
    if (json_object_get(result, "step_s"))
        add_candidate(r, result);
    else if (refusal || failure)
        dl_refusals_add(refusal ? &r->refused : &r->lost, refusal ? refusal : failure, 1);
    else
        r->report.n_unfit++;
    return err->status;
}

static enum dl_status tick(void *user, size_t n_done, struct dl_error *err)
{
    const struct dl_search_run *const r = user;
    dl_progress_rate(n_done, 0, r->n_now, dl_clock_s() - r->begun_s, r->what);
    return err->status;
}

/* ---- running points ---- */

static void *open_point(void *user, uint64_t point)
{
    return dl_search_open_point(&((struct dl_search_run *)user)->search, point);
}

/* Those that a sweep has run are taken; the others are left in the list. Returns how many. */
static size_t take_known(struct dl_search_run *r, uint64_t *points, size_t n, struct dl_error *err)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *const result = r->known ? dl_known_find(r->known, &r->search, points[i]) : NULL;
        if (!result) {
            points[n_left++] = points[i];
            continue;
        }
        json_object_set_new(result, "point", json_integer((json_int_t)points[i]));
        take(r, result, err);
    }
    return n_left;
}

/* Returns the number of a signal that ended it. */
static int run_points(struct dl_search_run *r, const uint64_t *all, size_t n_all, size_t *n_known, struct dl_error *err)
{
    uint64_t *const points = dl_alloc((n_all + 1) * sizeof *points);
    r->found = NULL;
    r->n_found = r->capacity = 0;
    r->begun_s = dl_clock_s();
    for (size_t i = 0; i < n_all; i++) points[i] = all[i];
    const size_t n = r->n_now = take_known(r, points, n_all, err);
    *n_known = n_all - n;
    const bool simulates = !dl_engine_find(r->search.engine)->alone;
    const int signal = dl_workers_run(&(struct dl_workers_request){.points = points,
                                                                   .n_points = n,
                                                                   .n_workers = r->report.n_workers,
                                                                   .simulates = simulates,
                                                                   .limit_s = limit_s,
                                                                   .open = open_point,
                                                                   .stands_alone = dl_search_stands_alone,
                                                                   .run = dl_search_run_point,
                                                                   .close = dl_search_close_point,
                                                                   .take = take,
                                                                   .tick = tick,
                                                                   .user = r},
                                      err);
    dl_progress_end();
    dl_free(points);
    return signal;
}

static void describe(const struct dl_search_run *r, struct dl_candidate *c)
{
    const struct dl_space_point p = dl_space_point(&r->search.space, c->point);
    c->words = dl_search_words(&p, r->search.arena);
    c->placement = dl_search_placement(&p);
}

int dl_search_screen(struct dl_search_run *r, struct dl_error *err)
{
    const struct dl_space *const space = &r->search.space;
    r->what = "points screened";
    r->search.engine = "analytic";
    r->report.n_space = space->n_combinations;
    r->report.n_looked_at = space->n_points;
    const int signal = run_points(r, space->points, space->n_points, &r->report.n_screened_before, err);
    r->report.screening_s = dl_clock_s() - r->begun_s;
    r->report.screened = r->found;
    r->report.n_screened = r->n_found;
    dl_candidates_sort(r->found, r->n_found, r->report.objective);
    for (size_t i = 0; i < r->n_found; i++) describe(r, &r->found[i]);
    return signal;
}

/* What screening has found of the same point. */
static void keep_screened(const struct dl_search_report *report, struct dl_candidate *c)
{
    const struct dl_candidate *same = report->screened;
    while (same->point != c->point) same++;
    c->screened_s = same->step_s;
    c->words = same->words;
    c->placement = same->placement;
}

int dl_search_simulate(struct dl_search_run *r, size_t top, struct dl_error *err)
{
    const size_t n = r->report.n_screened < top ? r->report.n_screened : top;
    uint64_t *const points = dl_alloc((n + 1) * sizeof *points);
    for (size_t i = 0; i < n; i++) points[i] = r->report.screened[i].point;
    r->what = "points simulated";
    r->search.engine = dl_engine_names[0];
    const int signal = run_points(r, points, n, &r->report.n_simulated_before, err);
    r->report.simulating_s = dl_clock_s() - r->begun_s;
    r->report.simulated = r->found;
    r->report.n_simulated = r->n_found;
    dl_candidates_sort(r->found, r->n_found, r->report.objective);
    for (size_t i = 0; i < r->n_found; i++) keep_screened(&r->report, &r->found[i]);
    dl_free(points);
    return signal;
}
