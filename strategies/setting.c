/* setting.c - what follows from a setting: who holds how much of the parameters, how many bytes each has,
 * and how stages send. */
#include <math.h>

#include "strategies/strategy.h"

/* ---- parameters and ranks ---- */

double dl_parameters_in(const struct dl_event *ev, const struct dl_setting *s, bool of_experts)
{
    const bool apart = dl_expert_parts(s) > 1;
    if (of_experts) return apart ? ev->parameters_expert : 0;
    return ev->parameters_inside + ev->parameters_outside + (apart ? 0 : ev->parameters_expert);
}

/* Strides of the axes by their order; the digits of an axis count from its first on. */
static void number_axis(struct dl_setting *s, enum dl_axis axis, uint32_t stride)
{
    const dl_digits along = dl_along_axis(s, axis);
    for (uint32_t i = 0; i < s->ranks.n_digits; i++) {
        if (!(along >> i & 1)) continue;
        s->ranks.digits[i].stride = stride;
        stride *= s->ranks.digits[i].n;
    }
}

/* Returns how many replicas they tell apart. */
static uint32_t add_peers(struct dl_setting *s)
{
    static const char *const names[DL_MOST_PEERS] = {"peer0", "peer1", "peer2", "peer3", "peer4",  "peer5",
                                                     "peer6", "peer7", "peer8", "peer9", "peer10", "peer11"};
    uint32_t n = 1;
    for (uint32_t i = 0; i < s->n_peers; i++) {
        s->ranks.digits[s->ranks.n_digits++] = (struct dl_digit){names[i], s->peers[i], 0};
        n *= s->peers[i];
    }
    return n;
}

static struct dl_tensor_parts parts_of(const struct dl_operator_layouts *l, const struct dl_ranks *ranks)
{
    const dl_dimensions all = ~(dl_dimensions)0;
    return (struct dl_tensor_parts){.weights = dl_layout_parts(&l->weights, all, ranks),
                                    .others = dl_layout_parts(&l->others, all, ranks),
                                    .inside = dl_layout_parts(&l->inside, all, ranks),
                                    .outside = dl_layout_parts(&l->outside, all, ranks),
                                    .heads = dl_layout_parts(&l->inside, DL_BY_INNER, ranks)};
}

/* The inner digits of a tensor rank that have so many values together. */
static dl_digits inner_digits(const struct dl_setting *s, uint32_t n)
{
    dl_digits digits = 0;
    for (uint32_t i = 0, values = 1; i < DL_GRID_DIMENSIONS && values < n; i++) {
        values *= s->grid[i];
        digits |= 1u << (DL_DIGIT_X + i);
    }
    return digits;
}

/* Neighbours need the same head of keys, others divide experts together, and the fewer of both are within the more.
 * Numbers that do not come out are refused by check. */
static void shape_line(struct dl_setting *s)
{
    const uint32_t ways = s->ways[DL_AXIS_TENSOR], copies = s->key_copies ? s->key_copies : 1,
                   experts = s->expert_tensor_ways ? s->expert_tensor_ways : 1;
    uint32_t near = copies < experts ? copies : experts, far = copies < experts ? experts : copies;
    if (far % near || ways % far) near = 1, far = copies;
    if (near == 1) {
        near = far > 1 ? far : ways;
        far = ways;
    }
    s->grid[0] = near;
    s->grid[1] = far / near;
    s->grid[2] = ways / far;
    s->along_copies = inner_digits(s, copies);
    if (s->experts_over & DL_ALONG_TENSOR)
        s->experts_over = (s->experts_over | DL_ALONG_TENSOR) & ~inner_digits(s, experts);
}

void dl_setting_number_ranks(struct dl_setting *s)
{
    struct dl_digit *const digits = s->ranks.digits;
    if (s->is_line) shape_line(s);
    s->ranks = (struct dl_ranks){.n_digits = DL_N_DIGITS,
                                 .digits = {[DL_DIGIT_X] = {"tensor_x", s->grid[0]},
                                            [DL_DIGIT_Y] = {"tensor_y", s->grid[1]},
                                            [DL_DIGIT_Z] = {"tensor_z", s->grid[2]},
                                            [DL_DIGIT_CONTEXT] = {"context", s->ways[DL_AXIS_CONTEXT]},
                                            [DL_DIGIT_EXPERT] = {"expert", s->expert_ways},
                                            [DL_DIGIT_STAGE] = {"stage", dl_n_stages(s)}}};
    for (uint32_t i = 0; i < s->n_brought; i++)
        digits[s->ranks.n_digits++] = (struct dl_digit){s->brought[i]->name, s->ways[DL_N_AXES + i], 0};
    const uint32_t data = dl_n_replicas(s) / add_peers(s), sharing = s->shard_ways ? s->shard_ways : data;
    const uint32_t near = s->secondary_ways ? s->secondary_ways : s->expert_ways;
    digits[DL_DIGIT_SECONDARY] = (struct dl_digit){"secondary", near / s->expert_ways, 0};
    digits[DL_DIGIT_SHARD] = (struct dl_digit){"shard", sharing / near, 0};
    digits[DL_DIGIT_COPY] = (struct dl_digit){"copy", data / sharing, 0};
    for (uint32_t i = 0, stride = 1; i < dl_n_axes(s); i++) {
        number_axis(s, s->order[i], stride);
        stride *= s->ways[s->order[i]];
    }
    s->parts = parts_of(&s->layouts, &s->ranks);
}

