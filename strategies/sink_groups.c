/* sink_groups.c - groups of ranks that go in step, and how much they are in each other's way. */
#include "strategies/in_step.h"
#include "strategies/sink.h"

static uint32_t device_at(const struct dl_sink *s, const uint32_t coordinate[DL_N_AXES])
{
    return s->request->device_of_rank[dl_rank_at(&s->request->job->setting, coordinate)];
}

static void init_group(struct dl_sink *s, enum dl_axis axis)
{
    const struct dl_line_of_ranks line = dl_in_step_ranks(&s->request->job->setting, axis);
    uint32_t *const device = dl_arena_alloc(s->arena, (line.n + 1) * sizeof *device);
    for (uint32_t i = 0; i < line.n; i++) {
        uint32_t coordinate[DL_N_AXES] = {0};
        coordinate[line.axis] = i * line.stride;
        device[i] = device_at(s, coordinate);
    }
    dl_group_init(&s->groups[axis], s->request->estimator->topology, device, line.n, s->arena);
}

enum dl_status dl_sink_init_groups(struct dl_sink *s, struct dl_error *err)
{
    static const enum dl_axis in_step[] = {DL_AXIS_TENSOR, DL_AXIS_CONTEXT, DL_AXIS_EXPERT,
                                           DL_AXIS_GRID_X, DL_AXIS_GRID_Y,  DL_AXIS_GRID_Z};
    for (size_t i = 0; i < DL_COUNT(in_step); i++) {
        const enum dl_axis axis = in_step[i];
        init_group(s, axis);
        if (s->request->n_changing && dl_in_step_crosses(s->request, axis, &s->crosses[axis], err)) return err->status;
    }
    return DL_OK;
}

enum dl_status dl_sink_check_changes(const struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    if (!s->crosses[ev->axis]) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--scenario",
                   "changes links on the way of an exchange (%s, %s) that is timed beforehand and not played",
                   dl_cause_name(ev->cause), dl_op_name(ev->op));
}

/* ---- all at once ---- */

static bool is_of_first(const struct dl_line_of_ranks *line, const uint32_t coordinate[DL_N_AXES])
{
    uint32_t others = 0;
    for (size_t axis = 0; axis < DL_N_AXES; axis++) others += coordinate[axis];
    return others == dl_place_in_line(line, coordinate) * line->stride;
}

/* A byte from this rank to the next of its group. */
static enum dl_status send_to_next(struct dl_sink *s, const struct dl_line_of_ranks *line,
                                   uint32_t coordinate[DL_N_AXES], struct dl_error *err)
{
    const uint32_t from = device_at(s, coordinate);
    dl_move_in_line(line, 1, coordinate);
    return dl_estimator_send(s->request->estimator, from, device_at(s, coordinate), err);
}

static enum dl_status time_rings(struct dl_sink *s, const struct dl_line_of_ranks *line, bool only_first,
                                 double *seconds, struct dl_error *err)
{
    const uint32_t *const ways = s->request->job->setting.ways;
    const uint32_t n_tensor = ways[DL_AXIS_TENSOR], n_context = ways[DL_AXIS_CONTEXT];
    const uint32_t n_data = line->axis == DL_AXIS_DATA ? line->n : 1;
    struct dl_estimator *const e = s->request->estimator;
    dl_tally_clear(&e->all);
    for (uint32_t i = 0; i < n_tensor * n_context * n_data; i++) {
        uint32_t coordinate[DL_N_AXES] = {[DL_AXIS_TENSOR] = i % n_tensor,
                                          [DL_AXIS_CONTEXT] = i / n_tensor % n_context,
                                          [DL_AXIS_DATA] = i / n_tensor / n_context};
        if (only_first && !is_of_first(line, coordinate)) continue;
        if (send_to_next(s, line, coordinate, err)) return err->status;
    }
    *seconds = dl_tally_seconds(&e->all, e->bytes_per_s);
    return DL_OK;
}

enum dl_status dl_sink_crowding(struct dl_sink *s, enum dl_axis axis, double *out, struct dl_error *err)
{
    const struct dl_line_of_ranks line = dl_in_step_ranks(&s->request->job->setting, axis);
    double alone_s = 0, together_s = 0;
    if (s->crowding[axis] == 0 && line.n > 1) {
        if (time_rings(s, &line, true, &alone_s, err) || time_rings(s, &line, false, &together_s, err))
            return err->status;
        s->crowding[axis] = alone_s > 0 ? together_s / alone_s : 1;
    }
    *out = line.n > 1 ? s->crowding[axis] : 1;
    return DL_OK;
}
