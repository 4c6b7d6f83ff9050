/* recompute.c - keep less of the forward, compute it again before the backward.
 *
 * full: each block keeps its input and repeats its forward. selective: only the attention between the projections is
 * repeated, which is where most of the memory is and little of the work (Korthikanti et al., MLSys 2023). */
#include "strategies/strategies.h"

static const char *const modes[] = {"none", "selective", "full", NULL}; /* in the order of enum dl_recompute */

struct options {
    int64_t mode;
};
static const struct options defaults = {.mode = DL_RECOMPUTE_NOTHING};
static const struct dl_field fields[] = {
    {"mode", DL_CHOICE, offsetof(struct options, mode), 0, 0, false, modes, "what is computed again"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->recompute = (enum dl_recompute)((const struct options *)options)->mode;
    return DL_OK;
}

static enum dl_status repeat(const struct dl_event *ev, bool all, struct dl_stack *below, struct dl_error *err)
{
    for (size_t i = 0; i < ev->layer->n_forward; i++) {
        const struct dl_work *const work = &ev->layer->forward[i];
        if (!all && !work->kernel.attention_core) continue;
        if (dl_emit_work(below, work, DL_RECOMPUTE, ev->layer, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (dl_emit(below, ev, err)) return err->status;
    if (ev->kind != DL_EV_LAYER || ev->pass != DL_BACKWARD || !ev->layer->is_block || o->mode == DL_RECOMPUTE_NOTHING)
        return DL_OK;
    return repeat(ev, o->mode == DL_RECOMPUTE_BLOCKS, below, err);
}

const struct dl_strategy dl_strategy_recompute = {
    .name = "recompute",
    .doc = "keep less of the forward, compute it again before the backward",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .rewrite = rewrite,
};
