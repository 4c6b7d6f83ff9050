/* sink_groups.c - groups of ranks in lockstep, and how much they are in each other's way. */
#include <assert.h>

#include "strategies/in_step.h"
#include "strategies/sink.h"

void dl_sink_init_groups(struct dl_sink *s)
{
    dl_digits in_step[DL_MOST_IN_STEP];
    const struct dl_setting *const setting = &s->request->job->setting;
    s->n_groups = dl_in_step_kinds(setting, in_step);
    for (size_t i = 0; i < s->n_groups; i++) {
        struct dl_sink_groups *const g = &s->groups[i];
        g->along = in_step[i];
        g->all =
            dl_in_step_groups(setting, g->along, s->request->estimator->topology, s->request->device_of_rank, s->arena);
    }
}

struct dl_sink_groups *dl_sink_groups(struct dl_sink *s, dl_digits along)
{
    size_t i = 0;
    while (i < s->n_groups && s->groups[i].along != along) i++;
    assert(i < s->n_groups);
    return &s->groups[i];
}

enum dl_status dl_sink_crowding(struct dl_sink *s, dl_digits along, double *out, struct dl_error *err)
{
    struct dl_sink_groups *const g = dl_sink_groups(s, along);
    const uint32_t n = dl_in_step_n_groups(&s->request->job->setting, along);
    if (g->crowding == 0) dl_estimator_crowding(s->request->estimator, g->all, n, &g->crowding, err);
    *out = g->crowding;
    return err->status;
}
