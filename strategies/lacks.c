#include "strategies/lacks.h"

#include <string.h>

#include "strategies/schedule.h"

static const char *const features[DL_N_FEATURES] = {
    [DL_FEATURE_TENSOR] = "tensor",     [DL_FEATURE_SEQUENCE] = "sequence", [DL_FEATURE_CONTEXT] = "context",
    [DL_FEATURE_PIPELINE] = "pipeline", [DL_FEATURE_EXPERT] = "expert",     [DL_FEATURE_ZERO_1] = "zero 1",
    [DL_FEATURE_ZERO_2] = "zero 2",     [DL_FEATURE_ZERO_3] = "zero 3",     [DL_FEATURE_SELECTIVE] = "selective",
    [DL_FEATURE_OFFLOAD] = "offload",
};

enum { most_names = 32 }; /* bits of a mask */

struct names {
    const char *items[most_names];
    size_t n;
};

static struct names of_features(void)
{
    struct names names = {.n = DL_N_FEATURES};
    for (size_t i = 0; i < names.n; i++) names.items[i] = features[i];
    return names;
}

static struct names of_schedules(void)
{
    struct names names = {.n = dl_schedule_count()};
    for (size_t i = 0; i < names.n; i++) names.items[i] = dl_schedule_get(i)->name;
    return names;
}

static enum dl_status read_name(struct dl_json item, const struct names *known, uint32_t *mask, struct dl_error *err)
{
    const char *const name = json_string_value(item.value);
    char hint[DL_HINT];
    for (size_t i = 0; i < known->n && name; i++)
        if (strcmp(known->items[i], name) == 0) {
            *mask |= (uint32_t)1 << i;
            return DL_OK;
        }
    if (!name) return dl_wrong_type(item, "a name, as a string", err);
    return dl_fail(err, DL_RANGE, item.where, "no such name: '%.60s'%s", name,
                   dl_hint(name, known->items, known->n, hint));
}

static enum dl_status read_names(struct dl_json list, const struct names *known, struct dl_arena *arena, uint32_t *mask,
                                 struct dl_error *err)
{
    *mask = 0;
    for (size_t i = 0; i < json_array_size(list.value); i++)
        if (read_name(dl_json_element(list, i, arena), known, mask, err)) return err->status;
    return DL_OK;
}

enum dl_status dl_lacks_read(struct dl_json lacks, struct dl_json schedules, struct dl_arena *arena,
                             struct dl_lacks *out, struct dl_error *err)
{
    const struct names of_file[] = {of_features(), of_schedules()};
    if (read_names(lacks, &of_file[0], arena, &out->features, err) ||
        read_names(schedules, &of_file[1], arena, &out->schedules, err))
        return err->status;
    out->schedules = schedules.value ? ~out->schedules : 0;
    return DL_OK;
}

bool dl_has_feature(const struct dl_lacks *l, enum dl_feature feature)
{
    return !(l->features & (uint32_t)1 << (uint32_t)feature);
}

bool dl_has_schedule(const struct dl_lacks *l, size_t index) { return !(l->schedules & (uint32_t)1 << index); }
