/* zero_updated.c - in stages 1 and 2 of ZeRO, parameters that were updated come beside the first forwards of the next
 * step: those of a stage's next chunk while one is at work (Megatron-Core, pipeline_parallel/schedules.py,
 * param_sync_func, and distributed/param_and_grad_buffer.py, start_param_sync). Those of its first chunk are waited for
 * before the step begins, layer by layer where there is no pipeline. */
#include "strategies/zero_parts.h"

static double cut_in(const struct dl_event *all, const struct dl_setting *s)
{
    return dl_zero_cut_parameters(all, s, (struct dl_zero_set){.of_experts = false}) +
           dl_zero_cut_parameters(all, s, (struct dl_zero_set){.of_experts = true});
}

static enum dl_status start(const struct dl_zero_options *o, const struct dl_layer *layer, struct dl_stack *below,
                            struct dl_error *err)
{
    const struct dl_event all = dl_zero_trained_in(layer, 1, dl_stack_setting(below));
    const struct dl_event ev = {.async = true, .handle = layer->index};
    for (int of_experts = 0; of_experts < 2; of_experts++) {
        const struct dl_zero_set set = {.of_experts = of_experts};
        if (dl_zero_gather_set(o, ev, &all, set, below, err)) return err->status;
    }
    return DL_OK;
}

/* For the last of its gathers: they go one after the other. */
static enum dl_status wait(const struct dl_zero_options *o, const struct dl_layer *layer, struct dl_stack *below,
                           struct dl_error *err)
{
    const struct dl_event all = dl_zero_trained_in(layer, 1, dl_stack_setting(below));
    const double parameters = cut_in(&all, dl_stack_setting(below));
    const struct dl_event until = {.kind = DL_EV_WAIT, .pass = DL_PARAMETERS, .handle = layer->index};
    if (parameters <= 0) return DL_OK;
    return dl_emit(below, &until, err) ? err->status : dl_zero_convert(o, "dequantize", parameters, below, err);
}

enum dl_status dl_zero_bring_updated(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                                     struct dl_error *err)
{
    if (ev->pass != DL_FORWARD || !ev->first_micro) return DL_OK;
    for (uint32_t i = 0; ev->first && ev->coming == DL_COMES_NOW && i <= ev->n_after; i++)
        if (start(o, ev->layer + i, below, err)) return err->status;
    for (uint32_t i = 0; i < ev->n_next_chunk; i++)
        if (start(o, ev->next_chunk + i, below, err)) return err->status;
    return ev->coming == DL_IS_THERE ? DL_OK : wait(o, ev->layer, below, err);
}

enum dl_status dl_zero_bring_first(const struct dl_zero_options *o, const struct dl_event *update,
                                   struct dl_stack *below, struct dl_error *err)
{
    for (uint32_t i = 0; i < update->n_next_chunk; i++)
        if (start(o, update->next_chunk + i, below, err) || wait(o, update->next_chunk + i, below, err))
            return err->status;
    return DL_OK;
}
