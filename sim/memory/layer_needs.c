#include "sim/memory/layer_needs.h"

#include <math.h>

#include "strategies/zero_modules.h"

/* ---- by kernels ---- */

/* A tensor of a product: cut by tensor parallelism if it has the dimension that this divides. */
static double part(const struct dl_setting *s, const struct dl_kernel *k, enum dl_cut dimension)
{
    const bool cut = k->cut == DL_CUT_BATCH || k->cut == DL_CUT_INSIDE || k->cut == dimension;
    return (double)(cut ? s->parts.inside : s->parts.outside) * s->ways[DL_AXIS_CONTEXT];
}

/* The gradients that a product is given and makes: m x k and m x n. A convolution's n counts what it makes once for
 * every window, and is taken as large as what it is given. */
static double product_gradients(const struct dl_setting *s, const struct dl_kernel *k)
{
    if (k->kind == DL_KERNEL_ATTENTION) /* of queries and output; of keys and values */
        return 2 * k->batch * k->k * (k->m + k->n * k->kv_share) / part(s, k, DL_CUT_BATCH);
    const double made = k->kind == DL_KERNEL_CONV ? fmin(k->k, k->n) : k->n;
    return k->batch * k->m * (k->k / part(s, k, DL_CUT_K) + made / part(s, k, DL_CUT_N));
}

/* The most of any one product, beside the gradient that passes it by on the residual way. */
static double at_work_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    double most = 0;
    for (size_t i = 0; i < layer->n_backward; i++) {
        const struct dl_work *const w = &layer->backward[i];
        if (w->kind == DL_WORK_KERNEL && w->kernel.kind != DL_KERNEL_MEMORY && w->gradient == DL_GRADIENT_INPUT)
            most = fmax(most, product_gradients(s, &w->kernel));
    }
    const double passing = layer->output_elements / s->parts.outside / s->ways[DL_AXIS_CONTEXT];
    const double cut_logits = layer->logits / s->parts.inside, whole_logits = layer->whole_logits / s->parts.outside;
    const double logits = (cut_logits + whole_logits) / s->ways[DL_AXIS_CONTEXT];
    const double workspace = s->is_pure ? s->software->pure_logit_workspace_bytes : s->software->logit_workspace_bytes;
    return (most + passing) * dl_precision_bytes(s->precision) + logits * workspace;
}

/* Inputs of linear layers and gradients of their outputs: 32 sbh in a block of GPT (Qi et al., Zero Bubble Pipeline
 * Parallelism, ICLR 2024, table 1). */
static double for_weights_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    const struct dl_operand_rule *const operands = dl_operand_rule_for(&s->software->operands, s->precision);
    const double wide = dl_precision_bytes(s->precision);
    const double narrow = operands && operands->saved ? dl_precision_operand_bytes(s->precision) : wide;
    double bytes = 0;
    bool convolves = false;
    for (size_t i = 0; i < layer->n_backward; i++) {
        const struct dl_work *const w = &layer->backward[i];
        const struct dl_kernel *const k = &w->kernel;
        if (w->kind != DL_WORK_KERNEL || w->gradient != DL_GRADIENT_WEIGHT || k->kind == DL_KERNEL_MEMORY) continue;
        double elements = k->batch * k->n * k->k / part(s, k, DL_CUT_N);
        if (k->kind == DL_KERNEL_GEMM) elements += k->batch * k->m * k->k / part(s, k, DL_CUT_M);
        bytes += elements * (k->stays_wide ? wide : narrow);
        convolves |= k->kind == DL_KERNEL_CONV;
    }
    return bytes + (convolves ? dl_saved_whole_bytes(s, layer, false) : 0); /* m counts every window */
}

/* ---- states ---- */

/* Parameters of a layer: those that a rank works with, and the part of them that it holds. */
struct share {
    double whole, held;
};

static struct share share_of(const struct dl_setting *s, const struct dl_layer *layer, bool cut)
{
    const struct dl_on_rank all =
        dl_on_rank(s, layer->parameters_inside, layer->parameters_outside, layer->expert_parameters);
    return (struct share){.whole = dl_held(s, all, false), .held = dl_held(s, all, cut)};
}

