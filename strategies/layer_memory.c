#include "strategies/layer_memory.h"

#include <math.h>

#include "strategies/saved.h"

static struct dl_event event_of(enum dl_tensor_kind tensor, const struct dl_event *at)
{
    return (struct dl_event){.kind = DL_EV_ALLOC,
                             .tensor = tensor,
                             .pass = at->pass,
                             .layer = at->layer,
                             .gradient = at->gradient,
                             .first = at->first,
                             .n_after = at->n_after,
                             .block = at->block,
                             .n_blocks = at->n_blocks,
                             .recomputed = at->recomputed,
                             .bucket_bytes = at->bucket_bytes};
}

enum dl_status dl_emit_alloc(struct dl_stack *below, enum dl_tensor_kind tensor, const struct dl_event *at,
                             double bytes, struct dl_error *err)
{
    struct dl_event ev = event_of(tensor, at);
    ev.bytes = bytes;
    return bytes > 0 ? dl_emit(below, &ev, err) : DL_OK;
}

enum dl_status dl_emit_free(struct dl_stack *below, enum dl_tensor_kind tensor, const struct dl_event *at,
                            struct dl_error *err)
{
    struct dl_event ev = event_of(tensor, at);
    ev.kind = DL_EV_FREE;
    return dl_emit(below, &ev, err);
}

double dl_allocated_bytes(const struct dl_event *ev)
{
    const double parameters = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    return ev->bytes + ev->inside_bytes + ev->outside_bytes + parameters * ev->parameter_bytes;
}

/* ---- states ---- */

static enum dl_status alloc_by_parameters(struct dl_stack *top, enum dl_tensor_kind tensor, const struct dl_event *at,
                                          double bytes_each, struct dl_error *err)
{
    struct dl_event ev = event_of(tensor, at);
    ev.parameters_inside = at->layer->parameters_inside;
    ev.parameters_outside = at->layer->parameters_outside;
    ev.parameters_expert = at->layer->expert_parameters;
    ev.parameter_bytes = bytes_each;
    return bytes_each > 0 ? dl_emit(top, &ev, err) : DL_OK;
}

enum dl_status dl_emit_gradients(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    return alloc_by_parameters(top, DL_TENSOR_GRADIENTS, at, dl_gradient_bytes(dl_stack_setting(top)), err);
}

