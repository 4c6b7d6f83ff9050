/* wide_blocks.c - the first and last blocks of a model, whose products are not quantised where those of others are. */
#include "workloads/workloads.h"

/* Blocks that are alike share their work: those of a kind share a copy of it, so that they stay alike. */
enum { most_copies = 16 };
struct copies {
    struct copy {
        const struct dl_work *of;
        struct dl_work *forward, *backward;
    } known[most_copies];
    size_t n;
};

static struct dl_work *widened(const struct dl_work *work, size_t n, struct dl_arena *arena)
{
    struct dl_work *const wide = dl_arena_alloc(arena, (n + 1) * sizeof *wide);
    for (size_t i = 0; i < n; i++) {
        wide[i] = work[i];
        wide[i].kernel.in_wide_block = true;
    }
    return wide;
}

void dl_layer_widen(struct dl_layer *layer, struct dl_arena *arena)
{
    layer->forward = widened(layer->forward, layer->n_forward, arena);
    layer->backward = widened(layer->backward, layer->n_backward, arena);
    layer->is_wide = true;
}

static const struct copy *copy_of(struct copies *copies, const struct dl_layer *layer, struct dl_arena *arena)
{
    for (size_t i = 0; i < copies->n; i++)
        if (copies->known[i].of == layer->forward) return &copies->known[i];
    struct copy *const copy = &copies->known[copies->n < most_copies ? copies->n++ : most_copies - 1];
    *copy = (struct copy){layer->forward, widened(layer->forward, layer->n_forward, arena),
                          widened(layer->backward, layer->n_backward, arena)};
    return copy;
}

/* Megatron-Core counts layers of the decoder alone (is_first_last_bf16_layer, num_layers); it asks about modules that
 * predict further tokens with layer -1, which is at neither end. */
static bool is_counted(const struct dl_layer *layer) { return layer->is_block && !layer->is_further; }

uint32_t dl_model_blocks(const struct dl_model *model)
{
    uint32_t n = 0;
    for (size_t i = 0; i < model->n_layers; i++) n += is_counted(&model->layers[i]);
    return n;
}

void dl_model_widen(struct dl_model *model, uint32_t first, uint32_t last, struct dl_arena *arena)
{
    struct copies copies = {.n = 0};
    const uint32_t n_blocks = dl_model_blocks(model);
    uint32_t block = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        struct dl_layer *const layer = &model->layers[i];
        if (!is_counted(layer)) continue;
        const bool is_wide = block < first || block + last >= n_blocks;
        block++;
        if (!is_wide) continue;
        const struct copy *const copy = copy_of(&copies, layer, arena);
        layer->forward = copy->forward;
        layer->backward = copy->backward;
        layer->is_wide = true;
    }
}
