#include "strategies/lacks.h"

#include "strategies/name_sets.h"
#include "strategies/schedule.h"

static const char *const features[DL_N_FEATURES] = {
    [DL_FEATURE_TENSOR] = "tensor",     [DL_FEATURE_SEQUENCE] = "sequence", [DL_FEATURE_CONTEXT] = "context",
    [DL_FEATURE_PIPELINE] = "pipeline", [DL_FEATURE_EXPERT] = "expert",     [DL_FEATURE_ZERO_1] = "zero 1",
    [DL_FEATURE_ZERO_2] = "zero 2",     [DL_FEATURE_ZERO_3] = "zero 3",     [DL_FEATURE_SELECTIVE] = "selective",
    [DL_FEATURE_OFFLOAD] = "offload",
};

enum dl_status dl_lacks_read(struct dl_json lacks, struct dl_json schedules, struct dl_lacks *out, struct dl_error *err)
{
    const char *names[DL_MOST_NAMES];
    for (size_t i = 0; i < dl_schedule_count(); i++) names[i] = dl_schedule_get(i)->name;
    if (dl_name_set_read(lacks, features, DL_N_FEATURES, &out->features, err) ||
        dl_name_set_read(schedules, names, dl_schedule_count(), &out->schedules, err))
        return err->status;
    out->schedules = schedules.value ? ~out->schedules : 0;
    return DL_OK;
}

bool dl_has_feature(const struct dl_lacks *l, enum dl_feature feature)
{
    return !(l->features & (uint32_t)1 << (uint32_t)feature);
}

bool dl_has_schedule(const struct dl_lacks *l, size_t index) { return !(l->schedules & (uint32_t)1 << index); }
