/* data.c - replicas of the model, each with a part of the batch; gradients are summed over them, all at the end or
 * layer by layer while the last backward goes on. */
#include "strategies/strategies.h"

struct options {
    bool overlap;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"overlap", DL_BOOL, offsetof(struct options, overlap), 0, 0, true, NULL, "sum gradients during the last backward"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->overlaps_gradients = ((const struct options *)options)->overlap;
    return DL_OK;
}

static enum dl_status sum_set(const struct dl_event *ev, bool of_experts, bool async, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double parameters = dl_parameters_in(ev, s, of_experts);
    if (parameters == 0 || dl_copies(s, of_experts) == 1) return DL_OK;
    const struct dl_event exchange = {.kind = DL_EV_COLLECTIVE,
                                      .pass = DL_GRADIENT,
                                      .cause = DL_CAUSE_DATA,
                                      .layer = ev->layer,
                                      .op = DL_ALLREDUCE,
                                      .axis = of_experts ? DL_AXIS_EXPERT_DATA : DL_AXIS_DATA,
                                      .bytes = parameters * dl_gradient_bytes(s),
                                      .async = async,
                                      .handle = DL_EVERY_CALL}; /* nobody waits for it alone */
    return dl_emit(below, &exchange, err);
}

static enum dl_status sum(const struct dl_event *ev, bool async, struct dl_stack *below, struct dl_error *err)
{
    if (sum_set(ev, false, async, below, err)) return err->status;
    return sum_set(ev, true, async, below, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const bool alone = dl_copies(dl_stack_setting(below), false) == 1;
    if (dl_emit(below, ev, err) || alone) return err->status;
    if (ev->kind == DL_EV_GRADIENT && o->overlap)
        return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .handle = DL_EVERY_CALL}, err);
    if (ev->kind == DL_EV_GRADIENT) return sum(ev, false, below, err);
    if (ev->kind == DL_EV_LAYER_DONE && ev->last_micro && o->overlap) return sum(ev, true, below, err);
    return DL_OK;
}

const struct dl_strategy dl_strategy_data = {
    .name = "data",
    .doc = "replicas of the model; as many as the other strategies leave devices for",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .rewrite = rewrite,
};
