/* sweep_command.c - dlsim sweep FILE: every point of a sweep file into a database; show, export and merge of those. */
#include <stdio.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/sweep_results.h"
#include "sim/app/sweep_slurm.h"
#include "sim/core/clock.h"
#include "sim/draw/page.h"
#include "sim/report/progress.h"
#include "sim/report/units.h"
#include "sim/session/own_memory.h"
#include "sim/session/pool.h"
#include "sim/study/sweep_point.h"
#include "sim/sweep/store.h"
#include "sim/sweep/workers.h"

struct request {
    const char *output, *shard, *retry;
    uint64_t jobs, array;
    bool dry_run, restart, slurm;
    const char *partition;
    struct dl_sweep_view view;
};

#define AT(member) offsetof(struct request, member)
static const struct dl_option options[] = {
    {"output", DL_OPT_TEXT, AT(output), false, 0, 0, NULL,
     "the database of results, or the file of an export; also -o; SWEEP.db if absent"},
    {"jobs", DL_OPT_COUNT, AT(jobs), false, 1, 4096, NULL, "points at once; as many as processors if absent"},
    {"shard", DL_OPT_TEXT, AT(shard), false, 0, 0, NULL, "I/N: every N-th point from the I-th, into an own database"},
    {"dry-run", DL_OPT_FLAG, AT(dry_run), false, 0, 0, NULL,
     "count the points, estimate time and disk, show what --slurm would submit; run nothing"},
    {"restart", DL_OPT_FLAG, AT(restart), false, 0, 0, NULL, "forget the results that are there"},
    {"retry", DL_OPT_CHOICE, AT(retry), false, 0, 0, dl_point_statuses, "run points that ended so again"},
    {"slurm", DL_OPT_FLAG, AT(slurm), false, 0, 0, NULL, "submit it as a job array, and a job that merges the parts"},
    {"array", DL_OPT_COUNT, AT(array), false, 1, 10000, NULL, "--slurm: jobs of the array; 8 if absent"},
    {"partition", DL_OPT_TEXT, AT(partition), false, 0, 0, NULL, "--slurm: where they run; Slurm's default if absent"},
    {"best", DL_OPT_COUNT, AT(view.best), false, 1, 1e9, NULL, "show: so many rows; 10 if absent"},
    {"by", DL_OPT_TEXT, AT(view.by), false, 0, 0, NULL, "show: best by this column; step_s if absent"},
    {"where", DL_OPT_TEXT, AT(view.where), false, 0, 0, NULL, "show, export: only rows that meet this SQL expression"},
    {"svg", DL_OPT_OUTPUT, AT(view.svg), false, 0, 0, NULL,
     "show: also a heat map, over the first columns that vary; - is standard output"},
    {"html", DL_OPT_OUTPUT, AT(view.html), false, 0, 0, NULL,
     "show: also a page with heat map, scaling curves and Pareto front, for any browser; - is standard output"},
    {"csv", DL_OPT_FLAG, AT(view.csv), false, 0, 0, NULL, "export: a table without the whole answers"},
    {"jsonl", DL_OPT_FLAG, AT(view.jsonl), false, 0, 0, NULL, "export: a JSON object a line, with the whole answers"},
};
#undef AT

struct run {
    struct dl_arena *arena;
    struct dl_json doc;
    struct dl_sweep sweep;
    struct dl_sweep_means means;
    struct dl_store *store;
    uint64_t *points;
    size_t n_points, n_of_sweep; /* of this shard, and in all */
    size_t n_before;             /* that were finished */
    double begun_s;
    const char *path; /* of the database */
};

/* ---- which points ---- */

static enum dl_status keep_shard(struct run *r, const char *shard, struct dl_error *err)
{
    unsigned which = 0, of = 0;
    int end = 0;
    if (!shard) return DL_OK;
    if (sscanf(shard, "%5u/%5u%n", &which, &of, &end) != 2 || shard[end] || which < 1 || which > of)
        return dl_fail(err, DL_SYNTAX, "--shard", "must be I/N with I from 1 to N, such as 2/8, got '%.60s'", shard);
    size_t n = 0;
    for (size_t i = which - 1; i < r->n_points; i += of) r->points[n++] = r->points[i];
    r->n_points = n;
    return DL_OK;
}

