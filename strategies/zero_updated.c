/* zero_updated.c - in stages 1 and 2 of ZeRO, parameters that were updated come after the update or, with overlap,
 * beside the first forwards of the next step: those of a stage's next chunk while one is at work (Megatron-Core,
 * pipeline_parallel/schedules.py, param_sync_func, and distributed/param_and_grad_buffer.py, start_param_sync), those
 * of a first chunk that waits for no input from the beginning of the step on. Layers are gathered in buckets as
 * gradients are summed, filled from the last layer on, and waited for where the first of them begins. */
#include "strategies/zero_parts.h"

#include <math.h>

/* Megatron-Core, distributed/distributed_data_parallel.py, bucket_size: more for many replicas, as latency grows. */
static const double least_bucket_parameters = 40e6, bucket_parameters_per_replica = 1e6;

static double bucket_parameters(const struct dl_setting *s)
{
    if (s->bucket_bytes > 0) return s->bucket_bytes / dl_gradient_bytes(s);
    return fmax(least_bucket_parameters, bucket_parameters_per_replica * dl_n_replicas(s));
}

static double cut_in(const struct dl_event *all, const struct dl_setting *s)
{
    return dl_zero_cut_parameters(all, s, (struct dl_zero_set){.of_experts = false}) +
           dl_zero_cut_parameters(all, s, (struct dl_zero_set){.of_experts = true});
}

static void add_layer(struct dl_event *all, const struct dl_layer *layer, const struct dl_setting *s)
{
    const struct dl_event of_layer = dl_zero_trained_in(layer, 1, s);
    all->parameters_inside += of_layer.parameters_inside;
    all->parameters_outside += of_layer.parameters_outside;
    all->parameters_expert += of_layer.parameters_expert;
    all->n_tensors += of_layer.n_tensors;
}

/* Of that which begins with the layer; nothing in it: another one has the layer. */
static struct dl_event bucket_at(const struct dl_chunk *chunk, size_t layer, const struct dl_setting *s)
{
    struct dl_event all = {0};
    for (size_t i = chunk->n_layers; i-- > layer;) {
        if (cut_in(&all, s) >= bucket_parameters(s)) all = (struct dl_event){0};
        add_layer(&all, &chunk->layers[i], s);
    }
    return layer == 0 || cut_in(&all, s) >= bucket_parameters(s) ? all : (struct dl_event){0};
}

static enum dl_status start(const struct dl_zero_options *o, const struct dl_chunk *chunk, struct dl_stack *below,
                            struct dl_error *err)
{
    for (size_t i = 0; i < chunk->n_layers; i++) {
        const struct dl_event all = bucket_at(chunk, i, dl_stack_setting(below));
        const struct dl_event ev = {.async = true, .handle = chunk->layers[i].index};
        if (dl_zero_gather_set(o, ev, &all, (struct dl_zero_set){.of_experts = false}, below, err) ||
            dl_zero_gather_set(o, ev, &all, (struct dl_zero_set){.of_experts = true}, below, err))
            return err->status;
    }
    return DL_OK;
}

/* For the last of its gathers: they go one after the other. */
static enum dl_status wait(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                           struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event all = bucket_at(ev->chunk, (size_t)(ev->layer - ev->chunk->layers), s);
    const struct dl_event until = {.kind = DL_EV_WAIT, .pass = DL_PARAMETERS, .handle = ev->layer->index};
    const double parameters = cut_in(&all, s);
    if (parameters <= 0) return DL_OK;
    return dl_emit(below, &until, err) ? err->status : dl_zero_convert(o, "dequantize", parameters, below, err);
}

enum dl_status dl_zero_gather_updated(const struct dl_zero_options *o, const struct dl_event *ev,
                                      struct dl_stack *below, struct dl_error *err)
{
    const struct dl_chunk *const chunk = ev->chunk;
    if (!chunk || chunk->n_layers == 0) return DL_OK; /* as where layers are only priced */
    if (ev->first && chunk->gather_at == DL_GATHER_AT_FORWARD && start(o, chunk, below, err)) return err->status;
    if (ev->first && chunk->next && start(o, chunk->next, below, err)) return err->status;
    return chunk->gather_at == DL_GATHER_AT_UPDATE ? DL_OK : wait(o, ev, below, err);
}

static struct dl_event gathered_at_update(const struct dl_zero_options *o, const struct dl_event *update,
                                          const struct dl_setting *s)
{
    struct dl_event all = {0};
    if (!o->overlap || !update->chunk) return *update;
    for (const struct dl_chunk *chunk = update->chunk; chunk; chunk = chunk->next)
        for (size_t i = 0; chunk->gather_at == DL_GATHER_AT_UPDATE && i < chunk->n_layers; i++)
            add_layer(&all, &chunk->layers[i], s);
    return all;
}

enum dl_status dl_zero_gather_after_update(const struct dl_zero_options *o, const struct dl_event *update,
                                           struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event all = gathered_at_update(o, update, s);
    struct dl_zero_options after = *o;
    after.overlap = false;
    for (int of_experts = 0; of_experts < 2; of_experts++) {
        const struct dl_zero_set set = {.of_experts = of_experts};
        if (dl_zero_gather_set(&after, (struct dl_event){.handle = DL_EVERY_CALL}, &all, set, below, err) ||
            dl_zero_convert(&after, "dequantize", dl_zero_cut_parameters(&all, s, set), below, err))
            return err->status;
    }
    return DL_OK;
}
