/* validate_command.c - measured training steps against what dlsim predicts for them, many at once. */
#include <math.h>

#include "sim/app/commands.h"
#include "sim/app/pool.h"
#include "sim/app/training_row.h"
#include "sim/report/validation.h"

struct request {
    const char *rows, *json, *engine;
    double limit;
    uint64_t jobs;
    struct dl_texts set;
};

static const struct dl_option options[] = {
    {"rows", DL_OPT_TEXT, offsetof(struct request, rows), false, 0, 0, NULL},
    {"limit", DL_OPT_NUMBER, offsetof(struct request, limit), false, 0, 1e9, NULL},
    {"json", DL_OPT_TEXT, offsetof(struct request, json), false, 0, 0, NULL},
    {"engine", DL_OPT_CHOICE, offsetof(struct request, engine), false, 0, 0, dl_session_engines},
    {"jobs", DL_OPT_COUNT, offsetof(struct request, jobs), false, 1, 4096, NULL},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL},
};

/* A row with one micro-batch; rows that say none are tried with all that could be. */
struct trial {
    size_t row;
    int64_t microbatch;
};

struct prediction {
    double step_s;
    bool fits;
    struct dl_error err;
};

struct validating {
    const struct request *request;
    const struct dl_training_rows *rows;
    struct trial *trials;
    size_t n_trials, trials_capacity;
};

/* ---- what to run ---- */

static void add_trial(struct validating *v, size_t row, int64_t microbatch)
{
    DL_GROW(v->trials, v->n_trials, v->trials_capacity);
    v->trials[v->n_trials++] = (struct trial){row, microbatch};
}

static void add_trials(struct validating *v, size_t row)
{
    const int64_t most = 128; /* no row that says it has more */
    const struct dl_training_row *const r = &v->rows->items[row];
    const int64_t batch = dl_training_row_batch(r);
    if (r->microbatch || !batch) {
        add_trial(v, row, r->microbatch ? r->microbatch : 1);
        return;
    }
    for (int64_t size = 1; size <= most && size <= batch; size++)
        if (batch % size == 0) add_trial(v, row, size);
}

/* In a child. */
static void predict(void *user, size_t job, void *result)
{
    const struct validating *const v = user;
    const struct trial *const trial = &v->trials[job];
    struct prediction *const out = result;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session_request request = {.engine = v->request->engine, .set = v->request->set};
    struct dl_session s;
    if (dl_training_row_request(&v->rows->items[trial->row], trial->microbatch, arena, &request, &out->err)) return;
    if (!dl_session_open(&s, &request) && !dl_session_run(&s)) {
        out->step_s = s.report.result.step_s;
        out->fits = dl_run_fits(&s.report);
    }
    out->err = s.err;
    dl_session_close(&s);
    dl_arena_free(arena);
}

/* ---- what came of it ---- */

/* The fastest that fits; where none does, the first, which is the smallest. */
static bool is_better(const struct prediction *a, const struct prediction *than)
{
    if (a->err.status) return false;
    if (than->err.status) return true;
    return a->fits && (!than->fits || a->step_s < than->step_s);
}

/* Rows of one model, whatever the length of their samples. */
static const char *name_model(const struct dl_training_row *r, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s %lld %lld %lld %lld %lld %lld", r->model, (long long)r->layers,
                           (long long)r->hidden, (long long)r->ffn, (long long)r->heads, (long long)r->kv_heads,
                           (long long)r->vocab);
}

static struct dl_compared compare(const struct dl_training_row *r, const struct trial *trial,
                                  const struct prediction *p, struct dl_arena *arena)
{
    return (struct dl_compared){.id = r->id,
                                .source = r->source,
                                .model = name_model(r, arena),
                                .assumed = r->assumed,
                                .failure = p->err.status ? dl_arena_string(arena, p->err.text) : NULL,
                                .measured_s = r->step_s,
                                .predicted_s = p->step_s,
                                .fits = p->fits,
                                .microbatch = r->microbatch ? 0 : trial->microbatch};
}

static struct dl_compared *predict_all(struct validating *v, struct dl_arena *arena)
{
    struct prediction *const predictions = dl_alloc(v->n_trials * sizeof *predictions);
    struct dl_error *const errors = dl_alloc(v->n_trials * sizeof *errors);
    struct dl_compared *const compared = dl_arena_alloc(arena, v->rows->n * sizeof *compared);
    dl_pool_run(&(struct dl_pool_request){.n_jobs = v->n_trials,
                                          .n_workers = v->request->jobs,
                                          .result_bytes = sizeof *predictions,
                                          .run = predict,
                                          .user = v,
                                          .what = "rows"},
                predictions, errors);
    for (size_t i = 0, best = 0; i < v->n_trials; i++) {
        const size_t row = v->trials[i].row;
        if (errors[i].status) predictions[i].err = errors[i];
        if (v->trials[best].row != row || is_better(&predictions[i], &predictions[best])) best = i;
        compared[row] = compare(&v->rows->items[row], &v->trials[best], &predictions[best], arena);
    }
    dl_free(predictions);
    dl_free(errors);
    return compared;
}

/* ---- the command ---- */

/* A row that fails misses the limit too, or leaving out the worst would meet it. */
static int judge(const struct dl_validation *v, double limit)
{
    const struct dl_errors all = dl_validation_summary(v);
    return isnan(limit) || (all.mape <= limit && !all.n_failed) ? 0 : 1;
}

static int validate(const struct request *q, const struct dl_training_rows *rows, struct dl_arena *arena,
                    struct dl_error *err)
{
    struct validating v = {.request = q, .rows = rows};
    for (size_t i = 0; i < rows->n; i++) add_trials(&v, i);
    const struct dl_validation told = dl_validation_of(predict_all(&v, arena), rows->n, q->engine, arena);
    if (q->json)
        dl_write_json(q->json, dl_validation_json(&told), err);
    else
        dl_validation_text(&told);
    dl_free(v.trials);
    return judge(&told, q->limit);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {.engine = dl_session_engines[0], .limit = NAN};
    struct dl_arena *const arena = dl_arena_new();
    struct dl_training_rows rows = {0};
    int code = 0;
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) &&
        !(q.rows ? dl_training_rows_read(q.rows, arena, &rows, err) : dl_training_rows_published(arena, &rows, err)))
        code = validate(&q, &rows, arena, err);
    dl_free(rows.items);
    dl_arena_free(arena);
    return code;
}

const struct dl_command dl_command_validate = {
    .name = "validate",
    .doc = "predicted against measured training steps",
    .usage = "validate [--rows CSV] [--limit FRACTION] [--json FILE|-] [--engine NAME] [--jobs N] [--set PATH=JSON]...",
    .run = run,
};