/* Whole beside the part that is held, and once more as they travel, if that is another form. */
static void add_gathered(const struct dl_setting *s, const struct share *parameters, double at_once,
                         struct dl_layer_needs *n)
{
    const double bits_per_byte = 8, bytes = dl_precision_bytes(s->precision);
    if (parameters->held == parameters->whole) return;
    *(s->stays_gathered ? &n->kept : &n->gathered) += (s->stays_gathered ? parameters->whole : at_once) * bytes;
    n->gathered += at_once * s->gather_bits / bits_per_byte;
}

/* Weights that are cut along the grid's depth are gathered for the forward and kept for the backward, unless that does
 * the forward again. */
static void add_depth(const struct dl_setting *s, const struct dl_layer *layer, bool again, struct dl_layer_needs *n)
{
    if (!s->gathers_weights) return;
    const double bytes = dl_precision_bytes(s->precision);
    *(again ? &n->regathered : &n->kept) += (s->grid[2] - 1) * layer->parameters_inside / s->parts.weights * bytes;
}

/* Of a parameter. The roots of a whole list of tensors are made before anything is divided by them; copies that casts
 * made of parameters are gone by then. */
static double updating_bytes(const struct dl_setting *s)
{
    const bool has_copies = !s->software->copies_persist && dl_is_mixed(s);
    const bool has_roots = s->optimizer_takes_roots && !s->software->fused_optimizer;
    const double bytes = dl_precision_bytes(s->precision), root_bytes = s->software->root_bytes;
    return (!has_roots ? 0 : s->is_pure ? fmin(root_bytes, bytes) : root_bytes) - (has_copies ? bytes : 0);
}

static void add_states(const struct dl_setting *s, const struct dl_layer *layer, uint32_t block,
                       struct dl_layer_needs *n)
{
    const struct share optimizer = share_of(s, layer, s->zero_stage >= 1);
    const struct share gradients = share_of(s, layer, dl_keeps_shards(s));
    const struct share parameters = share_of(s, layer, s->zero_stage >= 3);
    const double bytes = dl_precision_bytes(s->precision), moved = parameters.held * s->offload_parameters * bytes;
    n->parameters = parameters.held * bytes - moved;
    n->gathered = moved;
    n->gradients = gradients.held * dl_gradient_bytes(s);
    n->unreduced = gradients.held < gradients.whole ? gradients.whole * dl_gradient_bytes(s) : 0;
    n->updating = (optimizer.held - optimizer.held * s->offload_optimizer) * updating_bytes(s);
    n->optimizer = optimizer.held * dl_optimizer_state_bytes(s) * (1 - s->offload_optimizer);
    n->on_host = optimizer.held * dl_optimizer_state_bytes(s) * s->offload_optimizer + moved;
    n->kept = dl_copies(s, false) > 1 ? parameters.whole * s->error_bytes_per_parameter : 0;
    n->kept += gradients.whole * s->software->backward_gradient_bytes;
    if (!s->zero_stage && dl_copies(s, false) > 1) n->kept += gradients.whole * s->software->bucket_copy_bytes;
    const double at_once = dl_gathers_modules(s) ? dl_modules_most_live(s, layer, block) : parameters.whole;
    add_gathered(s, &parameters, at_once, n);
}

/* Weights are there while the layer works, and gradients until they have left; all else is outside. */
static void add_streamed(const struct dl_setting *s, const struct dl_layer *layer, struct dl_layer_needs *n)
{
    const double on_rank = share_of(s, layer, false).whole, bytes = dl_precision_bytes(s->precision);
    n->gathered = on_rank * bytes;
    n->unreduced = on_rank * bytes;
}

struct dl_layer_needs dl_layer_needs(const struct dl_setting *s, const struct dl_layer *layer, uint32_t block)
{
    const double saved = dl_saved_bytes(s, layer, block), copied = dl_copied_bytes(s, layer, block);
    const bool again = layer->is_block && dl_recompute_of(s, block) == DL_RECOMPUTE_BLOCKS;
    struct dl_layer_needs n = {.saved = saved - copied,
                               .copied = copied,
                               .recomputed = dl_saved_whole_bytes(s, layer, true) - saved,
                               .begins_group = !again || dl_recompute_keeps_input(s, block),
                               .for_weights = for_weights_bytes(s, layer),
                               .at_work = at_work_bytes(s, layer)};
    if (s->streams_weights)
        add_streamed(s, layer, &n);
    else
        add_states(s, layer, block, &n);
    n.kept += dl_given_bytes(s, layer);
    add_depth(s, layer, again, &n);
    return n;
}
