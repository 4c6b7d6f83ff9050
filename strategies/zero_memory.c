#include "strategies/zero_memory.h"

#include <math.h>

#include "strategies/layer_memory.h"

/* ---- what is held ---- */

static bool is_cut(const struct dl_setting *s, enum dl_tensor_kind tensor)
{
    switch (tensor) {
    case DL_TENSOR_OPTIMIZER:
    case DL_TENSOR_UPDATING: return s->zero_stage >= 1;
    case DL_TENSOR_GRADIENTS: return dl_keeps_shards(s);
    case DL_TENSOR_FROZEN:
    case DL_TENSOR_PARAMETERS: return s->zero_stage >= 3;
    default: return false;
    }
}

/* What a rank works with of what it holds only a part of. Experts that one rank alone holds are none of it. */
static double cut_among(uint32_t shards, uint32_t shards_of_experts, struct dl_on_rank all)
{
    return (shards > 1 ? all.common : 0) + (shards_of_experts > 1 ? all.of_experts : 0);
}

static double cut_of(const struct dl_setting *s, struct dl_on_rank all)
{
    return cut_among(dl_shards(s, false), dl_shards(s, true), all);
}

static double secondary_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    const struct dl_on_rank all = dl_layer_on_rank(s, layer);
    if (!s->secondary_ways) return 0;
    const double held = all.common / dl_secondary_shards(s, false) + all.of_experts / dl_secondary_shards(s, true);
    return held * dl_precision_bytes(s->precision);
}

static double cut_parameters(const struct dl_setting *s, const struct dl_layer *layer)
{
    return cut_of(s, dl_layer_on_rank(s, layer));
}

/* Transformer Engine quantises what was gathered, and leaves each rank a part of it for the backward (pytorch/module/
 * linear.py, _fsdp_scatter_tensors). */
static double narrowed_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    return s->zero_stage >= 3 ? cut_parameters(s, layer) * dl_weight_copy_bytes(s, layer) : 0;
}

static double unreduced_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    return dl_keeps_shards(s) ? cut_of(s, dl_layer_trained_on_rank(s, layer)) * dl_gradient_bytes(s) : 0;
}

/* Where chunks accumulate whole gradients, the largest has room for them, and for those that are under way. */
static enum dl_status hold_chunk(const struct dl_event *ev, double *chunk_bytes, struct dl_stack *below,
                                 struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event of_stage = {.pass = DL_HOLD};
    if (dl_accumulated(s) != DL_ACCUMULATES_CHUNK) return DL_OK;
    if (ev->first) *chunk_bytes = 0;
    *chunk_bytes += unreduced_bytes(s, ev->layer);
    if (ev->n_after) return DL_OK;
    return dl_emit_alloc(below, DL_TENSOR_UNREDUCED, &of_stage, (s->sums_beside_work ? 2 : 1) * *chunk_bytes, err);
}

static enum dl_status hold_whole(const struct dl_zero_gathers *gathers, const struct dl_event *ev,
                                 struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool stays = s->zero_stage >= 3 && gathers->stays;
    const double bytes = stays ? cut_parameters(s, ev->layer) * dl_precision_bytes(s->precision) : 0;
    return dl_emit_alloc(below, DL_TENSOR_GATHERED, ev, bytes, err);
}

enum dl_status dl_zero_alloc(const struct dl_zero_gathers *gathers, const struct dl_event *ev, double *chunk_bytes,
                             struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event part = *ev;
    if (is_cut(s, ev->tensor)) {
        part.parameters_inside /= dl_shards(s, false);
        part.parameters_outside /= dl_shards(s, false);
        part.parameters_expert /= dl_shards(s, true);
    }
    if (dl_emit(below, &part, err) || ev->pass != DL_HOLD || ev->tensor != DL_TENSOR_PARAMETERS) return err->status;
    if (dl_emit_alloc(below, DL_TENSOR_SECONDARY, ev, secondary_bytes(s, ev->layer), err)) return err->status;
    return hold_whole(gathers, ev, below, err) ? err->status : hold_chunk(ev, chunk_bytes, below, err);
}

/* ---- what comes and goes ---- */

static const double bits_per_byte = 8;

/* What a rank gets for the event's layer: after the first use of a step, what the second copy is cut into. */
static double come_parameters(const struct dl_setting *s, const struct dl_event *ev, const struct dl_layer *layer)
{
    if (!s->secondary_ways || ev->first_micro) return cut_parameters(s, layer);
    return cut_among(dl_secondary_shards(s, false), dl_secondary_shards(s, true), dl_layer_on_rank(s, layer));
}

/* What stays from the forward need not come again. */
static bool gathers_for(const struct dl_zero_gathers *gathers, const struct dl_event *ev, const struct dl_setting *s)
{
    return s->zero_stage >= 3 && !(gathers->stays && ev->pass == DL_BACKWARD);
}

