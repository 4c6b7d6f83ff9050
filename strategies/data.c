/* data.c - replicas of the model, each with a part of the batch; gradients are summed over them. */
#include "strategies/strategies.h"

struct options {
    int unused;
};
static const struct options defaults = {0};

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    (void)options;
    const struct dl_setting *const s = dl_stack_setting(below);
    if (ev->kind != DL_EV_GRADIENT || s->ways[DL_AXIS_DATA] == 1) return dl_emit(below, ev, err);
    struct dl_event sum = *ev;
    sum.kind = DL_EV_COLLECTIVE;
    sum.pass = DL_GRADIENT;
    sum.cause = DL_CAUSE_DATA;
    sum.op = DL_ALLREDUCE;
    sum.axis = DL_AXIS_DATA;
    sum.bytes = (ev->parameters_inside + ev->parameters_outside) * s->software->gradient_bytes;
    return dl_emit(below, &sum, err);
}

const struct dl_strategy dl_strategy_data = {
    .name = "data",
    .doc = "replicas of the model; as many as the other strategies leave devices for",
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .rewrite = rewrite,
};