static enum dl_status read_sweep(struct run *r, const struct request *q, const char *file, struct dl_error *err)
{
    if (dl_json_load(file, r->arena, &r->doc, err) || dl_sweep_read(r->doc, r->arena, &r->sweep, err) ||
        dl_sweep_check_options(&r->sweep, err) || dl_sweep_points(&r->sweep, &r->points, &r->n_points, err))
        return err->status;
    r->n_of_sweep = r->n_points;
    const char *const name = dl_without_json(dl_base_name(file), r->arena);
    r->path = q->output ? q->output : dl_arena_format(r->arena, "%s.db", name);
    return keep_shard(r, q->shard, err);
}

/* ---- running them ---- */

static void *open_point(void *user, uint64_t point)
{
    const struct run *const r = user;
    return dl_sweep_open(&r->sweep, point, &r->means);
}

static enum dl_status take(void *user, const json_t *result, struct dl_error *err)
{
    return dl_store_add(((struct run *)user)->store, result, err);
}

static enum dl_status tick(void *user, size_t n_done, struct dl_error *err)
{
    struct run *const r = user;
    dl_progress_rate(r->n_before + n_done, r->n_before, r->n_before + r->n_points, dl_clock_s() - r->begun_s, "points");
    return dl_store_commit(r->store, err);
}

static int run_points(struct run *r, const struct request *q, struct dl_error *err)
{
    const size_t n_all = r->n_points;
    dl_store_unfinished(r->store, r->points, &r->n_points);
    r->n_before = n_all - r->n_points;
    if (r->n_before) fprintf(stderr, "dlsim: %zu of %zu points were finished before\n", r->n_before, n_all);
    r->begun_s = dl_clock_s();
    const size_t n_workers = q->jobs ? q->jobs : dl_pool_processors();
    r->means.memory_bytes = dl_own_memory_share_bytes(n_workers);
    const int signal = dl_sweep_workers(&(struct dl_workers_request){.points = r->points,
                                                                     .n_points = r->n_points,
                                                                     .n_workers = n_workers,
                                                                     .simulates = dl_sweep_simulates(&r->sweep),
                                                                     .limit_s = r->sweep.limit_s,
                                                                     .file = r->doc.file,
                                                                     .open = open_point,
                                                                     .stands_alone = dl_sweep_stands_alone,
                                                                     .run = dl_sweep_run,
                                                                     .close = dl_sweep_close_point,
                                                                     .take = take,
                                                                     .tick = tick,
                                                                     .user = r},
                                        err);
    dl_progress_end();
    return signal;
}

static enum dl_status run_sweep(struct run *r, const struct request *q, int *code, struct dl_error *err)
{
    const struct dl_store_request request = {.path = r->path,
                                             .sweep = &r->sweep,
                                             .n_points = r->n_of_sweep,
                                             .shard = q->shard,
                                             .restart = q->restart,
                                             .retry = q->retry};
    if (dl_store_open(&request, &r->store, err)) return err->status;
    const int signal = run_points(r, q, err);
    dl_store_close(r->store);
    r->store = NULL;
    if (err->status) return err->status;
    if (signal) {
        fputs("dlsim: interrupted; all finished points are kept, run the same command to go on\n", stderr);
        *code = 128 + signal;
    }
    return dl_sweep_summarize(r->path, err);
}

/* ---- before ---- */

struct trial {
    double seconds, bytes;
    size_t n;
};

/* Of points that stand alone in a process, only the first can be tried in this one. */
static void try_point(const struct run *r, uint64_t point, struct trial *t)
{
    const double begun_s = dl_clock_s();
    void *const opened = dl_sweep_open(&r->sweep, point, &r->means);
    if (!t->n || !dl_sweep_stands_alone(opened)) {
        json_t *const result = dl_sweep_run(opened);
        t->seconds += dl_clock_s() - begun_s;
        t->bytes += (double)json_string_length(json_object_get(result, "answer"));
        t->n++;
        json_decref(result);
    }
    dl_sweep_close_point(opened);
}

static size_t count_jobs(const struct run *r, const struct request *q)
{
    const size_t n_jobs = q->array ? q->array : 8;
    return n_jobs < r->n_points ? n_jobs : r->n_points;
}

