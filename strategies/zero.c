/* zero.c - what replicas hold in common is cut over them (ZeRO, SC20).
 *
 * Stages 1 and 2 scatter the sums of gradients, update a part of the parameters each, and gather them: the same bytes
 * as an all-reduce. */
#include "strategies/strategies.h"

struct options {
    int64_t stage;
};
static const struct options defaults = {.stage = 1};
static const struct dl_field fields[] = {
    {"stage", DL_INT, offsetof(struct options, stage), 1, 2, true, NULL, "1: optimizer; 2: gradients too"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->zero_stage = (uint32_t)o->stage;
    return DL_OK;
}

static enum dl_status scatter_and_gather(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event scatter = *ev, gather = *ev;
    scatter.op = DL_REDUCESCATTER;
    gather.op = DL_ALLGATHER;
    gather.pass = DL_PARAMETERS;
    gather.bytes = ev->bytes / s->software->gradient_bytes * dl_precision_bytes(s->precision);
    return dl_emit(below, &scatter, err) || dl_emit(below, &gather, err) ? err->status : DL_OK;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    (void)options;
    if (ev->kind == DL_EV_COLLECTIVE && ev->pass == DL_GRADIENT && ev->op == DL_ALLREDUCE)
        return scatter_and_gather(ev, below, err);
    struct dl_event mine = *ev;
    if (ev->kind == DL_EV_UPDATE) {
        const double ways = dl_stack_setting(below)->ways[DL_AXIS_DATA];
        mine.parameters_inside /= ways;
        mine.parameters_outside /= ways;
    }
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_strategy_zero = {
    .name = "zero",
    .doc = "optimizer state (and gradients) cut over the replicas",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .rewrite = rewrite,
};
