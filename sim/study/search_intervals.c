#include "sim/study/search_intervals.h"

#include <stdlib.h>

#include "sim/core/clock.h"
#include "sim/report/comparison.h"
#include "sim/study/sensitivity_runs.h"

struct telling {
    struct dl_search search; /* by the analytic engine */
    struct dl_json discrepancies;
    struct dl_session *sessions; /* by candidate; runs and effects point into them */
    struct dl_told_run *runs;
    struct dl_search_report *report;
    struct dl_error *err;
};

static void bound(struct dl_candidate *c, const struct dl_sensitivity *s)
{
    c->interval.is_known = true;
    c->interval.step_s_low = c->step_s * s->step_s_low / s->step_s;
    c->interval.step_s_high = c->step_s * s->step_s_high / s->step_s;
}

static void find_effects(struct telling *t, size_t i)
{
    struct dl_candidate *const c = &t->report->simulated[i];
    struct dl_session *const s = &t->sessions[i];
    struct dl_discrepancy model;
    struct dl_sensitivity found;
    if (dl_discrepancy_of(t->discrepancies, s, NULL, &model, t->err) ||
        dl_sensitivity_find(&(struct dl_sensitivity_request){.session = s,
                                                             .n_workers = t->report->n_workers,
                                                             .what = "runs with a changed constant",
                                                             .model = &model},
                            &found, t->err))
        return;
    t->report->n_interval_runs += found.n_runs;
    t->runs[i] = dl_told_run_of(c->words, 1 / c->step_s, &found); /* batches of one size: steps a second */
    bound(c, &found);
}

/* Open the session of a candidate, which is left to be closed, and find what its step depends on. */
static void tell(struct telling *t, size_t i)
{
    json_t *const doc = dl_search_document(&t->search, t->report->simulated[i].point, t->search.arena, t->err);
    char *const text = json_dumps(doc, JSON_COMPACT);
    const struct dl_session_request q = dl_search_request(&t->search, t->report->simulated[i].point, text);
    if (dl_session_open(&t->sessions[i], &q)) *t->err = t->sessions[i].err;
    if (!t->err->status) find_effects(t, i);
    free(text);
    json_decref(doc);
}

static void compare(struct telling *t, size_t i)
{
    const struct dl_comparison c = dl_compare_runs(&t->runs[i], &t->runs[0], t->search.arena);
    struct dl_candidate_interval *const interval = &t->report->simulated[i].interval;
    interval->of_first = c.speedup.step_s;
    interval->of_first_low = i ? c.speedup.step_s_low : 1; /* of itself, this is sure */
    interval->of_first_high = i ? c.speedup.step_s_high : 1;
    interval->told_apart = i && dl_told_apart(&c);
}

enum dl_status dl_search_intervals(const struct dl_search *s, size_t most, struct dl_search_report *report,
                                   struct dl_error *err)
{
    const size_t n = report->n_simulated < most ? report->n_simulated : most;
    struct telling t = {.search = *s, .report = report, .err = err};
    const double begun_s = dl_clock_s();
    size_t n_opened = 0;
    if (!n || dl_discrepancy_load(s->arena, &t.discrepancies, err)) return err->status;
    t.search.engine = "analytic";
    t.sessions = dl_alloc(n * sizeof *t.sessions);
    t.runs = dl_alloc(n * sizeof *t.runs);
    while (n_opened < n && !err->status) tell(&t, n_opened++);
    for (size_t i = 0; i < n && !err->status; i++) compare(&t, i);
    for (size_t i = 0; i < n_opened; i++) dl_session_close(&t.sessions[i]);
    report->n_told = n;
    report->intervals_s = dl_clock_s() - begun_s;
    json_decref(t.discrepancies.value);
    dl_free(t.runs);
    dl_free(t.sessions);
    return err->status;
}