/* What the model is given, if it is no tokens: in fp32, beside the cast of it, until the step ends. */
static enum dl_status hold_input(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    struct dl_event ev = event_of(DL_TENSOR_INPUT, at);
    ev.outside_bytes = dl_input_bytes(dl_stack_setting(top), at->layer);
    return ev.outside_bytes > 0 ? dl_emit(top, &ev, err) : DL_OK;
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

enum dl_status dl_emit_updating(struct dl_stack *top, const struct dl_event *at, bool is_done, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    struct dl_event ev = *at;
    ev.kind = DL_EV_ALLOC;
    ev.tensor = DL_TENSOR_UPDATING;
    ev.parameter_bytes = updating_bytes(s);
    if (ev.parameter_bytes <= 0 || s->streams_weights) return DL_OK;
    return is_done ? dl_emit_free(top, DL_TENSOR_UPDATING, at, err) : dl_emit(top, &ev, err);
}

/* ---- activations ---- */

/* What is saved of a layer, without scores, as often as the software keeps it. */
static struct dl_event kept_of(enum dl_tensor_kind tensor, const struct dl_saves *saves, double times,
                               const struct dl_event *at)
{
    struct dl_event ev = event_of(tensor, at);
    ev.inside_bytes = times * saves->inside_bytes;
    ev.outside_bytes = times * saves->outside_bytes;
    ev.bytes = times * saves->whole_bytes;
    return ev;
}

static enum dl_status save(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_saves saves = dl_saves_of(dl_stack_setting(top), at->layer);
    const double times = dl_kept_times(dl_stack_setting(top), at->layer);
    const struct dl_event all = kept_of(DL_TENSOR_SAVED, &saves, times, at);
    struct dl_event scores = event_of(DL_TENSOR_SCORES, at);
    scores.inside_bytes = times * saves.scores_bytes;
    if (dl_emit(top, &all, err)) return err->status;
    return saves.scores_bytes > 0 ? dl_emit(top, &scores, err) : DL_OK;
}

/* What a block saved, scores and all, as it is copied for its backward. */
static enum dl_status slice(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_saves saves = dl_saves_of(s, at->layer);
    const double times = dl_kept_times(s, at->layer);
    struct dl_event ev = kept_of(DL_TENSOR_SLICED, &saves, times, at);
    ev.inside_bytes += times * saves.scores_bytes;
    return dl_slices_kept(s, at->layer) ? dl_emit(top, &ev, err) : DL_OK;
}

/* The product that makes the logits, in the backward; NULL: the layer has none. */
static const struct dl_kernel *logits_product(const struct dl_layer *layer)
{
    const double logits = layer->logits + layer->whole_logits;
    for (size_t i = 0; i < layer->n_backward && logits > 0; i++) {
        const struct dl_work *const w = &layer->backward[i];
        if (w->gradient == DL_GRADIENT_INPUT && w->kernel.kind == DL_KERNEL_GEMM && w->kernel.m * w->kernel.k == logits)
            return &w->kernel;
    }
    return NULL;
}

/* Where products are padded, that of an odd number of logits is given a padded copy of their gradient, once others of
 * the loss are gone, and one of the weights. With an even number (BERT's 30,522) the gradient is padded as it is made.
 */
static void add_padded(const struct dl_setting *s, const struct dl_layer *layer, double logit_bytes,
                       struct dl_event *ev)
{
    const double to = s->software->pads_products_to, bytes = dl_precision_bytes(s->precision);
    const struct dl_kernel *const k = to > 1 ? logits_product(layer) : NULL;
    if (!k || fmod(k->k, 2) == 0) return;
    const double more = fmax(bytes - logit_bytes, 0);
    ev->outside_bytes += layer->whole_logits * more;
    ev->inside_bytes += layer->logits * more;
    *(layer->logits > 0 ? &ev->parameters_inside : &ev->parameters_outside) = k->n * k->k;
    ev->parameter_bytes = bytes;
}

/* What the loss needs, beyond gradients of the weights behind it that come when all of that is gone. Those of an
 * earlier micro-batch are there before, and shards are made of whole ones. Each rank of a sequence has a part of its
 * loss and all of the gradients. */
static double loss_bytes(const struct dl_setting *s, const struct dl_layer *layer, double logit_bytes)
{
    const bool comes_later =
        !s->software->gradients_persist && !s->streams_weights && s->micros == 1 && !dl_keeps_shards(s);
    const double ranks = s->ways[DL_AXIS_CONTEXT];
    const double gradients = comes_later ? ranks * layer->parameters_inside * dl_gradient_bytes(s) : 0;
    return fmax(layer->logits * logit_bytes - gradients, 0);
}

/* The gradient that passes a layer by on the residual way, and what its loss needs. */
static enum dl_status alloc_passing(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_layer *const layer = at->layer;
    const double each = s->is_pure ? s->software->pure_logit_workspace_bytes : s->software->logit_workspace_bytes;
    struct dl_event ev = event_of(DL_TENSOR_PASSING, at);
    ev.outside_bytes = layer->output_elements * dl_precision_bytes(s->precision) + layer->whole_logits * each;
    ev.inside_bytes = loss_bytes(s, layer, each);
    add_padded(s, layer, each, &ev);
    return dl_emit(top, &ev, err);
}

/* Of a tensor with these dimensions. */
static double *part_of(struct dl_event *ev, dl_dimensions of)
{
    return of & DL_BY_INNER ? &ev->inside_bytes : &ev->outside_bytes;
}

/* m x k and m x n. A convolution's n counts what it makes once for every window, and is taken as large as what it is
 * given. */
static void add_product_gradients(struct dl_event *ev, const struct dl_kernel *k, double bytes)
{
    if (k->kind == DL_KERNEL_ATTENTION) { /* of queries and output; of keys and values */
        *part_of(ev, k->by.batch) += 2 * k->batch * k->k * (k->m + k->n * k->kv_share) * bytes;
        return;
    }
    const double made = k->kind == DL_KERNEL_CONV ? fmin(k->k, k->n) : k->n;
    *part_of(ev, k->by.batch | k->by.k) += k->batch * k->m * k->k * bytes;
    *part_of(ev, k->by.batch | k->by.n) += k->batch * k->m * made * bytes;
}

/* Of kernels that are bound by memory, by the rules of the software alone. */
static double working_bytes(const struct dl_setting *s, const struct dl_layer *layer, const struct dl_kernel *k)
{
    const struct dl_kernel_rules *const rules = &s->software->kernels;
    const struct dl_kernel_rule *const rule =
        rules->any_works ? dl_kernel_rule_for(rules, k, dl_numbers_of(s, layer->is_wide)) : NULL;
    return rule ? rule->working_bytes * k->elements : 0;
}

enum dl_status dl_emit_working(struct dl_stack *top, const struct dl_event *at, const struct dl_work *w, bool is_done,
                               struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_kernel *const k = &w->kernel;
    const bool is_product = k->kind != DL_KERNEL_MEMORY;
    if (at->pass != DL_BACKWARD || w->gradient != DL_GRADIENT_INPUT) return DL_OK;
    const double bytes = is_product ? 0 : working_bytes(s, at->layer, k);
    if (!is_product && bytes == 0) return DL_OK;
    if (is_done) return dl_emit_free(top, DL_TENSOR_WORKING, at, err);
    struct dl_event ev = event_of(DL_TENSOR_WORKING, at);
    if (is_product)
        add_product_gradients(&ev, k, dl_precision_bytes(s->precision));
    else
        *part_of(&ev, k->by.elements) += bytes;
    return dl_emit(top, &ev, err);
}

static void add_operand(struct dl_event *ev, dl_dimensions of, double bytes, double copies_outside)
{
    *part_of(ev, of) += of & DL_BY_INNER ? bytes : copies_outside * bytes;
}

/* Inputs of linear layers and gradients of their outputs: 32 sbh in a block of GPT (Qi et al., Zero Bubble Pipeline
 * Parallelism, ICLR 2024, table 1). */
static struct dl_event operands_of(const struct dl_setting *s, const struct dl_event *at)
{
    const struct dl_operand_rule *const rule = dl_operands_in(s, at->layer);
    const double wide = dl_precision_bytes(s->precision);
    const double narrow = rule && rule->saved ? dl_precision_operand_bytes(s->precision) : wide;
    struct dl_event ev = event_of(DL_TENSOR_OPERANDS, at);
    bool convolves = false;
    for (size_t i = 0; i < at->layer->n_backward; i++) {
        const struct dl_work *const w = &at->layer->backward[i];
        const struct dl_kernel *const k = &w->kernel;
        if (w->gradient != DL_GRADIENT_WEIGHT || k->kind == DL_KERNEL_MEMORY) continue;
        const double bytes = k->stays_wide ? wide : narrow;
        const double copies = dl_kernel_is_of_experts(k) ? dl_expert_copies(s) : 1;
        add_operand(&ev, k->by.n, k->batch * k->n * k->k * bytes, copies);
        if (k->kind == DL_KERNEL_GEMM) add_operand(&ev, k->by.m, k->batch * k->m * k->k * bytes, copies);
        convolves |= k->kind == DL_KERNEL_CONV;
    }
    if (!convolves) return ev;
    const struct dl_saves saves = dl_saves_of(s, at->layer); /* m counts every window */
    ev.inside_bytes += saves.inside_bytes;
    ev.outside_bytes += saves.outside_bytes;
    ev.bytes += saves.whole_bytes;
    return ev;
}

enum dl_status dl_emit_operands(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_event ev = operands_of(dl_stack_setting(top), at);
    struct dl_event later = *at;
    later.gradient = DL_GRADIENT_WEIGHT;
    return dl_emit(top, &ev, err) ? err->status : dl_emit_free(top, DL_TENSOR_OPERANDS, &later, err);
}

/* Of weight gradients of the head that come at the end of a step; those of the micro-batch under way are told by its
 * backward. */
static enum dl_status hold_deferred(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const double n = fmin(s->software->deferred_head_gradients, (double)s->micros - 1);
    if (n <= 0 || at->layer->logits + at->layer->whole_logits == 0) return DL_OK;
    struct dl_event ev = operands_of(s, at);
    ev.tensor = DL_TENSOR_DEFERRED;
    ev.inside_bytes *= n;
    ev.outside_bytes *= n;
    ev.bytes *= n;
    return dl_emit(top, &ev, err);
}

static enum dl_status hold_frozen(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    struct dl_event ev = event_of(DL_TENSOR_FROZEN, at);
    ev.parameters_inside = at->layer->frozen_inside;
    ev.parameters_outside = at->layer->frozen_outside;
    ev.parameter_bytes = dl_frozen_bytes(dl_stack_setting(top), at->layer);
    return ev.parameters_inside + ev.parameters_outside > 0 ? dl_emit(top, &ev, err) : DL_OK;
}

double dl_gradient_copy_bytes(const struct dl_setting *s)
{
    const bool are_others = dl_gradient_bytes(s) > dl_precision_bytes(s->precision);
    return s->streams_weights || !are_others ? 0 : s->software->backward_gradient_bytes;
}

static enum dl_status alloc_gradient_copies(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const double each = dl_gradient_copy_bytes(dl_stack_setting(top));
    return alloc_by_parameters(top, DL_TENSOR_GRADIENT_COPIES, at, each, err);
}

/* What the last backward of the step before has left. */
static enum dl_status hold_gradient_copies(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    return dl_stack_setting(top)->software->backward_gradients_stay ? alloc_gradient_copies(top, at, err) : DL_OK;
}

enum dl_status dl_emit_held(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const struct dl_software *const software = s->software;
    if (hold_input(top, at, err) || hold_deferred(top, at, err) || s->streams_weights) return err->status;
    if (alloc_by_parameters(top, DL_TENSOR_PARAMETERS, at, dl_held_bytes(s, at->layer), err) ||
        hold_frozen(top, at, err) || hold_gradient_copies(top, at, err) ||
        alloc_by_parameters(top, DL_TENSOR_OPTIMIZER, at, dl_optimizer_state_bytes(s), err))
        return err->status;
    return software->gradients_persist ? dl_emit_gradients(top, at, err) : DL_OK;
}

/* ---- from layer to layer ---- */

enum dl_status dl_emit_entered(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(top);
    const bool is_backward = at->pass == DL_BACKWARD;
    struct dl_event of_weights = *at;
    of_weights.gradient = DL_GRADIENT_WEIGHT;
    if (s->streams_weights && alloc_by_parameters(top, DL_TENSOR_STREAMED, at, dl_precision_bytes(s->precision), err))
        return err->status;
    if (!is_backward) return save(top, at, err);
    if (slice(top, at, err) || alloc_passing(top, at, err)) return err->status;
    if (s->streams_weights)
        return alloc_by_parameters(top, DL_TENSOR_UNREDUCED, &of_weights, dl_precision_bytes(s->precision), err);
    return s->software->gradients_persist ? DL_OK : dl_emit_gradients(top, &of_weights, err);
}

enum dl_status dl_emit_left(struct dl_stack *top, const struct dl_event *at, struct dl_error *err)
{
    const bool streams = dl_stack_setting(top)->streams_weights;
    struct dl_event of_weights = *at;
    of_weights.gradient = DL_GRADIENT_WEIGHT;
    if (streams && dl_emit_free(top, DL_TENSOR_STREAMED, at, err)) return err->status;
    if (at->pass != DL_BACKWARD) return DL_OK;
    if (dl_slices_kept(dl_stack_setting(top), at->layer) && dl_emit_free(top, DL_TENSOR_SLICED, at, err))
        return err->status;
    /* For weights the last that a backward does in a layer. */
    if (dl_emit_free(top, DL_TENSOR_PASSING, at, err) || alloc_gradient_copies(top, &of_weights, err) ||
        dl_emit_free(top, DL_TENSOR_SAVED, at, err) ||
        (at->layer->saved.scores_bytes > 0 && dl_emit_free(top, DL_TENSOR_SCORES, at, err)))
        return err->status;
    return streams ? dl_emit_free(top, DL_TENSOR_UNREDUCED, &of_weights, err) : DL_OK;
}
