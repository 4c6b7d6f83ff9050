#include "sim/study/log_run.h"

#include <math.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/import/log_text.h"
#include "sim/study/training_row_fields.h"

/* ---- is it one ---- */

static bool is_table_name(const char *path)
{
    static const char *const endings[] = {".json", ".csv"};
    const char *const ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < DL_COUNT(endings); i++)
        if (strcmp(ending, endings[i]) == 0) return true;
    return false;
}

/* A name without a dot or a slash is that of a shipped table. */
bool dl_may_be_log(const char *path) { return strpbrk(path, "./") && !is_table_name(path); }

static bool begins_with_columns(const char *path)
{
    struct dl_log_lines lines = {.stream = fopen(path, "rb")};
    const bool has_them = lines.stream && dl_log_next(&lines) && strchr(lines.text, ',');
    if (lines.stream) fclose(lines.stream);
    dl_free(lines.text);
    return has_them;
}

static enum dl_status refuse_other(const char *path, size_t n_lines, struct dl_error *err)
{
    const char *names[16];
    char list[DL_HINT];
    const size_t n = dl_log_format_count();
    for (size_t i = 0; i < n; i++) names[i] = dl_log_format_at(i)->name;
    if (!n_lines) return dl_fail(err, DL_SYNTAX, path, "is empty");
    return dl_fail(err, DL_SYNTAX, path,
                   "has no line of a training step: must be a log of %s, or a table of rows (.csv, .json)",
                   dl_joined(names, n, list));
}

/* ---- what must be given ---- */

static bool says(const struct dl_log *log, const char *key) { return json_object_get(log->row, key) != NULL; }

static bool says_model(const struct dl_log *log)
{
    static const char *const sizes[] = {"layers", "hidden", "heads", "seq", "vocab"};
    for (size_t i = 0; i < DL_COUNT(sizes); i++)
        if (!says(log, sizes[i])) return false;
    return true;
}

/* All of it at once. */
static enum dl_status check_given(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_error *err)
{
    const struct dl_log *const log = &run->log;
    const bool has_layout = given->strategy || log->strategy || (log->says_layout && says(log, "global_batch"));
    if (log->refusal && !given->strategy)
        return dl_fail(err, DL_IMPOSSIBLE, run->file, "%s; give --strategy and --workload in place of its arguments",
                       log->refusal);
    const struct {
        bool is_missing;
        const char *what;
    } wanted[] = {
        {!given->topo, "--topo (the machine)"},
        {!given->strategy && !log->strategy && !given->workload && !says_model(log), "--workload (the model)"},
        {!has_layout, "--strategy (how the model is spread, and the global batch)"},
        {has_layout && !given->strategy && !given->devices && !says(log, "devices"), "--devices"}};
    const char *missing[DL_COUNT(wanted)];
    char list[DL_HINT];
    size_t n = 0;
    for (size_t i = 0; i < DL_COUNT(wanted); i++)
        if (wanted[i].is_missing) missing[n++] = wanted[i].what;
    if (!n) return DL_OK;
    return dl_fail(err, DL_KEY, run->file, "a log of %s that does not say all of the run; give %s", log->format->name,
                   dl_joined(missing, n, list));
}

static enum dl_status check_devices(const struct dl_log_run *run, const struct dl_log_given *given,
                                    struct dl_error *err)
{
    const json_int_t said = json_integer_value(json_object_get(run->log.row, "devices"));
    if (!said || !given->devices || said == (json_int_t)given->devices) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--devices", "is %ju, but %s says %lld", (uintmax_t)given->devices, run->file,
                   (long long)said);
}

/* ---- overrides of a strategy ---- */

/* The log's in front of those of the command line, which so override them. */
static enum dl_status set_first(struct dl_texts *set, const char *assignment, struct dl_error *err)
{
    if (set->n == DL_MAX_TEXTS)
        return dl_fail(err, DL_RANGE, "--set", "fewer are possible here, for what the log sets");
    memmove(&set->items[1], &set->items[0], set->n * sizeof set->items[0]);
    set->items[0] = assignment;
    set->n++;
    return DL_OK;
}

static enum dl_status set_strategy(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_texts *set,
                                   struct dl_arena *arena, struct dl_error *err)
{
    static const struct {
        const char *key, *path;
    } sizes[] = {{"devices", "devices"},
                 {"global_batch", "global_batch"},
                 {"microbatch", "microbatch"},
                 {"seq", "workload.seq"}};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const json_int_t value = json_integer_value(json_object_get(run->log.row, sizes[i].key));
        if (value && set_first(set, dl_arena_format(arena, "%s=%lld", sizes[i].path, (long long)value), err))
            return err->status;
    }
    if (given->devices) set_first(set, dl_arena_format(arena, "devices=%ju", (uintmax_t)given->devices), err);
    return err->status;
}

/* A strategy of the command line must cut the model as the log says it was. */
static enum dl_status check_ways(const struct dl_log_run *run, const struct dl_setting *setting, struct dl_error *err)
{
    const struct {
        const char *key, *path;
        uint32_t ways;
    } axes[] = {{"tp", "stack.tensor.ways", setting->ways[DL_AXIS_TENSOR]},
                {"pp", "stack.pipeline.ways", dl_n_stages(setting)},
                {"cp", "stack.context.ways", setting->ways[DL_AXIS_CONTEXT]},
                {"ep", "stack.expert.ways", dl_n_expert_ranks(setting)},
                {"vpp", "stack.pipeline.chunks", setting->chunks}};
    for (size_t i = 0; i < DL_COUNT(axes); i++) {
        const json_int_t said = json_integer_value(json_object_get(run->log.row, axes[i].key));
        if (said && said != (json_int_t)axes[i].ways)
            return dl_fail(err, DL_IMPOSSIBLE, "--strategy", "%s is %u, but %s says %lld", axes[i].path, axes[i].ways,
                           run->file, (long long)said);
    }
    return DL_OK;
}

