/* sink_groups.c - groups of ranks in lockstep, and how much they are in each other's way. */
#include "strategies/in_step.h"
#include "strategies/sink.h"

enum dl_status dl_sink_init_groups(struct dl_sink *s, struct dl_error *err)
{
    static const enum dl_axis in_step[] = {DL_AXIS_TENSOR, DL_AXIS_CONTEXT, DL_AXIS_EXPERT,
                                           DL_AXIS_GRID_X, DL_AXIS_GRID_Y,  DL_AXIS_GRID_Z};
    const struct dl_seats seats = {&s->request->job->setting, s->request->device_of_rank,
                                   s->request->estimator->topology};
    const uint32_t *const ways = seats.setting->ways;
    s->crossing = dl_arena_alloc(s->arena, ways[DL_AXIS_PIPELINE] * ways[DL_AXIS_DATA] * sizeof *s->crossing);
    for (size_t i = 0; i < DL_COUNT(in_step); i++) {
        const enum dl_axis axis = in_step[i];
        s->groups[axis] = dl_in_step_groups(&seats, axis, 0, 0, s->arena);
        if (s->request->n_changing && dl_in_step_crosses(s->request, axis, s->crossing, &s->crosses[axis], err))
            return err->status;
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

enum dl_status dl_sink_crowding(struct dl_sink *s, enum dl_axis axis, double *out, struct dl_error *err)
{
    const uint32_t n = dl_in_step_n_groups(&s->request->job->setting, axis);
    if (s->crowding[axis] == 0)
        dl_estimator_crowding(s->request->estimator, s->groups[axis], n, &s->crowding[axis], err);
    *out = s->crowding[axis];
    return err->status;
}
