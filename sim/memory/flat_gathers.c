#include "sim/memory/flat_gathers.h"

#include <math.h>

static double largest_in(const struct dl_memory_ops *ops)
{
    double largest = 0;
    for (size_t i = 0; i < ops->n; i++) {
        const enum dl_tensor_kind tensor = ops->items[i].tensor;
        const bool is_one_block = tensor == DL_TENSOR_WORKING || tensor == DL_TENSOR_PASSING;
        if (is_one_block && !ops->items[i].frees) largest = fmax(largest, ops->items[i].bytes);
    }
    return largest;
}

/* The largest tensor that a backward frees: of logits, or of the widest product. */
static double largest_freed(const struct dl_program *p)
{
    double largest = 0;
    for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++)
        largest = fmax(largest, largest_in(&p->items[i]->memory));
    return largest;
}

/* Moments come with the first update, after the first backward: they are where activations were, and these go where
 * buffers were. Parameters in fp32 are there before. */
static double made_by_first_update(const struct dl_setting *s, const struct dl_memory_use *use)
{
    const double each = dl_optimizer_state_bytes(s), of_parameters = dl_is_mixed(s) ? dl_precision_bytes(DL_FP32) : 0;
    return each > 0 ? use->optimizer * (each - of_parameters) / each : 0;
}

double dl_flat_gather_bytes(const struct dl_program *program, const struct dl_setting *s,
                            const struct dl_memory_use *use)
{
    const double n = dl_shards(s, false), whole = use->parameters, part = whole / n;
    if (!s->software->flat_gathers || s->zero_stage != 1 || n < 2) return 0;
    const double room = largest_freed(program);
    const double parts = part > room ? whole + part : 0, all = whole > room ? whole : 0;
    return fmax(0, parts + all - made_by_first_update(s, use));
}
