/* sink_kernels.c - what a kernel takes as the framework does it; priced once, as blocks are alike. */
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "strategies/sink.h"

/* Names are those of the workload, so the same text may stand in two places: then it is priced twice. */
static bool same_kernel(const struct dl_kernel *a, const struct dl_kernel *b)
{
    return a->kind == b->kind && a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->elements == b->elements && a->tokens == b->tokens && a->made.height == b->made.height &&
           a->made.width == b->made.width && a->given.height == b->given.height && a->given.width == b->given.width &&
           a->window == b->window && a->stride == b->stride && a->pad == b->pad && a->unit_s == b->unit_s &&
           a->products_per_element == b->products_per_element && a->table == b->table && a->causal == b->causal &&
           a->drops == b->drops && a->rotates_parts == b->rotates_parts && a->backward == b->backward &&
           a->kv_share == b->kv_share && a->stays_wide == b->stays_wide && a->in_wide_block == b->in_wide_block &&
           a->has_bias == b->has_bias && a->has_places == b->has_places && a->frozen == b->frozen &&
           dl_kernel_is_of_experts(a) == dl_kernel_is_of_experts(b) && a->pass == b->pass && a->name == b->name &&
           a->operation == b->operation;
}

static size_t hash_of(const struct dl_kernel *k)
{
    const double numbers[] = {k->batch, k->m, k->n, k->k, k->elements};
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* the golden ratio's bits: a product spreads low bits to all above */
    uint64_t hash = (uint64_t)k->kind << 4 | (uint64_t)k->pass << 1 | k->backward;
    for (size_t i = 0; i < DL_COUNT(numbers); i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        hash = (hash ^ bits) * odd;
    }
    return dl_mix(hash) % DL_KERNEL_CACHE;
}

/* Where the kernel is, or belongs: one of a few slots from its hash on, the first of them if all are taken. */
static struct dl_priced_kernel *slot_of(struct dl_sink *s, const struct dl_kernel *k)
{
    enum { most_tried = 8 };
    const size_t first = hash_of(k);
    for (size_t i = first; i < first + most_tried; i++) {
        struct dl_priced_kernel *const slot = &s->kernels[i % DL_KERNEL_CACHE];
        if (!slot->known || same_kernel(&slot->kernel, k)) return slot;
    }
    s->kernels[first].known = false;
    return &s->kernels[first];
}

/* Gradients in fp32 are summed by the product itself, unless they are cast after it. */
static bool accumulates(const struct dl_setting *setting, const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_GEMM && k->pass == DL_PASS_WEIGHT_GRADIENT && !(rule && rule->weight_moves > 0) &&
           dl_gradient_bytes(setting) > dl_precision_bytes(setting->precision);
}

/* Those of experts are launched one by one, as they differ in length. */
static bool is_group(const struct dl_kernel *k) { return k->kind == DL_KERNEL_GEMM && dl_kernel_is_of_experts(k); }
static double n_products(const struct dl_kernel *k) { return is_group(k) ? fmax(k->batch, 1) : 1; }

/* For which a kernel copies tokens. */
static double experts_of_rank(const struct dl_setting *setting, const struct dl_kernel *k)
{
    return k->tokens > 0 ? k->batch / dl_n_expert_ranks(setting) : 1;
}

static double launches_of(const struct dl_setting *setting, const struct dl_kernel *k,
                          const struct dl_kernel_rule *rule)
{
    const double calls = rule && rule->is_of_all_experts ? 1 : n_products(k);
    return calls *
           (rule ? dl_kernel_launches(rule, experts_of_rank(setting, k)) : setting->software->launches_per_kernel);
}

/* At the clock of the step; what `times` of it draw is added to what there is. */
static struct dl_price price_at_clock(const struct dl_sink *s, const struct dl_kernel *k, enum dl_precision precision,
                                      double times, struct dl_draw *sum)
{
    struct dl_price price = dl_price(s->request->device, k, precision);
    if (!s->request->device->power) return price;
    const struct dl_draw draw = dl_draw_of(s->request->device, k, precision, &price);
    dl_draw_add(sum, &draw, times);
    if (s->request->device->power->throttles) price.seconds = dl_draw_seconds(&draw, s->clock);
    return price;
}

/* What quantises its operands goes before it. */
static void add_quantising(const struct dl_sink *s, const struct dl_kernel *k, enum dl_precision precision,
                           struct dl_priced_kernel *out)
{
    const struct dl_operand_rule *const rule =
        dl_operand_rule_for(&s->request->job->setting.software->operands, precision);
    if (!rule) return;
    const double n = n_products(k), launches = rule->launches * n;
    struct dl_kernel quantising = dl_kernel_quantising(rule, k);
    if (quantising.elements == 0) return;
    quantising.elements /= n;
    out->price.seconds += fmax(n * price_at_clock(s, &quantising, precision, n, &out->draw).seconds,
                               launches * s->request->device->launch_s);
    out->launches += launches;
}

