#include "sim/memory/memory_floor.h"

#include <math.h>

/* What any block keeps at least, wherever it stands: those recomputed first or together keep least. */
static double least_saved(const struct dl_setting *s, const struct dl_layer *layer, double of_first)
{
    return layer->is_block ? fmin(of_first, dl_layer_needs(s, layer, 1).saved) : of_first;
}

/* The fullest stage has at least the mean. After the first forward of a chunk its activations are there, and the mean
 * chunk of a stage has its share; before the update all gradients are. */
double dl_memory_floor(const struct dl_setting *s, const struct dl_model *model)
{
    double held = 0, updating = 0, saved = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct dl_layer_needs needs = dl_layer_needs(s, &model->layers[i], 0);
        held += needs.parameters + needs.optimizer + needs.kept;
        updating += needs.gradients + needs.updating;
        saved += least_saved(s, &model->layers[i], needs.saved);
    }
    return (held + fmax(updating, saved / s->chunks)) / s->ways[DL_AXIS_PIPELINE];
}
