#include "sim/memory/memory_use.h"

#include <math.h>

/* Without recomputation: sbh (10 + 24/t + 5as/ht), or all of it divided by t with sequence parallelism (Korthikanti et
 * al., MLSys 2023, equations 2 and 4). */
static double all_saved_bytes(const struct dl_setting *s, const struct dl_layer *layer, bool scores)
{
    const double t = s->ways[DL_AXIS_TENSOR], outside_ways = s->sequence_parallel ? t : 1;
    return layer->saved.outside_bytes / outside_ways +
           (layer->saved.inside_bytes + (scores ? layer->saved.scores_bytes : 0)) / t;
}

double dl_saved_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    if (!layer->is_block || s->recompute == DL_RECOMPUTE_NOTHING) return all_saved_bytes(s, layer, true);
    if (s->recompute == DL_RECOMPUTE_SELECTIVE) return all_saved_bytes(s, layer, false);
    return layer->saved.input_bytes / (s->sequence_parallel ? s->ways[DL_AXIS_TENSOR] : 1);
}

struct stage_sums {
    double parameters;    /* on one rank */
    double *saved;        /* by chunk, for one micro-batch */
    double largest_block; /* everything that one block saves: what its recomputation needs for a while */
};

static void add_position(const struct dl_setting *s, const struct dl_model *m, const struct dl_position *p,
                         uint32_t chunk, struct stage_sums *sums)
{
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        const struct dl_layer *const layer = &m->layers[i];
        sums->parameters +=
            layer->parameters_inside / s->ways[DL_AXIS_TENSOR] + layer->parameters_outside + layer->expert_parameters;
        sums->saved[chunk] += dl_saved_bytes(s, layer);
        if (layer->is_block) sums->largest_block = fmax(sums->largest_block, all_saved_bytes(s, layer, true));
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

void dl_memory_of_stages(const struct dl_setting *s, const struct dl_model *m, const struct dl_lowered *l,
                         struct dl_memory_use *use)
{
    const double d = s->ways[DL_AXIS_DATA];
    for (uint32_t stage = 0; stage < s->ways[DL_AXIS_PIPELINE]; stage++) {
        struct stage_sums sums = {.saved = dl_alloc(s->chunks * sizeof *sums.saved)};
        struct dl_memory_use *const u = &use[stage];
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
            add_position(s, m, &l->positions[l->schedule.position_of[stage * s->chunks + chunk]], chunk, &sums);
        *u = (struct dl_memory_use){
            .parameters = sums.parameters * dl_precision_bytes(s->precision) / (s->zero_stage >= 3 ? d : 1),
            .gradients = sums.parameters * s->software->gradient_bytes / (s->zero_stage >= 2 ? d : 1),
            .optimizer = sums.parameters * s->optimizer_bytes_per_parameter / (s->zero_stage >= 1 ? d : 1),
            .activations = most_activations(&l->schedule, stage, sums.saved),
            .buffers = s->ways[DL_AXIS_PIPELINE] > 1 ? 2 * l->programs[stage].send_bytes / s->ways[DL_AXIS_TENSOR] : 0,
            .workspace = s->recompute == DL_RECOMPUTE_NOTHING ? 0 : sums.largest_block,
        };
        u->peak =
            u->parameters + u->gradients + u->optimizer + u->activations + u->buffers + u->workspace + u->fragmentation;
        dl_free(sums.saved);
    }
}
