#include "strategies/job_counts.h"

#include <math.h>
#include <string.h>

enum { most_micros = 1000000 }; /* of one replica */

/* Where an axis of one way comes does not matter. */
static enum dl_status append_single_axes(struct dl_json list, const bool *seen, size_t n, struct dl_setting *setting,
                                         struct dl_error *err)
{
    for (uint32_t axis = 0; axis < dl_n_axes(setting); axis++) {
        if (seen[axis]) continue;
        if (setting->ways[axis] > 1)
            return dl_fail(err, DL_RANGE, list.where, "must name %s too, which has %u ways",
                           dl_axis_name(setting, axis), setting->ways[axis]);
        setting->order[n++] = (enum dl_axis)axis;
    }
    return DL_OK;
}

/* Those with ways but data, and those that are named always; in the order by default. */
static const char *list_axes(const struct dl_setting *s, dl_digits always, const char *between, struct dl_arena *arena)
{
    const char *text = "";
    for (uint32_t i = 0; i < dl_n_axes(s); i++) {
        const enum dl_axis axis = dl_axis_by_default(s, i);
        if (always >> axis & 1 || (s->ways[axis] > 1 && axis != DL_AXIS_DATA))
            text = dl_arena_format(arena, "%s%s%s", text, *text ? between : "", dl_axis_name(s, axis));
    }
    return text;
}

static enum dl_status read_order(struct dl_json list, struct dl_setting *setting, struct dl_arena *arena,
                                 struct dl_error *err)
{
    bool seen[DL_MOST_AXES] = {false};
    const uint32_t n_axes = dl_n_axes(setting);
    for (uint32_t i = 0; i < n_axes; i++) setting->order[i] = dl_axis_by_default(setting, i);
    if (!list.value) return DL_OK;
    const size_t n = json_array_size(list.value);
    for (size_t i = 0; i < n; i++) {
        const struct dl_json item = dl_json_element(list, i, arena);
        uint32_t axis = 0;
        while (axis < n_axes &&
               !(json_is_string(item.value) && strcmp(json_string_value(item.value), dl_axis_name(setting, axis)) == 0))
            axis++;
        if (axis == n_axes || seen[axis])
            return dl_fail(err, DL_RANGE, item.where, "must be one of %s, each once",
                           list_axes(setting, ~(dl_digits)0, ", ", arena));
        seen[axis] = true;
        setting->order[i] = (enum dl_axis)axis;
    }
    return append_single_axes(list, seen, n, setting, err);
}

/* Of all axes but data; beyond all that can be, no longer exact. */
static uint64_t count_ranks_of_replica(const struct dl_setting *s)
{
    uint64_t n = 1;
    for (uint32_t axis = 0; axis < dl_n_axes(s); axis++)
        if (axis != DL_AXIS_DATA && n < (uint64_t)1 << 47) n *= s->ways[axis];
    return n;
}

static enum dl_status count_devices(struct dl_json doc, const struct dl_job_asked *asked, struct dl_job *job,
                                    struct dl_arena *arena, struct dl_error *err)
{
    struct dl_setting *const s = &job->setting;
    const uint64_t others = count_ranks_of_replica(s);
    const char *const axes = list_axes(s, 1u << DL_AXIS_TENSOR | 1u << DL_AXIS_PIPELINE, " x ", arena);
    if (others > DL_MOST_DEVICES)
        return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "stack", arena).where,
                       "%s ways = %ju devices; at most %d can be", axes, (uintmax_t)others, DL_MOST_DEVICES);
    job->n_devices = asked->devices           ? asked->devices
                     : asked->devices_in_file ? asked->devices_in_file
                                              : (uint32_t)others;
    s->ways[DL_AXIS_DATA] = (uint32_t)(job->n_devices / others);
    if (job->n_devices % others == 0) return DL_OK;
    const uint64_t below = job->n_devices / others * others;
    return dl_fail(err, DL_IMPOSSIBLE, asked->devices ? "--devices" : dl_json_member(doc, "devices", arena).where,
                   "must be a multiple of %s ways = %ju, got %u; %ju or %ju would do", axes, (uintmax_t)others,
                   job->n_devices, (uintmax_t)(below ? below : others),
                   (uintmax_t)(below ? below + others : 2 * others));
}