struct dl_members dl_holders(const struct dl_setting *s, bool of_experts)
{
    const dl_digits all = DL_ALONG_CONTEXT | dl_along_brought(s) | dl_along_replicas(s);
    return (struct dl_members){.digits = all & ~(of_experts ? dl_along_experts(s) : 0)};
}

struct dl_members dl_sharers(const struct dl_setting *s, bool of_experts)
{
    const dl_digits all = DL_ALONG_CONTEXT | dl_along_brought(s) | DL_ALONG_SHARDS | DL_ALONG_EXPERTS;
    return (struct dl_members){.digits = all & ~(of_experts ? dl_along_experts(s) : 0)};
}

struct dl_members dl_secondary_sharers(const struct dl_setting *s, bool of_experts)
{
    return (struct dl_members){.digits = dl_sharers(s, of_experts).digits & ~(dl_digits)(1 << DL_DIGIT_SHARD)};
}

uint32_t dl_copies(const struct dl_setting *s, bool of_experts)
{
    return dl_ranks_count(&s->ranks, dl_holders(s, of_experts).digits);
}

uint32_t dl_shards(const struct dl_setting *s, bool of_experts)
{
    return dl_ranks_count(&s->ranks, dl_sharers(s, of_experts).digits);
}

uint32_t dl_secondary_shards(const struct dl_setting *s, bool of_experts)
{
    return dl_ranks_count(&s->ranks, dl_secondary_sharers(s, of_experts).digits);
}

struct dl_on_rank dl_on_rank(const struct dl_setting *s, double inside, double outside, double expert)
{
    return (struct dl_on_rank){.common = inside / s->parts.weights + outside / s->parts.others,
                               .of_experts = expert / s->parts.weights / dl_expert_parts(s)};
}

double dl_held(const struct dl_setting *s, struct dl_on_rank of, bool cut)
{
    if (!cut) return of.common + of.of_experts;
    return of.common / dl_shards(s, false) + of.of_experts / dl_shards(s, true);
}

struct dl_on_rank dl_layer_on_rank(const struct dl_setting *s, const struct dl_layer *layer)
{
    return dl_on_rank(s, layer->parameters_inside + layer->frozen_inside,
                      layer->parameters_outside + layer->frozen_outside, layer->expert_parameters);
}

double dl_layer_held(const struct dl_setting *s, const struct dl_layer *layer, bool cut)
{
    return dl_held(s, dl_layer_on_rank(s, layer), cut);
}

struct dl_on_rank dl_layer_trained_on_rank(const struct dl_setting *s, const struct dl_layer *layer)
{
    return dl_on_rank(s, layer->parameters_inside, layer->parameters_outside, layer->expert_parameters);
}

double dl_layer_trained(const struct dl_setting *s, const struct dl_layer *layer)
{
    return dl_held(s, dl_layer_trained_on_rank(s, layer), false);
}

double dl_layer_expert_tensors(const struct dl_layer *layer)
{
    double n = 0;
    for (size_t i = 0; i < layer->n_forward && layer->expert_parameters > 0; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        n += dl_kernel_is_linear(k) && dl_kernel_is_of_experts(k);
    }
    return n;
}

/* ---- sends ---- */

static bool sends_in_batches(const struct dl_setting *s)
{
    return s->software->batches_without_chunks && s->chunks == 1;
}

enum dl_sends dl_sends_of(const struct dl_setting *s)
{
    return sends_in_batches(s) ? DL_SENDS_BATCHED : s->software->sends;
}

bool dl_drains_at_sends(const struct dl_setting *s)
{
    return s->software->drains_at_sends || dl_sends_shapes(s) || sends_in_batches(s);
}

bool dl_sends_parts(const struct dl_setting *s)
{
    return s->software->scatters_sends && s->ways[DL_AXIS_TENSOR] > 1 && s->parts.outside == 1;
}

bool dl_sends_shapes(const struct dl_setting *s) { return s->software->parts_have_shapes && dl_sends_parts(s); }

/* ---- bytes ---- */

bool dl_is_mixed(const struct dl_setting *s) { return dl_precision_is_mixed(s->precision) && !s->is_pure; }

