/* zero.c - what replicas hold in common is cut over them (ZeRO, SC20).
 *
 * Stages 1 and 2 scatter the sums of gradients, update a part of the parameters each, and gather them: the same bytes
 * as an all-reduce. Stage 3 (FSDP) gathers the parameters of a layer just before each use, the next layer's while this
 * one computes, and scatters gradients after every backward: half as many bytes again. */
#include "strategies/strategies.h"

struct options {
    int64_t stage;
};
static const struct options defaults = {.stage = 1};
static const struct dl_field fields[] = {
    {"stage", DL_INT, offsetof(struct options, stage), 1, 3, true, NULL,
     "cut: 1 optimizer, 2 and gradients, 3 and parameters"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->zero_stage = (uint32_t)((const struct options *)options)->stage;
    return DL_OK;
}

static struct dl_event exchange(enum dl_op op, enum dl_pass pass, double bytes)
{
    return (struct dl_event){
        .kind = DL_EV_COLLECTIVE, .pass = pass, .cause = DL_CAUSE_DATA, .op = op, .axis = DL_AXIS_DATA, .bytes = bytes};
}

static double layer_bytes(const struct dl_layer *layer, const struct dl_setting *s)
{
    const double parameters = layer->parameters_inside / s->ways[DL_AXIS_TENSOR] + layer->parameters_outside;
    return parameters * dl_precision_bytes(s->precision);
}

static enum dl_status gather(const struct dl_layer *layer, struct dl_stack *below, struct dl_error *err)
{
    struct dl_event ev = exchange(DL_ALLGATHER, DL_PARAMETERS, layer_bytes(layer, dl_stack_setting(below)));
    ev.async = true;
    ev.handle = layer->index;
    return ev.bytes > 0 ? dl_emit(below, &ev, err) : DL_OK;
}

static enum dl_status wait(const struct dl_layer *layer, struct dl_stack *below, struct dl_error *err)
{
    if (layer_bytes(layer, dl_stack_setting(below)) <= 0) return DL_OK;
    return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .handle = layer->index}, err);
}

static enum dl_status begin_layer(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    if (ev->first && gather(ev->layer, below, err)) return err->status;
    if (ev->next && gather(ev->next, below, err)) return err->status;
    return wait(ev->layer, below, err);
}

static enum dl_status scatter_gradients(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double parameters = ev->parameters_inside + ev->parameters_outside;
    struct dl_event scatter = exchange(DL_REDUCESCATTER, DL_GRADIENT, parameters * s->software->gradient_bytes);
    scatter.async = true;
    return scatter.bytes > 0 ? dl_emit(below, &scatter, err) : DL_OK;
}

/* Every replica updates its part; in stages 1 and 2 it then gives it to the others. */
static enum dl_status update(const struct dl_event *ev, bool gathers, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double ways = s->ways[DL_AXIS_DATA], all = ev->parameters_inside + ev->parameters_outside;
    struct dl_event part = *ev;
    part.parameters_inside /= ways;
    part.parameters_outside /= ways;
    if (dl_emit(below, &part, err) || !gathers || ways == 1) return err->status;
    const struct dl_event whole = exchange(DL_ALLGATHER, DL_PARAMETERS, all * dl_precision_bytes(s->precision));
    return dl_emit(below, &whole, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const bool full = ((const struct options *)options)->stage == 3;
    if (ev->kind == DL_EV_UPDATE) return update(ev, !full, below, err);
    const bool summing = ev->kind == DL_EV_COLLECTIVE && ev->pass == DL_GRADIENT && ev->op == DL_ALLREDUCE;
    if (summing && full && ev->async) return DL_OK; /* each layer's gradients are scattered after its backward */
    if (summing && full) return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .handle = DL_EVERY_CALL}, err);
    struct dl_event mine = *ev;
    if (summing) mine.op = DL_REDUCESCATTER;
    if (dl_emit(below, &mine, err) || !full || dl_stack_setting(below)->ways[DL_AXIS_DATA] == 1) return err->status;
    if (ev->kind == DL_EV_LAYER) return begin_layer(ev, below, err);
    if (ev->kind == DL_EV_LAYER_DONE && ev->pass == DL_BACKWARD) return scatter_gradients(ev, below, err);
    return DL_OK;
}

const struct dl_strategy dl_strategy_zero = {
    .name = "zero",
    .doc = "optimizer state, gradients and parameters cut over the replicas",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .rewrite = rewrite,
};