/* What is told counts ranks in lockstep that have experts of their own; numbers that do not come out are refused by
 * check. */
static void count_expert_ways(struct dl_setting *s)
{
    const uint64_t others = dl_expert_ways_in_lockstep(s);
    s->expert_ways = s->expert_ways > others ? (uint32_t)(s->expert_ways / others) : 1;
}

/* At most one strategy does. */
static void split_replicas(const struct dl_stack *levels, struct dl_setting *s)
{
    for (size_t i = 0; i < dl_strategy_count() && !s->n_peers; i++)
        if (levels[i].strategy && levels[i].strategy->split_replicas)
            s->n_peers =
                levels[i].strategy->split_replicas(levels[i].options, dl_n_replicas(s) / s->expert_ways, s->peers);
}

/* Replicas that nobody keeps equal would train models of their own. */
static enum dl_status check_replicas(struct dl_json doc, const struct dl_stack *levels, const struct dl_job *job,
                                     struct dl_arena *arena, struct dl_error *err)
{
    const uint32_t replicas = dl_copies(&job->setting, false);
    bool summed = replicas <= 1; /* 0: more expert ways than replicas, which expert refuses */
    for (size_t i = 0; i < dl_strategy_count(); i++)
        if (levels[i].strategy) summed |= levels[i].strategy->sums_gradients;
    if (summed) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "stack", arena).where,
                   "%u devices hold the model %u times, which needs {\"name\": \"data\"}; without it %u would do",
                   job->n_devices, replicas, job->n_devices / replicas);
}

static enum dl_status count_micros(struct dl_json doc, struct dl_setting *s, struct dl_arena *arena,
                                   struct dl_error *err)
{
    const double unit = dl_n_replicas(s) * s->microbatch, n = s->global_batch / unit;
    s->batch_where = dl_json_member(doc, "global_batch", arena).where;
    if (n > most_micros)
        return dl_fail(err, DL_IMPOSSIBLE, s->batch_where, "gives %.0f micro-batches of %.0f; at most %d can be",
                       floor(n), s->microbatch, most_micros);
    s->micros = (uint32_t)n;
    if (n == s->micros && n >= 1) return DL_OK;
    const double below = floor(n) * unit;
    return dl_fail(err, DL_IMPOSSIBLE, s->batch_where,
                   "must be a multiple of data ways x microbatch = %.0f, got %.0f; %.0f or %.0f would do", unit,
                   s->global_batch, below > 0 ? below : unit, below > 0 ? below + unit : 2 * unit);
}

struct dl_schedule_request dl_setting_schedule(const struct dl_setting *s)
{
    return (struct dl_schedule_request){.stages = dl_n_stages(s),
                                        .micros = s->micros,
                                        .chunks = s->chunks,
                                        .group = s->group,
                                        .pipeline_where = s->pipeline_where,
                                        .batch_where = s->batch_where};
}

static enum dl_status check_schedule(const struct dl_setting *s, struct dl_error *err)
{
    const struct dl_schedule_request request = dl_setting_schedule(s);
    return dl_schedule_check(s->schedule, &request, err);
}

enum dl_status dl_job_count(struct dl_json doc, const struct dl_job_asked *asked, const struct dl_stack *levels,
                            struct dl_job *job, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_setting *const s = &job->setting;
    if (count_devices(doc, asked, job, arena, err) || read_order(asked->order, s, arena, err)) return err->status;
    count_expert_ways(s);
    split_replicas(levels, s);
    dl_setting_number_ranks(s);
    if (check_replicas(doc, levels, job, arena, err) || count_micros(doc, s, arena, err)) return err->status;
    return check_schedule(s, err);
}
