/* validate_command.c - measured training steps against what dlsim predicts for them, many at once. */
#include <math.h>

#include "sim/app/commands.h"
#include "sim/core/output.h"
#include "sim/draw/page.h"
#include "sim/draw/validation_picture.h"
#include "sim/engine/engines.h"
#include "sim/report/budget.h"
#include "sim/study/log_run.h"
#include "sim/study/row_intervals.h"
#include "sim/study/row_trials.h"

struct request {
    const char *rows, *json, *html, *svg, *engine;
    double limit, row_limit_s;
    uint64_t jobs;
    bool intervals, leave_family_out;
    struct dl_texts set;
    bool budget, markdown, rows_table;
    struct dl_log_given given;
};

#define GIVEN(member) offsetof(struct request, given.member)

static const struct dl_option options[] = {
    {"rows", DL_OPT_TEXT, offsetof(struct request, rows), false, 0, 0, NULL,
     "a table of validation/published, a file like rows.csv, or the log of a run; all shipped tables if absent"},
    {"topo", DL_OPT_TEXT, GIVEN(topo), false, 0, 0, NULL, "of a log: the machine"},
    {"workload", DL_OPT_TEXT, GIVEN(workload), false, 0, 0, NULL, "of a log: the model, in place of what the log says"},
    {"strategy", DL_OPT_TEXT, GIVEN(strategy), false, 0, 0, NULL,
     "of a log: how the model is spread, if the log does not say it"},
    {"devices", DL_OPT_COUNT, GIVEN(devices), false, 1, 2147483647.0, NULL,
     "of a log: number of devices, if the log does not say it"},
    {"software", DL_OPT_TEXT, GIVEN(software), false, 0, 0, NULL,
     "of a log: the framework; the nearest to the program of the log if absent"},
    {"warmup", DL_OPT_COUNT, GIVEN(warmup), false, 0, 1e9, NULL,
     "of a log: steps that are left out at its beginning; 10 if absent, and never more than half of them"},
    {"limit", DL_OPT_NUMBER, offsetof(struct request, limit), false, 0, 1e9, NULL,
     "exit code 1 if the mean error is above this fraction"},
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "all rows, families and the summary for programs too; - is standard output, in place of the text"},
    {"html", DL_OPT_OUTPUT, offsetof(struct request, html), false, 0, 0, NULL,
     "measured against predicted as a page, one file for any browser; - is standard output"},
    {"svg", DL_OPT_OUTPUT, offsetof(struct request, svg), false, 0, 0, NULL,
     "measured against predicted steps as a picture; - is standard output, in place of the text"},
    {"engine", DL_OPT_CHOICE, offsetof(struct request, engine), false, 0, 0, dl_engine_names,
     "how time is simulated; simgrid if absent"},
    {"jobs", DL_OPT_COUNT, offsetof(struct request, jobs), false, 1, 4096, NULL,
     "rows that run in parallel; as many as processors if absent"},
    {"row-limit", DL_OPT_NUMBER, offsetof(struct request, row_limit_s), false, 1e-3, 1e6, NULL,
     "seconds; a run that takes longer is ended, its row fails or has no interval, and the exit code is 1; no limit if "
     "absent"},
    {"intervals", DL_OPT_FLAG, offsetof(struct request, intervals), false, 0, 0, NULL,
     "how many measured steps lie within the intervals of the predicted"},
    {"leave-family-out", DL_OPT_FLAG, offsetof(struct request, leave_family_out), false, 0, 0, NULL,
     "with --intervals: the interval of a row does not know the errors of its own family"},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL,
     "override a value of a file: topo.nodes=4, microbatch=2; +stack.zero.stage=1 adds an entry, -stack.zero removes "
     "it; may be repeated"},
    {"budget", DL_OPT_FLAG, offsetof(struct request, budget), false, 0, 0, NULL,
     "which parts of the step the errors come from"},
    {"rows-table", DL_OPT_FLAG, offsetof(struct request, rows_table), false, 0, 0, NULL,
     "every row on a line, as given: id, measured, predicted, error, whether it fits, family"},
    {"markdown", DL_OPT_FLAG, offsetof(struct request, markdown), false, 0, 0, NULL,
     "tables in Markdown, as in docs/accuracy.md"},
};

/* ---- what to run ---- */

