/* log_mllog.c - logs of MLPerf training: lines of ":::MLLOG {...}" with a time, a key and a value. */
#include <math.h>
#include <string.h>

#include "sim/import/log.h"
#include "sim/import/log_text.h"

/* A block is what is trained between two evaluations. */
struct state {
    bool is_in_block;
    double begun_ms, begun_msamples;
};

static const struct dl_log_option options[] = {
    {"global_batch_size", "global_batch"},
    {"max_sequence_length", "seq"},
    {"micro_batch_size", "microbatch"},
    {"number_of_ranks", "devices"},
    {"world_size", "devices"},
    {"num_gpus", "devices"},
    {"tensor_parallelism", "tp"},
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_parallelism", "pp"},
    {"pipeline_model_parallel_size", "pp"},
    {"context_parallelism", "cp"},
    {"context_parallel_size", "cp"},
    {"expert_parallelism", "ep"},
    {"expert_model_parallel_size", "ep"},
    {"virtual_pipeline_model_parallel_size", "vpp"},
    {"submission_benchmark", NULL},
    {"submission_platform", NULL},
};

struct event {
    const char *key;
    const json_t *value, *metadata;
    double time_ms;
};

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* ---- the time of steps ---- */

/* What programs call the seconds of a step, and samples a second, among tracked_stats. */
static const struct {
    const char *name;
    enum dl_log_unit unit;
} stats[] = {{"train_step_time", DL_LOG_SECONDS},
             {"train_step_timing in s", DL_LOG_SECONDS},
             {"train_step_timing", DL_LOG_SECONDS},
             {"step_time", DL_LOG_SECONDS},
             {"throughput", DL_LOG_SAMPLES_PER_S}};

static void read_stats(struct dl_log_reader *r, const struct event *e)
{
    for (size_t i = 0; i < DL_COUNT(stats); i++)
        dl_log_add_step(
            r, (struct dl_log_step){(double)r->log.n_steps, stats[i].unit, number_at(e->value, stats[i].name), 0});
}

static double samples_of(const struct event *e) { return number_at(e->metadata, "samples_count"); }

static void begin_run(struct dl_log_reader *r, const struct event *e)
{
    (void)e;
    dl_log_begin_again(r);
}

static void begin_block(struct dl_log_reader *r, const struct event *e)
{
    struct state *const s = r->state;
    *s = (struct state){json_object_get(e->metadata, "samples_count") != NULL, e->time_ms, samples_of(e)};
}

static void end_block(struct dl_log_reader *r, const struct event *e)
{
    struct state *const s = r->state;
    const double samples = samples_of(e) - s->begun_msamples, seconds = 1e-3 * (e->time_ms - s->begun_ms);
    if (s->is_in_block && samples > 0 && seconds > 0)
        dl_log_add_step(r,
                        (struct dl_log_step){(double)r->log.n_steps, DL_LOG_SAMPLES_PER_BLOCK_S, samples / seconds, 0});
    s->is_in_block = false;
}

static const struct {
    const char *key;
    void (*read)(struct dl_log_reader *r, const struct event *e);
} events[] = {
    {"tracked_stats", read_stats}, {"init_start", begin_run}, {"block_start", begin_block}, {"block_stop", end_block}};

/* ---- lines ---- */

static void read_event(struct dl_log_reader *r, const struct event *e)
{
    for (size_t i = 0; i < DL_COUNT(events); i++)
        if (strcmp(events[i].key, e->key) == 0) events[i].read(r, e);
    char number[32];
    if (json_is_string(e->value)) dl_log_set(r, e->key, json_string_value(e->value));
    if (!json_is_number(e->value)) return;
    snprintf(number, sizeof number, "%.17g", json_number_value(e->value));
    dl_log_set(r, e->key, number);
}

static void line(struct dl_log_reader *r, const char *text)
{
    const char *const at = dl_log_after(text, ":::MLLOG ");
    json_t *const doc = at ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const struct event e = {.key = json_string_value(json_object_get(doc, "key")),
                            .value = json_object_get(doc, "value"),
                            .metadata = json_object_get(doc, "metadata"),
                            .time_ms = number_at(doc, "time_ms")};
    if (e.key) read_event(r, &e);
    json_decref(doc);
}

static void finish(struct dl_log_reader *r)
{
    dl_log_say_options(r);
    r->log.says_layout = json_object_get(r->log.row, "tp") && json_object_get(r->log.row, "pp");
    r->log.software = "megatron-core";
    dl_log_leave(r, "submission_benchmark");
    dl_log_leave(r, "submission_platform");
}

const struct dl_log_format dl_log_mllog = {
    .name = "MLPerf (MLLOG)",
    .doc = ":::MLLOG {\"time_ms\": T, \"key\": \"block_stop\", \"metadata\": {\"samples_count\": N}, ...}",
    .state_size = sizeof(struct state),
    .options = options,
    .n_options = DL_COUNT(options),
    .line = line,
    .finish = finish,
};
