#include "sim/memory/memory_floor.h"

#include <math.h>

#include "strategies/layer_memory.h"

/* What the stack of strategies makes of the memory of layers: at the bottom it is only added up. */
struct sums {
    double held, updating, saved;
};

static enum dl_status add(void *user, const struct dl_event *ev, struct dl_error *err)
{
    struct sums *const sums = user;
    (void)err;
    if (ev->kind != DL_EV_ALLOC || dl_tensor_category(ev->tensor) == DL_MEMORY_HOST) return DL_OK;
    if (ev->tensor == DL_TENSOR_UNREDUCED) return DL_OK; /* that of the largest chunk of a stage */
    if (ev->tensor == DL_TENSOR_GRADIENTS || ev->tensor == DL_TENSOR_UPDATING)
        sums->updating += dl_allocated_bytes(ev);
    else if (ev->pass == DL_HOLD)
        sums->held += dl_allocated_bytes(ev);
    else if (ev->tensor == DL_TENSOR_SAVED || ev->tensor == DL_TENSOR_SCORES)
        sums->saved += dl_allocated_bytes(ev);
    return DL_OK;
}

static void add_states(struct dl_stack *top, const struct dl_layer *layer, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_event held = {.pass = DL_HOLD, .layer = layer};
    const struct dl_event update = {.pass = DL_OPTIMIZER,
                                    .layer = layer,
                                    .parameters_inside = layer->parameters_inside,
                                    .parameters_outside = layer->parameters_outside,
                                    .parameters_expert = layer->expert_parameters};
    dl_emit_held(top, &held, err);
    if (!s->software->gradients_persist && !s->streams_weights) dl_emit_gradients(top, &update, err);
    dl_emit_updating(top, &update, false, err);
}

/* What any block keeps at least, wherever it stands: those recomputed first or together keep least. */
static double least_saved(struct dl_stack *top, const struct dl_layer *layer, struct sums *sums, struct dl_error *err)
{
    double least = INFINITY;
    for (uint32_t block = 0; block < (layer->is_block ? 2 : 1); block++) {
        const struct dl_event at = {.pass = DL_FORWARD, .layer = layer, .block = block};
        sums->saved = 0;
        dl_emit_entered(top, &at, err);
        least = fmin(least, sums->saved);
    }
    return least;
}

/* The fullest stage has at least the mean. After the first forward of a chunk its activations are there, and the mean
 * chunk of a stage has its share; before the update all gradients are. */
double dl_memory_floor(const struct dl_job *job, const struct dl_model *model)
{
    const struct dl_setting *const s = &job->setting;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0}; /* memory is never refused */
    struct sums sums = {0};
    double saved = 0;
    dl_stack_begin(job->stack, &(struct dl_stack_use){model->n_layers, arena, add, &sums});
    for (size_t i = 0; i < model->n_layers; i++) {
        add_states(job->stack, &model->layers[i], &err);
        saved += least_saved(job->stack, &model->layers[i], &sums, &err);
    }
    dl_stack_end(job->stack);
    dl_arena_free(arena);
    return (sums.held + fmax(sums.updating, saved / s->chunks)) / dl_n_stages(s);
}