bool dl_is_wide(const struct dl_setting *s) { return dl_precision_bytes(s->precision) == dl_precision_bytes(DL_FP32); }

/* Stage 2 of some software gathers, too, also where its parameters stay (a pipeline). */
static bool sees_no_casts(const struct dl_setting *s)
{
    if (s->is_pure || s->software->casts_model) return true;
    return s->software->casts_gathered && s->zero_asked >= (s->software->gathers_stage_2 ? 2 : 3);
}

struct dl_numbers dl_numbers_of(const struct dl_setting *s, bool in_wide_block)
{
    const enum dl_widths narrow = sees_no_casts(s) ? DL_WIDTHS_PURE : DL_WIDTHS_MIXED;
    return (struct dl_numbers){dl_precision_is_mixed(s->precision) ? narrow : DL_WIDTHS_FP32,
                               in_wide_block ? DL_BF16 : s->precision};
}

const struct dl_operand_rule *dl_operands_in(const struct dl_setting *s, const struct dl_layer *layer)
{
    return layer->is_wide ? NULL : dl_operand_rule_for(&s->software->operands, s->precision);
}

enum dl_accumulates dl_accumulated(const struct dl_setting *s)
{
    const bool is_pipeline = dl_n_stages(s) > 1, is_one_chunk = s->chunks == 1;
    const enum dl_accumulates by_software = s->software->accumulates;
    if (s->zero_stage < 2 || s->sums_when == DL_WHEN_END) return DL_ACCUMULATES_WHOLE;
    if (s->sums_when == DL_WHEN_MICRO) return DL_ACCUMULATES_SHARDS;
    if (by_software == DL_ACCUMULATES_CHUNK && is_one_chunk) return DL_ACCUMULATES_WHOLE; /* no other one comes */
    if (by_software != DL_ACCUMULATES_WHOLE_IN_PIPELINE) return by_software;
    return is_pipeline ? DL_ACCUMULATES_WHOLE : DL_ACCUMULATES_SHARDS;
}

bool dl_keeps_shards(const struct dl_setting *s) { return dl_accumulated(s) != DL_ACCUMULATES_WHOLE; }

/* Norms and routers have no copies, which are few of a block's parameters. */
double dl_weight_copy_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    const struct dl_operand_rule *const rule = dl_operands_in(s, layer);
    const double copies = rule && layer->is_block ? (double)rule->weight_copies : 0;
    return copies * dl_precision_operand_bytes(s->precision);
}

double dl_held_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    return dl_precision_bytes(s->precision) + dl_weight_copy_bytes(s, layer);
}

double dl_frozen_bytes(const struct dl_setting *s, const struct dl_layer *layer)
{
    const bool is_narrow = s->narrow_weights && layer->is_block && !layer->is_wide;
    return is_narrow ? dl_precision_operand_bytes(s->precision) : dl_held_bytes(s, layer);
}

double dl_gradient_bytes(const struct dl_setting *setting)
{
    const double bytes = dl_precision_bytes(setting->precision);
    const struct dl_software *const software = setting->software;
    const bool is_bf16 = setting->precision == DL_BF16;
    const bool has_own = is_bf16 && setting->zero_stage >= 2 && software->bf16_zero_gradient_bytes > 0;
    if (setting->is_pure) return bytes;
    if (has_own) return fmax(software->bf16_zero_gradient_bytes, bytes);
    return fmax(is_bf16 ? software->bf16_gradient_bytes : software->gradient_bytes, bytes);
}

/* Who has parameters in one precision has no copy beside them, and moments in the same. */
static const double master_bytes = 4, copy_bytes = 2;

static double in_one_precision(const struct dl_setting *s, double fp32_bytes)
{
    return fp32_bytes * dl_precision_bytes(s->precision) / dl_precision_bytes(DL_FP32);
}

/* Less than they would have otherwise. */
static double spared_by_narrow_moments(const struct dl_setting *s)
{
    const double fp32 = s->optimizer_state_bytes - master_bytes,
                 usual = dl_is_mixed(s) ? fp32 : in_one_precision(s, fp32);
    return s->narrow_moments ? fmax(usual - fp32 / 2, 0) : 0;
}

double dl_optimizer_state_bytes(const struct dl_setting *s)
{
    const double state = s->optimizer_state_bytes, spared = spared_by_narrow_moments(s);
    return (dl_is_mixed(s) ? state : in_one_precision(s, state - master_bytes)) - spared;
}

double dl_optimizer_moved_bytes(const struct dl_setting *s)
{
    const double masters = s->optimizer_moved_bytes - copy_bytes, spared = 2 * spared_by_narrow_moments(s);
    if (!dl_is_mixed(s)) return in_one_precision(s, masters) - spared;
    return (s->software->copies_persist ? s->optimizer_moved_bytes : masters) - spared;
}
