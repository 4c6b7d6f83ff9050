#include "sim/study/row_intervals.h"

#include "sim/session/own_memory.h"
#include "sim/session/pool.h"
#include "sim/study/sensitivity_runs.h"

/* The model itself leaves about a hundred times as much open, and what is open adds as squares. */
static const double least_open = 1e-2;

struct bounding {
    const struct dl_row_trials *like;
    const char *engine;
    size_t n_workers; /* of a row: rows are in parallel, unless there is one alone */
    const char *const *left_out;
    const struct dl_compared *compared;
    struct dl_json discrepancies;
    double memory_bytes; /* for each run */
};

struct bounds {
    double step_s, low_s, high_s, constants_low_s, constants_high_s;
    struct dl_error lost;
};

static struct bounds bounds_of(const struct bounding *b, const struct dl_session *s, const char *left_out)
{
    struct dl_error err = {0};
    struct dl_discrepancy model;
    struct dl_sensitivity found;
    if (dl_discrepancy_of(b->discrepancies, s, left_out, &model, &err)) return (struct bounds){0};
    const struct dl_sensitivity_request request = {.session = s,
                                                   .n_workers = b->n_workers,
                                                   .limit_s = b->like->limit_s,
                                                   .least_open = least_open,
                                                   .model = &model};
    if (dl_sensitivity_find(&request, &found, &err)) return (struct bounds){.lost = err};
    return (struct bounds){.step_s = found.step_s,
                           .low_s = found.step_s_low,
                           .high_s = found.step_s_high,
                           .constants_low_s = found.constants_s_low,
                           .constants_high_s = found.constants_s_high};
}

static const char *engine_of(const struct bounding *b) { return b->engine ? b->engine : b->like->engine; }

/* In a child. */
static void bound(void *user, size_t job, void *result)
{
    const struct bounding *const b = user;
    const struct dl_training_row *const row = &b->like->rows->items[job];
    const int64_t microbatch = row->microbatch ? row->microbatch : b->compared[job].microbatch;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session_request request = {.engine = engine_of(b), .set = b->like->set, .memory_bytes = b->memory_bytes};
    struct dl_error err = {0};
    struct dl_session s;
    if (b->compared[job].failure || dl_training_row_request(row, microbatch, arena, &request, &err) ||
        dl_row_network(row, arena, &request, &err))
        return;
    if (!dl_session_open(&s, &request))
        *(struct bounds *)result = bounds_of(b, &s, b->left_out ? b->left_out[job] : NULL);
    dl_session_close(&s);
    dl_arena_free(arena);
}

static void take_bounds(const struct bounds *found, struct dl_compared *row)
{
    const double scale = found->step_s > 0 ? row->predicted_s / found->step_s : 1;
    row->low_s = scale * found->low_s;
    row->high_s = scale * found->high_s;
    row->constants_low_s = scale * found->constants_low_s;
    row->constants_high_s = scale * found->constants_high_s;
}

static enum dl_status bound_all(struct bounding *b, struct dl_compared *compared, size_t *n_late, struct dl_error *err)
{
    const struct dl_training_rows *const rows = b->like->rows;
    struct bounds *const bounds = dl_alloc(rows->n * sizeof *bounds);
    struct dl_error *const errors = dl_alloc(rows->n * sizeof *errors);
    const struct dl_pool_request pool = {.n_jobs = rows->n,
                                         .n_workers = b->like->jobs,
                                         .result_bytes = sizeof *bounds,
                                         .run = bound,
                                         .user = b,
                                         .simulates = !dl_engine_find(engine_of(b))->alone,
                                         .what = "intervals"};
    b->n_workers = rows->n > 1 ? 1 : b->like->jobs;
    b->memory_bytes = dl_own_memory_share_bytes(dl_pool_workers(&pool));
    dl_pool_run(&pool, bounds, errors);
    for (size_t i = 0; i < rows->n; i++) {
        if (bounds[i].lost.status == DL_LATE)
            ++*n_late;
        else if (bounds[i].lost.status)
            errors[i] = bounds[i].lost;
        take_bounds(&bounds[i], &compared[i]);
    }
    dl_pool_check(&pool, errors, "--intervals", err);
    dl_free(bounds);
    dl_free(errors);
    return err->status;
}

/* Whether the whole file can be read, before children do. */
static enum dl_status load(struct dl_arena *arena, struct dl_json *doc, struct dl_error *err)
{
    const struct dl_setup any = {.software = "", .system = ""};
    struct dl_discrepancy unused;
    if (dl_discrepancy_load(arena, doc, err)) return err->status;
    return dl_discrepancy_read(*doc, &any, arena, &unused, err);
}

enum dl_status dl_bound_rows(const struct dl_bounding_request *request, struct dl_compared *compared, size_t *n_late,
                             struct dl_error *err)
{
    struct bounding b = {
        .like = request->like, .engine = request->engine, .left_out = request->left_out, .compared = compared};
    struct dl_arena *const arena = dl_arena_new();
    if (!load(arena, &b.discrepancies, err)) bound_all(&b, compared, n_late, err);
    json_decref(b.discrepancies.value);
    dl_arena_free(arena);
    return err->status;
}
