#include "strategies/saved.h"

#include <math.h>

/* Layers count two bytes for an activation. In fp32 that makes masks of dropout too large, as they are not told apart:
 * by 2 of 34 sbh in a block of GPT. */
static const double counted_bytes = 2;

static double width(const struct dl_setting *s) { return dl_precision_bytes(s->precision) / counted_bytes; }

/* What norms are given, beyond the width of other activations. */
static double residual_extra(const struct dl_setting *s, const struct dl_saved *all)
{
    const double more = (dl_is_mixed(s) ? s->software->residual_bytes / counted_bytes : 0) - width(s);
    return fmax(more, 0) * all->norm_bytes;
}

uint32_t dl_expert_copies(const struct dl_setting *s)
{
    return s->is_line ? s->parts.outside / dl_ranks_count(&s->ranks, s->experts_over & DL_ALONG_TENSOR) : 1;
}

static double narrow_width(const struct dl_setting *s)
{
    return dl_precision_operand_bytes(s->precision) / counted_bytes;
}

static bool keeps_narrow(const struct dl_setting *s, const struct dl_layer *layer)
{
    const struct dl_operand_rule *const rule = dl_operands_in(s, layer);
    return rule && rule->saved;
}

/* The other copies of what experts are given: in the layout outside they would be divided. */
static double gathered(const struct dl_setting *s, const struct dl_layer *layer, const struct dl_saved *all)
{
    return (dl_expert_copies(s) - 1) * (keeps_narrow(s, layer) ? narrow_width(s) : width(s)) * all->gathered_bytes;
}

/* The same of what adapters are given, which stays as it is. */
static double adapted(const struct dl_setting *s, const struct dl_saved *all)
{
    return (s->parts.outside - 1) * width(s) * all->adapted_bytes;
}

/* What the narrow operands of products take more, or less, than activations as they are. Scales of fp8 and mxfp8
 * are left out: at most one byte for 32 values. */
static struct dl_saved by_operands(const struct dl_setting *s, const struct dl_layer *layer, const struct dl_saved *all)
{
    const double narrow = narrow_width(s), less = width(s) - narrow;
    if (!keeps_narrow(s, layer)) return (struct dl_saved){0};
    return (struct dl_saved){
        .outside_bytes = narrow * all->copied_outside_bytes - less * all->operands_outside_bytes,
        .inside_bytes = narrow * all->copied_inside_bytes - less * all->operands_inside_bytes,
    };
}

/* What the framework's kernels keep beyond what the model's layers count. */
static void add_by_rules(const struct dl_setting *s, const struct dl_layer *layer, dl_module_set modules,
                         struct dl_saves *out)
{
    const struct dl_kernel_rules *const rules = &s->software->kernels;
    for (size_t i = 0; i < layer->n_forward && rules->any_saves; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        const struct dl_kernel_rule *const rule = dl_kernel_rule_for(rules, k, dl_numbers_of(s, layer->is_wide));
        const bool is_cut = (k->by.batch | k->by.k | k->by.elements) & DL_BY_INNER;
        if (rule && modules >> k->module & 1)
            *(is_cut ? &out->inside_bytes : &out->outside_bytes) += dl_kernel_saves(rule, k);
    }
}

/* Of a block of GPT: sbh (10 + 24/t + 5as/ht) on each of t ranks, or all of it divided by t with sequence parallelism
 * (Korthikanti et al., MLSys 2023, equations 2 and 4); s is the part of the sequence that a rank has. */
static struct dl_saves saves_of(const struct dl_setting *s, const struct dl_layer *layer, const struct dl_saved *all,
                                dl_module_set modules)
{
    const struct dl_saved narrow = by_operands(s, layer, all);
    const double given_up = s->software->weights_in_activation ? all->weighed_bytes : 0;
    const double wide_outside = width(s) * (all->outside_bytes - given_up) + residual_extra(s, all);
    struct dl_saves out = {
        .inside_bytes = width(s) * all->inside_bytes + narrow.inside_bytes,
        .outside_bytes = wide_outside + narrow.outside_bytes + gathered(s, layer, all) + adapted(s, all),
        .scores_bytes = width(s) * all->scores_bytes,
        .input_bytes = width(s) * all->input_bytes,
        .whole_bytes = all->pooled_elements * s->software->pool_index_bytes,
    };
    add_by_rules(s, layer, modules, &out);
    return out;
}

/* What a loss keeps of its logits is in fp32, which layers count as two activations. */
static double logits_extra(const struct dl_setting *s, double logits)
{
    return (1 - width(s)) * dl_precision_bytes(DL_FP32) * logits;
}

struct dl_saves dl_saves_of(const struct dl_setting *s, const struct dl_layer *layer)
{
    struct dl_saves all = saves_of(s, layer, &layer->saved, ~(dl_module_set)0);
    all.inside_bytes += logits_extra(s, layer->logits);
    all.outside_bytes += logits_extra(s, layer->whole_logits);
    return all;
}

struct dl_saves dl_saves_of_modules(const struct dl_setting *s, const struct dl_layer *layer, dl_module_set modules)
{
    struct dl_saved sum = {0};
    for (enum dl_block_module m = 0; m < DL_N_MODULES; m++)
        if (modules >> m & 1) dl_saved_add(&sum, &layer->saved_by[m]);
    return saves_of(s, layer, &sum, modules);
}

double dl_kept_times(const struct dl_setting *s, const struct dl_layer *layer)
{
    return layer->is_block ? s->software->keep.times : 1;
}

bool dl_slices_kept(const struct dl_setting *s, const struct dl_layer *layer)
{
    return layer->is_block && s->software->keep.backward_moves > 0;
}

double dl_input_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    if (layer->index > 0 || !dl_is_mixed(s)) return 0;
    return layer->saved.input_bytes / counted_bytes * dl_precision_bytes(DL_FP32);
}