/* Beside the part that is held, and once more as they travel, if that is another form. */
static enum dl_status gather(const struct dl_zero_gathers *gathers, const struct dl_event *ev, int away,
                             struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event at = *ev;
    at.layer += away;
    at.block += (uint32_t)away;
    const double all = come_parameters(s, ev, at.layer);
    const double at_once =
        gathers->one_by_one ? fmin(all, dl_modules_most_live(&gathers->modules, at.layer, at.block)) : all;
    if (!gathers->stays &&
        dl_emit_alloc(below, DL_TENSOR_GATHERED, &at, at_once * dl_precision_bytes(s->precision), err))
        return err->status;
    return dl_emit_alloc(below, DL_TENSOR_PACKED, &at, at_once * gathers->bits / bits_per_byte, err);
}

static enum dl_status enter(const struct dl_zero_gathers *gathers, const struct dl_event *ev, struct dl_stack *below,
                            struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const uint32_t ahead = gathers->ahead;
    struct dl_event of_weights = *ev;
    of_weights.gradient = DL_GRADIENT_WEIGHT;
    if (dl_emit_alloc(below, DL_TENSOR_NARROWED, ev, narrowed_bytes(s, ev->layer), err)) return err->status;
    for (uint32_t i = ev->first ? 0 : ahead; gathers_for(gathers, ev, s) && i <= ahead && i <= ev->n_after; i++)
        if (gather(gathers, ev, ev->pass == DL_BACKWARD ? -(int)i : (int)i, below, err)) return err->status;
    if (ev->pass != DL_BACKWARD || dl_accumulated(s) != DL_ACCUMULATES_SHARDS) return DL_OK;
    return dl_emit_alloc(below, DL_TENSOR_UNREDUCED, &of_weights, unreduced_bytes(s, ev->layer), err);
}

bool dl_zero_scatters_at(const struct dl_event *done, const struct dl_setting *s)
{
    return done->last_micro || dl_accumulated(s) == DL_ACCUMULATES_SHARDS;
}

/* Gradients as they are sent, and as much that comes, of what is scattered at once. */
static double packed_gradient_bytes(const struct dl_zero_gathers *how, const struct dl_event *ev,
                                    const struct dl_setting *s)
{
    double parts[DL_MOST_MODULES] = {1}, most = 0;
    if (ev->pass != DL_BACKWARD || !dl_zero_scatters_at(ev, s) || how->scatter_bits <= 0) return 0;
    const uint32_t n = how->one_by_one ? dl_modules_buckets(&how->modules, ev->layer, parts) : 1;
    for (uint32_t i = 0; i < n; i++) most = fmax(most, parts[i]);
    return 2 * most * cut_of(s, dl_layer_trained_on_rank(s, ev->layer)) * how->scatter_bits / bits_per_byte;
}

/* Beside all that the layer has still. */
static enum dl_status pack_gradients(const struct dl_zero_gathers *how, const struct dl_event *of_weights,
                                     struct dl_stack *below, struct dl_error *err)
{
    const double bytes = packed_gradient_bytes(how, of_weights, dl_stack_setting(below));
    if (bytes <= 0 || dl_emit_alloc(below, DL_TENSOR_PACKED, of_weights, bytes, err)) return err->status;
    return dl_emit_free(below, DL_TENSOR_PACKED, of_weights, err);
}

static enum dl_status leave(const struct dl_zero_gathers *how, const struct dl_event *ev, struct dl_stack *below,
                            struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool gathers = gathers_for(how, ev, s) && cut_parameters(s, ev->layer) > 0;
    struct dl_event of_weights = *ev;
    of_weights.gradient = DL_GRADIENT_WEIGHT;
    if (gathers && how->bits > 0 && dl_emit_free(below, DL_TENSOR_PACKED, ev, err)) return err->status;
    if (pack_gradients(how, &of_weights, below, err)) return err->status;
    if (narrowed_bytes(s, ev->layer) > 0 && dl_emit_free(below, DL_TENSOR_NARROWED, ev, err)) return err->status;
    if (gathers && !how->stays && dl_emit_free(below, DL_TENSOR_GATHERED, ev, err)) return err->status;
    if (ev->pass != DL_BACKWARD || dl_accumulated(s) != DL_ACCUMULATES_SHARDS) return DL_OK;
    return dl_emit_free(below, DL_TENSOR_UNREDUCED, &of_weights, err);
}

enum dl_status dl_zero_layer(const struct dl_zero_gathers *gathers, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    if (ev->pass != DL_FORWARD && ev->pass != DL_BACKWARD) return DL_OK;
    return ev->kind == DL_EV_LAYER ? enter(gathers, ev, below, err) : leave(gathers, ev, below, err);
}
