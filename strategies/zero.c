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

/* One of the two sets of parameters; nothing where there are none, or one rank holds them. */
static enum dl_status exchange(struct dl_event ev, const struct dl_event *of, bool of_experts, double bytes_each,
                               struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    ev.kind = DL_EV_COLLECTIVE;
    ev.cause = DL_CAUSE_DATA;
    ev.axis = of_experts ? DL_AXIS_EXPERT_DATA : DL_AXIS_DATA;
    ev.bytes = dl_parameters_in(of, s, of_experts) * bytes_each;
    return ev.bytes > 0 && dl_copies(s, of_experts) > 1 ? dl_emit(below, &ev, err) : DL_OK;
}

static enum dl_status exchange_both(struct dl_event ev, const struct dl_event *of, double bytes_each,
                                    struct dl_stack *below, struct dl_error *err)
{
    if (exchange(ev, of, false, bytes_each, below, err)) return err->status;
    return exchange(ev, of, true, bytes_each, below, err);
}

static struct dl_event parameters_of(const struct dl_layer *layer, const struct dl_setting *s)
{
    return (struct dl_event){.parameters_inside = layer->parameters_inside / s->parts.weights,
                             .parameters_outside = layer->parameters_outside / s->parts.others,
                             .parameters_expert = layer->expert_parameters / s->parts.weights / s->expert_ways};
}

static enum dl_status gather(const struct dl_layer *layer, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event all = parameters_of(layer, s);
    const struct dl_event ev = {.pass = DL_PARAMETERS, .op = DL_ALLGATHER, .async = true, .handle = layer->index};
    return exchange_both(ev, &all, dl_precision_bytes(s->precision), below, err);
}

/* For the later of its gathers: they go one after the other. */
static enum dl_status wait(const struct dl_layer *layer, struct dl_stack *below, struct dl_error *err)
{
    if (dl_layer_parameters(layer) <= 0) return DL_OK;
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
    const struct dl_event scatter = {
        .pass = DL_GRADIENT, .op = DL_REDUCESCATTER, .async = true, .handle = DL_EVERY_CALL};
    return exchange_both(scatter, ev, dl_gradient_bytes(dl_stack_setting(below)), below, err);
}

/* Every replica updates its part; in stages 1 and 2 it then gives it to the others. */
static enum dl_status update(const struct dl_event *ev, bool gathers, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event whole = {.pass = DL_PARAMETERS, .op = DL_ALLGATHER, .handle = DL_EVERY_CALL};
    struct dl_event part = *ev;
    part.parameters_inside /= dl_copies(s, false);
    part.parameters_outside /= dl_copies(s, false);
    part.parameters_expert /= dl_copies(s, true);
    if (dl_emit(below, &part, err) || !gathers) return err->status;
    return exchange_both(whole, ev, dl_precision_bytes(s->precision), below, err);
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
    if (dl_emit(below, &mine, err) || !full || dl_copies(dl_stack_setting(below), false) == 1) return err->status;
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
