#include "sim/memory/memory_use.h"

#include <math.h>

/* Layers count two bytes for an activation. In fp32 that makes masks of dropout too large, as they are not told apart:
 * by 2 of 34 sbh in a block of GPT. */
static double width(const struct dl_setting *s)
{
    const double counted_bytes = 2;
    return dl_precision_bytes(s->precision) / counted_bytes;
}

/* Without recomputation: sbh (10 + 24/t + 5as/ht), or all of it divided by t with sequence parallelism (Korthikanti et
 * al., MLSys 2023, equations 2 and 4); s is the part of the sequence that a rank has. */
static double all_saved_bytes(const struct dl_setting *s, const struct dl_layer *layer, bool scores)
{
    return width(s) / s->ways[DL_AXIS_CONTEXT] *
           (layer->saved.outside_bytes / s->parts.outside +
            (layer->saved.inside_bytes + (scores ? layer->saved.scores_bytes : 0)) / s->parts.inside);
}

double dl_saved_bytes(const struct dl_setting *s, const struct dl_layer *layer, uint32_t block)
{
    const enum dl_recompute again = layer->is_block ? dl_recompute_of(s, block) : DL_RECOMPUTE_NOTHING;
    if (again != DL_RECOMPUTE_BLOCKS) return all_saved_bytes(s, layer, again == DL_RECOMPUTE_NOTHING);
    if (!dl_recompute_keeps_input(s, block)) return 0;
    return width(s) * layer->saved.input_bytes / s->parts.outside / s->ways[DL_AXIS_CONTEXT];
}

struct stage_sums {
    double parameters;      /* on one rank */
    double part;            /* of them, where ranks that hold the same divide them */
    double *saved;          /* by chunk, for one micro-batch */
    double most_recomputed; /* of blocks done again together: what they drop, and have again while they go backward */
    double most_parameters; /* of one layer */
    double gathered_kept, gathered_again; /* parameters of other tensor ranks; of blocks done again together */
};

/* Weights that are cut along the grid's depth are gathered for the forward and kept for the backward. */
static double gathered_parameters(const struct dl_setting *s, const struct dl_layer *layer)
{
    if (!s->gathers_weights) return 0;
    return (s->grid[2] - 1) * layer->parameters_inside / s->parts.weights;
}

static void add_position(const struct dl_setting *s, const struct dl_layer *layers, const struct dl_position *p,
                         uint32_t chunk, struct stage_sums *sums)
{
    double recomputed = 0, gathered_again = 0; /* of the present group */
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        const struct dl_layer *const layer = &layers[i];
        const uint32_t block = (uint32_t)(i - p->first_block);
        const double common = layer->parameters_inside / s->parts.weights + layer->parameters_outside / s->parts.others;
        const double of_experts = layer->expert_parameters / s->parts.weights / s->expert_ways;
        const double saved = dl_saved_bytes(s, layer, block), gathered = gathered_parameters(s, layer);
        sums->parameters += common + of_experts;
        sums->part += common / dl_shards(s, false) + of_experts / dl_shards(s, true);
        if (dl_recompute_keeps_input(s, block)) recomputed = gathered_again = 0;
        if (layer->is_block && dl_recompute_of(s, block) == DL_RECOMPUTE_BLOCKS)
            gathered_again += gathered;
        else
            sums->gathered_kept += gathered;
        sums->gathered_again = fmax(sums->gathered_again, gathered_again);
        sums->saved[chunk] += saved;
        recomputed += all_saved_bytes(s, layer, true) - saved;
        sums->most_recomputed = fmax(sums->most_recomputed, recomputed);
        sums->most_parameters = fmax(sums->most_parameters, common + of_experts);
    }
}

static double most_activations(const struct dl_schedule *schedule, uint32_t stage, const double *saved)
{
    double live = 0, most = 0;
    const enum dl_item_kind frees = schedule->splits_backward ? DL_ITEM_W : DL_ITEM_B;
    for (uint32_t i = 0; i < schedule->n_items[stage]; i++) {
        const struct dl_item *const item = &schedule->items[stage][i];
        if (item->kind == DL_ITEM_F) live += saved[item->chunk];
        most = fmax(most, live);
        if (item->kind == frees) live -= saved[item->chunk];
    }
    return most;
}

/* Of cut parameters: the layer at work and those gathered ahead, as they travel too if that is another form; or all of
 * them; and the gradients of the layer before until they are scattered. */
static double gathered_bytes(const struct dl_setting *s, const struct stage_sums *sums)
{
    const double ahead = fmin((1.0 + s->gathers_ahead) * sums->most_parameters, sums->parameters);
    const double whole = s->stays_gathered ? sums->parameters : ahead;
    return whole * dl_precision_bytes(s->precision) + ahead * s->gather_bits / 8 +
           sums->most_parameters * dl_gradient_bytes(s);
}

/* What comes from and goes to other stages; what lossy exchanges could not send; what cut parameters need. */
static double buffer_bytes(const struct dl_setting *s, const struct dl_program *p, const struct stage_sums *sums)
{
    const double in_step = s->ways[DL_AXIS_TENSOR] * s->ways[DL_AXIS_CONTEXT];
    const double sends = s->ways[DL_AXIS_PIPELINE] > 1 ? 2 * p->send_bytes / in_step : 0;
    const double all = sends + (sums->gathered_kept + sums->gathered_again) * dl_precision_bytes(s->precision);
    if (dl_copies(s, false) == 1) return all;
    const double errors = sums->parameters * s->error_bytes_per_parameter;
    const bool gathers = s->zero_stage == 3 && dl_shards(s, false) > 1;
    return all + errors + (gathers ? gathered_bytes(s, sums) : 0);
}

void dl_memory_of_stages(const struct dl_setting *s, const struct dl_lowered *l, struct dl_memory_use *use)
{
    for (uint32_t stage = 0; stage < s->ways[DL_AXIS_PIPELINE]; stage++) {
        struct stage_sums sums = {.saved = dl_alloc(s->chunks * sizeof *sums.saved)};
        struct dl_memory_use *const u = &use[stage];
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
            add_position(s, l->layers, &l->positions[l->schedule.position_of[stage * s->chunks + chunk]], chunk, &sums);
        *u = (struct dl_memory_use){
            .parameters = (s->zero_stage >= 3 ? sums.part : sums.parameters) * dl_precision_bytes(s->precision),
            .gradients = (s->zero_stage >= 2 ? sums.part : sums.parameters) * dl_gradient_bytes(s),
            .optimizer = (s->zero_stage >= 1 ? sums.part : sums.parameters) * s->optimizer_bytes_per_parameter,
            .activations = most_activations(&l->schedule, stage, sums.saved),
            .buffers = buffer_bytes(s, &l->programs[stage], &sums),
            .workspace = sums.most_recomputed,
        };
        u->peak =
            u->parameters + u->gradients + u->optimizer + u->activations + u->buffers + u->workspace + u->fragmentation;
        dl_free(sums.saved);
    }
}
