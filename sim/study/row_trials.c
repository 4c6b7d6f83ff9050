#include "sim/study/row_trials.h"

#include <math.h>

#include "sim/session/own_memory.h"
#include "sim/session/pool.h"

void dl_row_trials_add(struct dl_row_trials *t, struct dl_row_trial trial)
{
    DL_GROW(t->items, t->n, t->capacity);
    t->items[t->n++] = trial;
}

struct predicting {
    const struct dl_row_trials *trials;
    double memory_bytes; /* for each run */
};

/* In a child. */
static void predict(void *user, size_t job, void *result)
{
    const struct predicting *const p = user;
    const struct dl_row_trials *const t = p->trials;
    const struct dl_row_trial *const trial = &t->items[job];
    struct dl_row_prediction *const out = result;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session_request request = {
        .engine = t->engine, .set = t->set, .ideal = trial->ideal, .memory_bytes = p->memory_bytes};
    struct dl_session s;
    const struct dl_training_row *const row = &t->rows->items[trial->row];
    const enum dl_flop_count count = (enum dl_flop_count)row->attention_flop;
    if (dl_training_row_request(row, trial->microbatch, arena, &request, &out->err) ||
        dl_row_network(row, arena, &request, &out->err))
        return;
    if (!dl_session_open(&s, &request) && !dl_session_run(&s)) {
        out->step_s = s.report.result.step_s;
        out->result = s.report.result;
        out->samples_per_s = s.job.setting.global_batch / out->step_s;
        out->mfu = dl_run_mfu(&s.report, count);
        out->hfu = dl_run_hfu(&s.report, count);
        out->fits = dl_run_fits(&s.report);
        const uint32_t fullest = dl_run_fullest_stage(&s.report);
        const bool on_first = row->reserved_on == DL_RESERVED_ON_FIRST_STAGE;
        const struct dl_memory_use *const told = &s.report.memory[on_first ? 0 : fullest];
        out->peak_bytes = s.report.memory[fullest].peak;
        out->reserved_bytes = told->peak + told->fragmentation;
        out->experts = dl_session_has_experts(&s);
        out->domain = dl_session_domain(&s);
        dl_session_sha256(&s, out->sha256);
    }
    out->err = s.err;
    dl_session_close(&s);
    dl_arena_free(arena);
}

struct dl_row_prediction *dl_row_trials_run(const struct dl_row_trials *t)
{
    struct dl_row_prediction *const predictions = dl_alloc(t->n * sizeof *predictions);
    struct dl_error *const errors = dl_alloc(t->n * sizeof *errors);
    struct predicting predicting = {.trials = t};
    const struct dl_pool_request pool = {.n_jobs = t->n,
                                         .n_workers = t->jobs,
                                         .result_bytes = sizeof *predictions,
                                         .run = predict,
                                         .user = &predicting,
                                         .simulates = !dl_engine_find(t->engine)->alone,
                                         .limit_s = t->limit_s,
                                         .what = "rows"};
    predicting.memory_bytes = dl_own_memory_share_bytes(dl_pool_workers(&pool));
    dl_pool_run(&pool, predictions, errors);
    for (size_t i = 0; i < t->n; i++)
        if (errors[i].status) {
            predictions[i].lost = true;
            const bool is_late = errors[i].status == DL_LATE;
            dl_fail(&predictions[i].err, errors[i].status, is_late ? "--row-limit" : NULL, "%s", errors[i].text);
        }
    dl_free(errors);
    return predictions;
}

enum dl_status dl_row_trials_check(const struct dl_row_trials *t, const struct dl_row_prediction *predictions,
                                   struct dl_error *err)
{
    size_t n_lost = 0, first = 0;
    for (size_t i = 0; i < t->n; i++)
        if (predictions[i].lost && predictions[i].err.status != DL_LATE && !n_lost++) first = i;
    if (!n_lost) return DL_OK;
    return dl_fail(err, DL_STALLED, "validate", "%zu of %zu runs were lost; of the first, of row %s, %s", n_lost, t->n,
                   t->rows->items[t->items[first].row].id, predictions[first].err.text);
}

/* ---- what parts add ---- */

static const enum dl_step_part switched[] = {DL_PART_COMPUTE, DL_PART_NETWORK, DL_PART_HOST};

/* Seconds of a step; what parts add to one of a pair is not what they add to both. */
static bool has_parts(const struct dl_compared *row)
{
    return !row->failure && row->quantity == DL_STEP && !isnan(row->measured_s);
}

void dl_find_added(const struct dl_row_trials *like, struct dl_compared *compared, struct dl_error *err)
{
    struct dl_row_trials t = {
        .rows = like->rows, .engine = like->engine, .jobs = like->jobs, .limit_s = like->limit_s, .set = like->set};
    for (size_t i = 0; i < t.rows->n; i++) {
        const int64_t stated = t.rows->items[i].microbatch;
        for (size_t j = 0; j < DL_COUNT(switched) && has_parts(&compared[i]); j++)
            dl_row_trials_add(&t,
                              (struct dl_row_trial){i, stated ? stated : compared[i].microbatch, 1U << switched[j]});
    }
    struct dl_row_prediction *const predictions = dl_row_trials_run(&t);
    for (size_t i = 0; i < t.n; i++) {
        struct dl_compared *const row = &compared[t.items[i].row];
        const size_t part = i % DL_COUNT(switched);
        row->added_s[switched[part]] = row->predicted_s - predictions[i].step_s;
        row->knows_parts = (part == 0 || row->knows_parts) && !predictions[i].err.status;
    }
    dl_row_trials_check(&t, predictions, err);
    dl_free(predictions);
    dl_free(t.items);
}
