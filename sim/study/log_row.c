/* log_row.c - the run of a log as the object of a row: by a strategy that is given, by the log's own documents, or by
 * the sizes that it says. */
#include <stdlib.h>

#include "sim/study/log_run.h"
#include "sim/study/training_row_fields.h"

/* Seconds of the step are set when the session knows what turns rates into them; 1 stands for them. */
static json_t *common_row(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena)
{
    return json_pack("{s:s, s:s, s:s, s:f}", "id", run->file, "topo", given->topo, "source",
                     dl_arena_format(arena, "%s (a log of %s)", run->file, run->log.format->name), "step_s", 1.0);
}

static void set_text(json_t *row, const char *key, const char *value)
{
    if (value) json_object_set_new(row, key, json_string(value));
}

static json_t *row_of_strategy(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena)
{
    json_t *const row = common_row(run, given, arena);
    set_text(row, "strategy", given->strategy);
    set_text(row, "workload", given->workload);
    set_text(row, "software", given->software);
    return row;
}

static json_t *row_of_log(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena)
{
    json_t *const row = json_copy(run->log.row), *const common = common_row(run, given, arena);
    json_object_update(row, common);
    json_decref(common);
    if (given->devices) json_object_set_new(row, "devices", json_integer((json_int_t)given->devices));
    set_text(row, "model", given->workload ? given->workload : run->file);
    set_text(row, "software", given->software ? given->software : run->log.software);
    if (!given->software) set_text(row, "assumed", "software");
    if (given->workload) dl_training_row_use_workload(row, given->workload);
    return row;
}

/* Names of documents that are not in a file: the log's. */
static json_t *row_of_documents(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena)
{
    json_t *const row = common_row(run, given, arena);
    set_text(row, "strategy", run->file);
    set_text(row, "workload", given->workload ? given->workload : run->file);
    set_text(row, "software",
             given->software         ? given->software
             : run->log.own_software ? run->file
                                     : run->log.software);
    if (!given->software) set_text(row, "assumed", "software");
    return row;
}

static const char *text_of(const json_t *doc, struct dl_arena *arena)
{
    char *const text = json_dumps(doc, JSON_REAL_PRECISION(17));
    const char *const kept = dl_arena_string(arena, text);
    free(text);
    return kept;
}

json_t *dl_log_row(const struct dl_log_run *run, const struct dl_log_given *given, struct dl_arena *arena)
{
    if (given->strategy) return row_of_strategy(run, given, arena);
    return run->log.strategy ? row_of_documents(run, given, arena) : row_of_log(run, given, arena);
}

/* In place of the files of names that are the log's. */
void dl_log_row_put_documents(const struct dl_log_run *run, const struct dl_log_given *given,
                              struct dl_training_row *row, struct dl_arena *arena)
{
    if (given->devices) json_object_set_new(run->log.strategy, "devices", json_integer((json_int_t)given->devices));
    json_object_set_new(run->log.strategy, "workload", json_string(row->workload));
    row->strategy_text = text_of(run->log.strategy, arena);
    if (!given->workload) row->workload_text = text_of(run->log.workload, arena);
    if (!given->software && run->log.own_software) row->software_text = text_of(run->log.own_software, arena);
}