/* Rows that say no micro-batch are tried with all that could be. */
static void add_trials(struct dl_row_trials *t, size_t row)
{
    const int64_t most = 128; /* no row that says it has more */
    const struct dl_training_row *const r = &t->rows->items[row];
    const int64_t batch = dl_training_row_batch(r);
    if (r->microbatch || !batch) {
        dl_row_trials_add(t, (struct dl_row_trial){.row = row, .microbatch = r->microbatch ? r->microbatch : 1});
        return;
    }
    for (int64_t size = 1; size <= most && size <= batch; size++)
        if (batch % size == 0) dl_row_trials_add(t, (struct dl_row_trial){.row = row, .microbatch = size});
}

/* ---- what came of it ---- */

/* The fastest that fits; where none does, the first, which is the smallest. One that was lost might have been it. */
static bool is_better(const struct dl_row_prediction *a, const struct dl_row_prediction *than)
{
    if (a->lost || than->lost) return a->lost;
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

/* What one would choose among; nothing where a file says how the step ran. */
static const char *name_cell(const struct dl_training_row *r, struct dl_arena *arena)
{
    if (r->strategy) return NULL;
    return dl_arena_format(arena, "%s, %lld devices of %s, batches of %lld x %lld", name_model(r, arena),
                           (long long)r->devices, r->topo, (long long)r->global_batch, (long long)r->seq);
}

/* What is published of the step; where that is only its share of peak, so many seconds as have it. */
static double measured_s(const struct dl_training_row *r, const struct dl_row_prediction *p)
{
    if (r->step_s > 0) return r->step_s;
    return r->mfu > 0 && r->quantity == DL_STEP && !r->strategy && !p->err.status ? p->step_s * p->mfu / r->mfu : NAN;
}

static struct dl_compared compare(const struct dl_training_row *r, const struct dl_row_trial *trial,
                                  const struct dl_row_prediction *p, struct dl_arena *arena)
{
    return (struct dl_compared){.id = r->id,
                                .source = r->source,
                                .model = name_model(r, arena),
                                .assumed = r->assumed,
                                .traits = dl_row_traits(r, arena),
                                .failure = p->err.status ? dl_arena_string(arena, p->err.text) : NULL,
                                .note = r->note,
                                .sha256 = dl_arena_string(arena, p->sha256),
                                .quantity = r->quantity,
                                .measured_s = measured_s(r, p),
                                .predicted_s = p->step_s,
                                .mfu = r->mfu,
                                .hfu = r->hfu,
                                .attention_flop = dl_flop_counts[r->attention_flop],
                                .predicted_mfu = p->mfu,
                                .predicted_hfu = p->hfu,
                                .samples_per_s = p->samples_per_s,
                                .fits = p->fits,
                                .peak_bytes = p->peak_bytes,
                                .reserved_bytes = p->reserved_bytes,
                                .measured_reserved_bytes = r->reserved_bytes,
                                .ran = (enum dl_row_end)r->ran,
                                .cell = name_cell(r, arena),
                                .experts = p->experts,
                                .domain = p->domain,
                                .added_s[DL_PART_SCHEDULE] = p->result.exposed_s[DL_CAUSE_BUBBLE],
                                .microbatch = r->microbatch || r->strategy ? 0 : trial->microbatch};
}

static struct dl_compared *predict_all(const struct dl_row_trials *t, const struct dl_log_run *log,
                                       struct dl_arena *arena, bool *are_late, struct dl_error *lost)
{
    struct dl_row_prediction *const predictions = dl_row_trials_run(t);
    struct dl_compared *const compared = dl_arena_alloc(arena, t->rows->n * sizeof *compared);
    for (size_t i = 0, best = 0; i < t->n; i++) {
        const size_t row = t->items[i].row;
        if (t->items[best].row != row || is_better(&predictions[i], &predictions[best])) best = i;
        *are_late |= predictions[i].err.status == DL_LATE;
        compared[row] = compare(&t->rows->items[row], &t->items[best], &predictions[best], arena);
        if (log) compared[row].log = dl_log_run_told(log, &predictions[best].result, arena);
    }
    dl_row_trials_check(t, predictions, lost);
    dl_free(predictions);
    return compared;
}

/* What is left when each pair is one; returns how many. */
static size_t join_pairs(const struct dl_training_rows *rows, struct dl_compared *compared)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->items[i].begins_pair) continue;
        if (i && rows->items[i - 1].begins_pair) dl_compare_pair(&compared[i - 1], &compared[i]);
        compared[n++] = compared[i];
    }
    return n;
}