/* ---- seconds ---- */

static enum dl_status find_seconds(struct dl_log_run *run, const struct dl_session *s, struct dl_training_row *row,
                                   struct dl_error *err)
{
    const struct dl_log_sizes sizes = {s->job.n_devices, s->job.setting.global_batch, s->model.tokens_per_sample};
    run->steps = dl_log_summarise(&run->log, &sizes, run->warmup);
    row->step_s = run->steps.median_s;
    if (row->step_s >= 1e-9 && row->step_s <= 1e9) return DL_OK;
    return dl_fail(err, DL_RANGE, run->file, "its steps take no time that a step can take: %g s", row->step_s);
}

/* Read all inputs once, for refusals before the work begins, and for sizes. */
static enum dl_status measure(struct dl_log_run *run, const struct dl_log_given *given, const struct dl_texts *set,
                              struct dl_training_row *row, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_session_request request = {.set = *set};
    struct dl_session s;
    if (dl_training_row_request(row, row->microbatch ? row->microbatch : 1, arena, &request, err)) return err->status;
    if (!dl_session_read(&s, &request) && !(given->strategy && check_ways(run, &s.job.setting, err)))
        find_seconds(run, &s, row, err);
    if (!err->status) *err = s.err;
    dl_session_close(&s);
    return err->status;
}

/* ---- words ---- */

static const char *tell_row(const json_t *row, struct dl_arena *arena)
{
    const char *text = "", *key;
    json_t *value;
    json_object_foreach((json_t *)row, key, value)
    {
        const char *const comma = *text ? ", " : "";
        if (json_is_integer(value))
            text = dl_arena_format(arena, "%s%s%s %lld", text, comma, key, (long long)json_integer_value(value));
        else if (json_is_string(value))
            text = dl_arena_format(arena, "%s%s%s %s", text, comma, key, json_string_value(value));
    }
    return text;
}

static const char *tell_rest(const struct dl_log *log, struct dl_arena *arena)
{
    const char *text = NULL;
    for (size_t i = 0; i < log->n_rest; i++)
        text = dl_arena_format(arena, "%s%s%s %s", text ? text : "", text ? ", " : "", log->rest[i].name,
                               log->rest[i].value);
    return text;
}

/* ---- together ---- */

static enum dl_status add_row(struct dl_log_run *run, const struct dl_log_given *given, struct dl_texts *set,
                              struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err)
{
    if (check_given(run, given, err) || check_devices(run, given, err)) return err->status;
    const struct dl_json object = {.value = dl_log_row(run, given, arena), .where = run->file};
    if (given->strategy) set_strategy(run, given, set, arena, err);
    if (!err->status && !dl_training_row_add(object, DL_STEP, arena, rows, err)) {
        struct dl_training_row *const row = &rows->items[rows->n - 1];
        if (!given->strategy && run->log.strategy) dl_log_row_put_documents(run, given, row, arena);
        measure(run, given, set, row, arena, err);
    }
    run->said = tell_row(run->log.row, arena);
    run->software = given->strategy || given->software ? NULL : run->log.software;
    run->left_out = tell_rest(&run->log, arena);
    json_decref(object.value);
    return err->status;
}

enum dl_status dl_log_run_open(struct dl_log_run *run, const char *path, const struct dl_log_given *given,
                               struct dl_texts *set, struct dl_arena *arena, struct dl_training_rows *rows,
                               struct dl_error *err)
{
    *run = (struct dl_log_run){.file = dl_arena_string(arena, dl_base_name(path)), .warmup = given->warmup};
    if (dl_log_read(path, arena, &run->log, err)) return err->status;
    if (run->log.format) return add_row(run, given, set, arena, rows, err);
    return begins_with_columns(path) ? DL_OK : refuse_other(path, run->log.n_lines, err);
}

const struct dl_logged *dl_log_run_told(const struct dl_log_run *run, const struct dl_training_result *predicted,
                                        struct dl_arena *arena)
{
    struct dl_logged *const told = dl_arena_alloc(arena, sizeof *told);
    struct dl_logged_phase *const phases = dl_arena_alloc(arena, DL_LOG_TIMERS * sizeof *phases);
    *told = (struct dl_logged){.file = run->file,
                               .program = run->log.format->name,
                               .said = run->said,
                               .software = run->software,
                               .left_out = run->left_out,
                               .n_steps = run->steps.n_steps,
                               .n_warmup = run->steps.n_warmup,
                               .n_other_batch = run->steps.n_other_batch,
                               .n_used = run->steps.n_used,
                               .n_runs_before = run->log.n_runs_before,
                               .low_s = run->steps.low_s,
                               .high_s = run->steps.high_s,
                               .peak_bytes = run->log.peak_bytes,
                               .peak = run->log.format->peak,
                               .phases = phases,
                               .n_phases = dl_log_phases(&run->log, predicted, run->warmup, phases),
                               .predicted = *predicted};
    return told;
}

void dl_log_run_close(struct dl_log_run *run) { dl_log_release(&run->log); }