/* A device without products in fp32 moves its elements all the same. */
static enum dl_precision widen(const struct dl_device *d, enum dl_precision precision, struct dl_kernel *k)
{
    if (dl_device_supports(d, DL_FP32)) return DL_FP32;
    k->elements *= dl_precision_bytes(DL_FP32) / dl_precision_bytes(precision);
    return precision;
}

static double padded(double side, double to) { return ceil(side / to) * to; }

/* Rows that are not aligned are slow in every library: compilers pad them where that is faster. */
static void pad(const struct dl_device *device, enum dl_precision precision, double to, struct dl_kernel *k)
{
    if (k->kind != DL_KERNEL_GEMM || to <= 1) return;
    struct dl_kernel wider = *k;
    wider.m = padded(k->m, to), wider.n = padded(k->n, to), wider.k = padded(k->k, to);
    if (dl_price(device, &wider, precision).seconds < dl_price(device, k, precision).seconds) *k = wider;
}

/* Memory is as fast for a part of the units as for all of them. */
static double units_left(const struct dl_setting *setting, const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_MEMORY ? 1 : 1 - setting->software->communication_fraction;
}

/* What is slower than it could be draws less for longer, unless it is written for other devices. */
static void slow_down(const struct dl_sink *s, const struct dl_kernel *k, enum dl_precision precision,
                      const struct dl_kernel_rule *rule, struct dl_priced_kernel *out)
{
    const struct dl_device *const d = s->request->device;
    const bool is_older = rule && rule->is_older;
    const double rate =
        (rule ? rule->rate : 1) * (is_older ? d->older_kernels_fraction : 1) * units_left(&s->request->job->setting, k);
    out->price.seconds /= rate;
    if (!d->power || out->price.seconds == 0) return;
    if (d->power->throttles)
        dl_draw_slow(&out->draw, 1 / rate, is_older ? d->power->older_power_fraction / d->older_kernels_fraction : 1);
    else
        out->draw = dl_draw_of(d, k, precision, &out->price);
}

/* Of no more use than in windows: its flop are those that are needed. */
static struct dl_kernel without_windows(const struct dl_kernel *k)
{
    struct dl_kernel all = *k;
    all.n = k->m, all.window = 0, all.causal = true;
    return all;
}

/* As the framework does it: more launches, more moved, something beside it. */
static struct dl_priced_kernel price_anew(const struct dl_sink *s, const struct dl_kernel *k)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_kernel_rule *const rule =
        dl_kernel_rule_for(&setting->software->kernels, k, dl_numbers_of(setting, k->in_wide_block));
    const enum dl_precision precision = dl_kernel_precision(s->request->device, k, setting->precision);
    struct dl_kernel kernel =
        rule && k->kind == DL_KERNEL_MEMORY ? dl_kernel_instead(rule, k, experts_of_rank(setting, k)) : *k;
    kernel.accumulates = accumulates(setting, rule, k);
    kernel.by_whole_heads = rule && rule->is_by_whole_heads;
    const bool ignores_windows = rule && rule->ignores_windows && k->kind == DL_KERNEL_ATTENTION && k->window > 0;
    if (ignores_windows) kernel = without_windows(&kernel);
    pad(s->request->device, precision, setting->software->pads_products_to, &kernel);
    struct dl_priced_kernel out = {.kernel = *k,
                                   .launches = launches_of(setting, k, rule),
                                   .bytes = dl_kernel_bytes(&kernel, precision),
                                   .is_part_of_another = rule && rule->moves == 0,
                                   .is_group = is_group(k),
                                   .rule = rule,
                                   .known = true};
    const bool is_wide = rule && rule->is_wide;
    if (rule) kernel.k = dl_kernel_head_size(rule, &kernel);
    const enum dl_precision done_in = is_wide ? widen(s->request->device, precision, &kernel) : precision;
    out.price = price_at_clock(s, &kernel, done_in, 1, &out.draw);
    if (ignores_windows) out.price.flop = dl_kernel_flop(k);
    if (rule || units_left(setting, k) < 1) slow_down(s, &kernel, done_in, rule, &out);
    if (rule) {
        const struct dl_kernel beside = dl_kernel_beside(rule, k), issued = dl_kernel_issued(rule, k);
        if (issued.unit_s > 0) out.price.seconds += price_at_clock(s, &issued, precision, 1, &out.draw).seconds;
        if (beside.elements > 0) out.price.seconds += price_at_clock(s, &beside, precision, 1, &out.draw).seconds;
    }
    out.price.seconds = fmax(out.price.seconds, out.launches * s->request->device->launch_s);
    add_quantising(s, k, precision, &out);
    return out;
}

const struct dl_priced_kernel *dl_sink_price_kernel(struct dl_sink *s, const struct dl_kernel *k)
{
    struct dl_priced_kernel *const priced = slot_of(s, k);
    if (!priced->known) *priced = price_anew(s, k);
    return priced;
}