/* ---- the command ---- */

/* A row that fails misses the limit too, or leaving out the worst would meet it. Where all fail there is no answer. */
static int judge(const struct dl_validation *v, double limit)
{
    const struct dl_errors all = dl_validation_summary(v);
    if (all.n_failed && !all.n) return 1;
    return isnan(limit) || (all.mape <= limit && !all.n_failed) ? 0 : 1;
}

/* All rows, before pairs become one. */
static struct dl_asked what_was_asked(const struct request *q, const struct dl_compared *rows, size_t n)
{
    struct dl_asked asked = {.command = "validate",
                             .engine = q->engine,
                             .fidelity = dl_fidelity_name(true),
                             .overrides = q->set.items,
                             .n_overrides = q->set.n};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_fingerprint_text(&f, "intervals", q->intervals ? "asked for" : NULL);
    dl_fingerprint_text(&f, "leave-family-out", q->leave_family_out ? "asked for" : NULL);
    dl_fingerprint_text(&f, "budget", q->budget ? "asked for" : NULL);
    for (size_t i = 0; i < n; i++) {
        dl_fingerprint_text(&f, rows[i].id, rows[i].sha256);
        dl_fingerprint_text(&f, "failure", rows[i].failure);
        dl_fingerprint_number(&f, "measured", rows[i].measured_s);
        dl_fingerprint_number(&f, "mfu", rows[i].mfu);
        dl_fingerprint_number(&f, "hfu", rows[i].hfu);
    }
    dl_fingerprint_end(&f, asked.sha256);
    return asked;
}

static enum dl_status write_page(const struct request *q, const struct dl_asked *asked, const struct dl_validation *v,
                                 struct dl_error *err)
{
    json_t *const answer = dl_answer(asked, dl_validation_json(v));
    return dl_page_write(q->html, dl_json_pack("{s:s, s:o}", "view", "validate", "answer", answer), err);
}

/* A log is of one run. */
static void tell_text(const struct dl_validation *v)
{
    if (!v->rows[0].log) {
        dl_validation_text(v);
        return;
    }
    dl_logged_text(&v->rows[0], v->engine);
    if (v->has_budget) dl_budget_text(v);
}

static void tell(const struct request *q, const struct dl_asked *asked, const struct dl_validation *v,
                 struct dl_error *err)
{
    if (q->json && dl_write_json(q->json, dl_answer(asked, dl_validation_json(v)), err)) return;
    if (q->html && write_page(q, asked, v, err)) return;
    if (q->svg && dl_draw_validation(v, q->svg, err)) return;
    if (q->rows_table) dl_validation_rows_text(v);
    if (q->markdown)
        dl_validation_markdown(v);
    else if (dl_tells_text(q->json) && dl_tells_text(q->html) && dl_tells_text(q->svg))
        tell_text(v);
}

static const char *const *families_of(const struct dl_row_trials *t, const struct dl_compared *compared,
                                      struct dl_arena *arena)
{
    const struct dl_validation all = dl_validation_of(compared, t->rows->n, t->engine, arena);
    const char **const family = dl_arena_alloc(arena, t->rows->n * sizeof *family);
    for (size_t i = 0; i < t->rows->n; i++) family[i] = all.families[all.family_of[i]].name;
    return family;
}

/* Whether any were late. By the analytic engine, as many rows would take hours by simulation; of a log, which has that
 * interval without asking, who asks gets the engine's own. */
static bool bound_rows(const struct request *q, const struct dl_row_trials *t, struct dl_compared *compared,
                       struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_bounding_request request = {.like = t,
                                                .engine = q->intervals && compared[0].log ? NULL : dl_engine_alone.name,
                                                .left_out =
                                                    q->leave_family_out ? families_of(t, compared, arena) : NULL};
    size_t n_late = 0;
    dl_bound_rows(&request, compared, &n_late, err);
    if (n_late)
        fprintf(stderr,
                "dlsim: --row-limit: %zu of %zu rows have no interval, because a run for it took longer than %g s\n",
                n_late, t->rows->n, t->limit_s);
    return n_late > 0;
}

