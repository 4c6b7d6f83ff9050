/* sink_groups.c - groups of ranks in lockstep, and how much they are in each other's way. */
#include <assert.h>

#include "strategies/in_step.h"
#include "strategies/sink.h"

void dl_sink_init_groups(struct dl_sink *s)
{
    static const dl_digits in_step[DL_SINK_GROUPS] = {DL_ALONG_TENSOR, DL_ALONG_CONTEXT, DL_ALONG_EXPERTS,
                                                      DL_ALONG_X,      DL_ALONG_Y,       DL_ALONG_Z};
    const struct dl_setting *const setting = &s->request->job->setting;
    for (size_t i = 0; i < DL_SINK_GROUPS; i++) {
        struct dl_sink_groups *const g = &s->groups[i];
        g->along = in_step[i];
        g->all =
            dl_in_step_groups(setting, g->along, s->request->estimator->topology, s->request->device_of_rank, s->arena);
    }
}

struct dl_sink_groups *dl_sink_groups(struct dl_sink *s, dl_digits along)
{
    size_t i = 0;
    while (i < DL_SINK_GROUPS && s->groups[i].along != along) i++;
    assert(i < DL_SINK_GROUPS);
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