/* By a few points, spread over the sweep. */
static enum dl_status estimate(struct run *r, const struct request *q, struct dl_error *err)
{
    enum { n_tried = 8, bytes_besides = 200 };
    char total[DL_QUANTITY], disk[DL_QUANTITY];
    struct trial t = {0};
    for (size_t i = 0; i < n_tried && i < r->n_points; i++)
        try_point(r, r->points[i * (r->n_points - 1) / (n_tried - 1)], &t);
    const size_t n_workers = q->slurm ? count_jobs(r, q) : q->jobs ? q->jobs : dl_pool_processors();
    const double n_points = (double)r->n_points;
    printf("%zu points of %llu combinations%s%s\n", r->n_points, (unsigned long long)r->sweep.n_combinations,
           q->shard ? ", shard " : "", q->shard ? q->shard : "");
    printf("about %s on %zu processes and %s in %s, by %zu points that were tried\n",
           dl_format_seconds(t.seconds / (double)t.n * n_points / (double)n_workers, total), n_workers,
           dl_format_bytes((t.bytes / (double)t.n + bytes_besides) * n_points, disk), r->path, t.n);
    return err->status;
}

static enum dl_status submit(const struct run *r, const struct request *q, const char *file, struct dl_error *err)
{
    return dl_sweep_submit(&(struct dl_slurm_request){.file = file,
                                                      .output = r->path,
                                                      .partition = q->partition,
                                                      .n_jobs = count_jobs(r, q),
                                                      .dry_run = q->dry_run},
                           err);
}

static enum dl_status check_options(const struct request *q, struct dl_error *err)
{
    if (!q->slurm && (q->array || q->partition))
        return dl_fail(err, DL_SYNTAX, q->array ? "--array" : "--partition", "goes with --slurm");
    if (q->slurm && (q->shard || q->restart || q->retry || q->jobs))
        return dl_fail(err, DL_SYNTAX, "--slurm",
                       "goes without --shard, --restart, --retry and --jobs: the jobs have their own");
    return DL_OK;
}

static int sweep_file(struct request *q, const char *file, struct dl_error *err)
{
    struct run r = {.arena = dl_arena_new(), .means.machines = dl_machines_new()};
    int code = 0;
    if (!check_options(q, err) && !read_sweep(&r, q, file, err)) {
        if (q->dry_run) estimate(&r, q, err);
        if (q->slurm) submit(&r, q, file, err);
        if (!q->dry_run && !q->slurm) run_sweep(&r, q, &code, err);
    }
    dl_store_close(r.store);
    dl_sweep_close(&r.sweep);
    dl_machines_free(r.means.machines);
    dl_free(r.points);
    json_decref(r.doc.value);
    dl_arena_free(r.arena);
    return code;
}

static enum dl_status merge(const char *path, const struct dl_sweep_view *view, struct dl_error *err)
{
    return dl_store_merge(path, view->parts.items, view->parts.n, err);
}

static const struct verb {
    const char *name;
    enum dl_status (*run)(const char *path, const struct dl_sweep_view *view, struct dl_error *err);
    bool takes_parts;
} verbs[] = {{"show", dl_sweep_show, false}, {"export", dl_sweep_export, false}, {"merge", merge, true}};

static const struct verb *find_verb(const struct dl_texts *words)
{
    for (size_t i = 0; i < DL_COUNT(verbs) && words->n; i++)
        if (strcmp(verbs[i].name, words->items[0]) == 0) return &verbs[i];
    return NULL;
}

/* Pictures are of results that are there. */
static enum dl_status check_pictures(const struct dl_sweep_view *v, const struct verb *verb, struct dl_error *err)
{
    if ((v->svg || v->html) && verb != &verbs[0])
        return dl_fail(err, DL_SYNTAX, v->svg ? "--svg" : "--html", "goes with `sweep show DB`");
    return v->html ? dl_page_check(err) : DL_OK;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts words = {0};
    dl_lengthen_output(argc, argv);
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, &words, err)) return 0;
    const struct verb *const verb = find_verb(&words);
    if (check_pictures(&q.view, verb, err)) return 0;
    if (!verb && words.n == 1) return sweep_file(&q, words.items[0], err);
    if (!verb || words.n < 2 || (words.n == 2) == verb->takes_parts) {
        dl_fail(err, DL_SYNTAX, "sweep", "needs a sweep file, `show DB`, `export DB` or `merge OUT DB...`");
        return 0;
    }
    q.view.output = q.output;
    for (size_t i = 2; i < words.n; i++) q.view.parts.items[q.view.parts.n++] = words.items[i];
    verb->run(words.items[1], &q.view, err);
    return 0;
}

const struct dl_command dl_command_sweep = {
    .name = "sweep",
    .doc = "many runs into a database: every point of a sweep file",
    .usage =
        "sweep FILE [-o DB] [--jobs N] [--shard I/N] [--dry-run] | show DB | export DB --csv|--jsonl | merge OUT DB...",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