static int validate(const struct request *q, const struct dl_training_rows *rows, const struct dl_log_run *log,
                    struct dl_arena *arena, struct dl_error *err)
{
    struct dl_row_trials trials = {
        .rows = rows, .engine = q->engine, .jobs = q->jobs, .limit_s = q->row_limit_s, .set = q->set};
    bool are_late = false;
    for (size_t i = 0; i < rows->n; i++) add_trials(&trials, i);
    struct dl_error lost = {0}; /* what came back is told all the same */
    struct dl_compared *const compared = predict_all(&trials, log, arena, &are_late, &lost);
    dl_find_constants(&trials, compared, arena);
    if (q->budget) dl_find_added(&trials, compared, &lost);
    if (q->intervals || log) are_late |= bound_rows(q, &trials, compared, arena, err);
    const struct dl_asked asked = what_was_asked(q, compared, rows->n);
    struct dl_validation told = dl_validation_of(compared, join_pairs(rows, compared), q->engine, arena);
    told.left_out = rows->left_out;
    if (!err->status) tell(q, &asked, &told, err);
    if (!err->status) *err = lost;
    dl_free(trials.items);
    return are_late ? 1 : judge(&told, q->limit);
}

/* One thing at a time on standard output, and nothing that nobody would see. */
static enum dl_status check_outputs(const struct request *q, struct dl_error *err)
{
    if (q->leave_family_out && !q->intervals)
        return dl_fail(err, DL_IMPOSSIBLE, "--leave-family-out", "needs --intervals");
    if (q->intervals && q->markdown && !q->json)
        return dl_fail(err, DL_IMPOSSIBLE, "--intervals", "are not in the tables of --markdown, only in text and JSON");
    if (q->rows_table && q->markdown)
        return dl_fail(err, DL_IMPOSSIBLE, "--rows-table", "cannot go with --markdown, which has tables of its own");
    const char *const other = q->markdown ? "--markdown" : q->rows_table ? "--rows-table" : NULL;
    const char *const taken = !dl_tells_text(q->json)   ? "--json -, write the JSON"
                              : !dl_tells_text(q->html) ? "--html -, write the page"
                              : !dl_tells_text(q->svg)  ? "--svg -, write the picture"
                                                        : NULL;
    if (!other || !taken) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, other, "cannot go with %s to a file", taken);
}

/* What only a log lets open. */
static enum dl_status check_given(const struct dl_log_given *g, struct dl_error *err)
{
    const char *const option = g->topo       ? "--topo"
                               : g->workload ? "--workload"
                               : g->strategy ? "--strategy"
                               : g->devices  ? "--devices"
                               : g->software ? "--software"
                                             : NULL;
    return option ? dl_fail(err, DL_IMPOSSIBLE, option, "is for --rows LOG: rows of tables say it themselves") : DL_OK;
}

static enum dl_status read_rows(struct request *q, struct dl_arena *arena, struct dl_training_rows *rows,
                                struct dl_log_run *log, struct dl_error *err)
{
    if (q->rows && dl_may_be_log(q->rows) &&
        (dl_log_run_open(log, q->rows, &q->given, &q->set, arena, rows, err) || log->log.format))
        return err->status;
    if (check_given(&q->given, err)) return err->status;
    return q->rows ? dl_training_rows_read(q->rows, arena, rows, err) : dl_training_rows_published(arena, rows, err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {.engine = dl_engine_names[0], .limit = NAN, .given.warmup = DL_LOG_WARMUP};
    struct dl_arena *const arena = dl_arena_new();
    struct dl_training_rows rows = {0};
    struct dl_log_run log = {0};
    int code = 0;
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) && !check_outputs(&q, err) &&
        !(q.html && dl_page_check(err)) && !read_rows(&q, arena, &rows, &log, err))
        code = validate(&q, &rows, log.log.format ? &log : NULL, arena, err);
    dl_log_run_close(&log);
    dl_training_rows_release(&rows);
    dl_arena_free(arena);
    return code;
}

const struct dl_command dl_command_validate = {
    .name = "validate",
    .doc = "predicted against measured training steps",
    .usage = "validate [--rows TABLE|FILE|LOG] [--topo T] [--workload W] [--strategy S] [--devices N] [--rows-table] "
             "[--jobs N] [--row-limit SECONDS] [--budget] [--intervals] "
             "[--json FILE|-] [--html FILE|-] [--set PATH=JSON]...",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
