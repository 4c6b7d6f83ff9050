/* pipeline.c - stages hold parts of the model one after the other; the schedule is data (schedule.h). */
#include "strategies/schedule.h"
#include "strategies/strategies.h"

struct options {
    int64_t ways, chunks;
    const char *schedule;
};
static const struct options defaults = {.ways = 1, .chunks = 1, .schedule = "1f1b"};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "stages"},
    {"schedule", DL_TEXT, offsetof(struct options, schedule), 0, 0, true, NULL,
     "order of work: see `dlsim list schedules`"},
    {"chunks", DL_INT, offsetof(struct options, chunks), 1, 64, true, NULL, "parts of the model on each stage"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)err;
    setting->ways[DL_AXIS_PIPELINE] = (uint32_t)o->ways;
    setting->chunks = (uint32_t)o->chunks;
    setting->schedule = o->schedule;
    setting->pipeline_where = entry.where;
    return DL_OK;
}

const struct dl_strategy dl_strategy_pipeline = {
    .name = "pipeline",
    .doc = "stages hold parts of the model one after the other",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
};
