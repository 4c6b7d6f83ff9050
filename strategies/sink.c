#include "strategies/sink.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "sim/program/segments.h"
#include "strategies/position_records.h"
#include "strategies/recompute.h"

/* Names are those of the workload, so the same text may stand in two places: then it is priced twice. */
static bool same_kernel(const struct dl_kernel *a, const struct dl_kernel *b)
{
    return a->kind == b->kind && a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->elements == b->elements && a->made.height == b->made.height && a->made.width == b->made.width &&
           a->window == b->window && a->stride == b->stride && a->causal == b->causal && a->drops == b->drops &&
           a->backward == b->backward && a->kv_share == b->kv_share && a->stays_wide == b->stays_wide &&
           a->has_bias == b->has_bias && dl_kernel_is_of_experts(a) == dl_kernel_is_of_experts(b) &&
           a->pass == b->pass && a->name == b->name && a->operation == b->operation;
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

/* Gradients of a layer are complete where its weight gradients are. */
static struct dl_template *place_of(const struct dl_sink *s, const struct dl_event *ev)
{
    const bool of_weights = ev->pass == DL_GRADIENT || (ev->pass == DL_BACKWARD && ev->gradient == DL_GRADIENT_WEIGHT);
    return of_weights && s->weights ? s->weights : s->into;
}

struct dl_template *dl_sink_place(const struct dl_sink *s, const struct dl_event *ev) { return place_of(s, ev); }

/* Gradients in fp32 are summed by the product itself, unless they are cast after it. */
static bool accumulates(const struct dl_setting *setting, const struct dl_kernel_rule *rule, const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_GEMM && k->pass == DL_PASS_WEIGHT_GRADIENT && !(rule && rule->weight_moves > 0) &&
           dl_gradient_bytes(setting) > dl_precision_bytes(setting->precision);
}

/* Those of experts are launched one by one, as they differ in length. */
static bool is_group(const struct dl_kernel *k) { return k->kind == DL_KERNEL_GEMM && dl_kernel_is_of_experts(k); }
static double n_products(const struct dl_kernel *k) { return is_group(k) ? fmax(k->batch, 1) : 1; }

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

/* What is slower than it could be draws less for longer, unless it is written for other devices. */
static void slow_down(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                      const struct dl_kernel_rule *rule, struct dl_priced_kernel *out)
{
    const double rate = rule->rate * (rule->is_older ? d->older_kernels_fraction : 1);
    out->price.seconds /= rate;
    if (!d->power || out->price.seconds == 0) return;
    if (d->power->throttles)
        dl_draw_slow(&out->draw, 1 / rate,
                     rule->is_older ? d->power->older_power_fraction / d->older_kernels_fraction : 1);
    else
        out->draw = dl_draw_of(d, k, precision, &out->price);
}

/* As the framework does it: more launches, more moved, something beside it. */
static struct dl_priced_kernel price_anew(const struct dl_sink *s, const struct dl_kernel *k)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_kernel_rule *const rule =
        dl_kernel_rule_for(&setting->software->kernels, k, dl_numbers_of(setting));
    const enum dl_precision precision = dl_kernel_precision(s->request->device, k, setting->precision);
    struct dl_kernel kernel = rule && k->kind == DL_KERNEL_MEMORY ? dl_kernel_instead(rule, k) : *k;
    kernel.accumulates = accumulates(setting, rule, k);
    pad(s->request->device, precision, setting->software->pads_products_to, &kernel);
    struct dl_priced_kernel out = {.kernel = *k,
                                   .launches =
                                       n_products(k) * (rule ? rule->launches : setting->software->launches_per_kernel),
                                   .bytes = dl_kernel_bytes(&kernel, precision),
                                   .is_part_of_another = rule && rule->moves == 0,
                                   .rule = rule,
                                   .known = true};
    const bool is_wide = rule && rule->is_wide;
    if (rule) kernel.k = dl_kernel_head_size(rule, &kernel);
    const enum dl_precision done_in = is_wide ? widen(s->request->device, precision, &kernel) : precision;
    out.price = price_at_clock(s, &kernel, done_in, 1, &out.draw);
    if (rule) {
        const struct dl_kernel beside = dl_kernel_beside(rule, k), issued = dl_kernel_issued(rule, k);
        slow_down(s->request->device, &kernel, done_in, rule, &out);
        if (issued.unit_s > 0) out.price.seconds += price_at_clock(s, &issued, precision, 1, &out.draw).seconds;
        if (beside.elements > 0) out.price.seconds += price_at_clock(s, &beside, precision, 1, &out.draw).seconds;
    }
    out.price.seconds = fmax(out.price.seconds, out.launches * s->request->device->launch_s);
    add_quantising(s, k, precision, &out);
    return out;
}

/* Of a linear layer as a module, whose backward makes both gradients in one call; router and logits are none. */
static double call_s(const struct dl_software *software, const struct dl_kernel *k)
{
    const bool is_linear = k->kind == DL_KERNEL_GEMM && !k->attention_core && !k->stays_wide;
    return is_linear && k->pass != DL_PASS_WEIGHT_GRADIENT ? software->linear_host_s : 0;
}

/* Where launches block, the device waits for each: the host's time is then a stretch of the device's. */
static bool add_blocking_launch(const struct dl_sink *s, struct dl_template *into, struct dl_instruction *what)
{
    if (!s->blocks_launches || what->host_s == 0) return false;
    dl_template_add(into, &(struct dl_instruction){.name = "launch", .cause = DL_CAUSE_HOST, .device_s = what->host_s});
    what->host_s = 0;
    return true;
}

static void add_launched(const struct dl_sink *s, struct dl_template *into, struct dl_instruction what)
{
    add_blocking_launch(s, into, &what);
    dl_template_add(into, &what);
}

static void count_draw(struct dl_sink *s, enum dl_bound bound, const struct dl_draw *draw)
{
    struct dl_sink_note *const note = &s->note;
    const struct dl_sink_draw one = {bound, *draw};
    if (!s->request->device->power) return; /* nothing is drawn */
    dl_sink_count_draws(s, &one, 1);
    if (!note->is_open) dl_position_note_draw(s, &one);
    if (!note->is_open) return;
    DL_GROW(note->draws, note->n_draws, note->draws_capacity);
    note->draws[note->n_draws++] = one;
}

static void add_drain(struct dl_template *into)
{
    dl_template_add(into, &(struct dl_instruction){.kind = DL_DRAIN, .name = "drain"});
}

/* How long the kernel keeps the device busy. An update that is many launches begins with the first of them. */
static double add_kernel(struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_software *const software = s->request->job->setting.software;
    struct dl_priced_kernel *const priced = slot_of(s, &ev->kernel);
    if (!priced->known) *priced = price_anew(s, &ev->kernel);
    if (priced->is_part_of_another) return 0;
    const double n_tensors = priced->rule && ev->n_tensors > 0 ? ev->n_tensors : 1;
    const double device_s = priced->price.seconds + (priced->rule ? priced->rule->tensor_s * ev->n_tensors : 0);
    const double s_per_launch =
        s->launch_wait_s + (is_group(&ev->kernel) ? software->host_s_per_group_launch : software->host_s_per_launch);
    const double n_launches = priced->launches * n_tensors,
                 launching_s = call_s(software, &ev->kernel) + s_per_launch * n_launches;
    const double n_parts = n_tensors > 1 ? fmax(1, floor(n_launches)) : 1;
    const double flop = priced->price.flop * (ev->mean_work > 0 ? ev->mean_work : 1);
    count_draw(s, dl_bound_of(&ev->kernel), &priced->draw);
    struct dl_instruction one = {.name = ev->kernel.name,
                                 .cause = ev->cause,
                                 .device_s = device_s / n_parts,
                                 .host_s = ev->is_replayed ? 0 : launching_s / n_parts,
                                 .flop = flop / n_parts,
                                 .bytes = priced->bytes / n_parts,
                                 .ground = priced->price.ground};
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        one.counted_flop[count] = dl_counted_flop(&ev->kernel, one.flop, (enum dl_flop_count)count);
    if (priced->rule && priced->rule->drains && !ev->is_replayed) add_drain(place_of(s, ev));
    for (double part = 0; part < n_parts; part++) add_launched(s, place_of(s, ev), one);
    return device_s;
}

void dl_sink_drain(struct dl_sink *s) { add_drain(s->into); }

/* The host waits, and then gets the next micro-batch, as the software says. */
static void get_batch(struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_software *const software = s->request->job->setting.software;
    if (software->batch_host_s == 0 || ev->is_replayed) return;
    if (software->drains_at_batches) add_drain(s->into);
    dl_template_add(s->into, &(struct dl_instruction){.name = "batch", .host_s = software->batch_host_s});
}

static void add_wait_for(const struct dl_sink *s, struct dl_template *into, uint32_t call)
{
    dl_template_add(into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = call});
    if (s->request->job->setting.software->drains_at_waits) add_drain(into);
}

static double launch_s(const struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_software *const software = setting->software;
    if (ev->is_replayed) return 0;
    return s->launch_wait_s + software->collective_host_s +
           software->collective_rank_host_s * dl_members_count(&setting->ranks, &ev->members) + ev->parts_host_s;
}

static void add_exchange(struct dl_sink *s, const struct dl_event *ev)
{
    struct dl_lowered *const out = s->out;
    s->note.is_its_own = true;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] =
        (struct dl_comm){.op = ev->op,
                         .channel = ev->members.is_pair ? DL_CHANNEL_STAGES : DL_CHANNEL_REPLICAS,
                         .algorithm = ev->algorithm,
                         .bytes = ev->bytes,
                         .payload = ev->payload,
                         .members = ev->members,
                         .cause = ev->cause,
                         .every = ev->every,
                         .turn = ev->turn,
                         .handle = ev->handle};
    const uint32_t call = (uint32_t)out->n_calls++;
    struct dl_template *const into = place_of(s, ev);
    add_launched(
        s, into,
        (struct dl_instruction){.kind = DL_START, .name = dl_op_name(ev->op), .host_s = launch_s(s, ev), .call = call});
    if (!ev->async) add_wait_for(s, into, call);
}

/* The latest call with that handle. */
static void add_wait(struct dl_sink *s, const struct dl_event *ev)
{
    uint32_t call = DL_EVERY_CALL;
    s->note.is_its_own = true;
    for (size_t i = s->out->n_calls; ev->handle != DL_EVERY_CALL && i-- > 0 && call == DL_EVERY_CALL;) {
        const struct dl_comm *const comm = &s->out->calls[i];
        if (!dl_comm_may_be_priced(comm) && comm->handle == ev->handle) call = (uint32_t)i;
    }
    add_wait_for(s, place_of(s, ev), call);
}

/* ---- collectives of ranks in lockstep ---- */

/* All that are alike are one call. */
static uint32_t call_of(struct dl_sink *s, struct dl_priced_collective *p)
{
    struct dl_lowered *const out = s->out;
    if (p->call != DL_EVERY_CALL) return p->call;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls] = p->what;
    return p->call = (uint32_t)out->n_calls++;
}

/* Started at an instruction that is there already, before the kernel that it goes on beside, or at the end. */
#define AT_END SIZE_MAX
static enum dl_status add_in_lockstep(struct dl_sink *s, const struct dl_event *ev, size_t from, struct dl_error *err)
{
    struct dl_priced_collective *const p = dl_sink_price(s, ev, err);
    if (!p) return err->status;
    struct dl_template *const into = place_of(s, ev);
    struct dl_instruction start = {
        .kind = DL_START, .name = dl_op_name(ev->op), .host_s = launch_s(s, ev), .call = call_of(s, p)};
    add_blocking_launch(s, into, &start);
    dl_template_insert(into, from == AT_END ? into->n_instructions : from, &start);
    dl_template_add(into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = start.call});
    return DL_OK;
}

/* Those that are under way end one after the other, the last of them last. */
static void end_layer(struct dl_sink *s)
{
    if (!s->n_beside_layer) return;
    dl_template_add(s->into, &(struct dl_instruction){.kind = DL_WAIT, .name = "wait", .call = s->last_beside_layer});
    s->n_beside_layer = 0;
}

/* Launched here. It is another micro-batch's, so that it goes on from the begin of the layer to its end. */
static enum dl_status put_beside_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    struct dl_priced_collective *const p = dl_sink_price(s, ev, err);
    if (!p) return err->status;
    const struct dl_instruction start = {.kind = DL_START, .name = dl_op_name(ev->op), .call = call_of(s, p)};
    dl_template_insert(s->into, s->layer_begins + s->n_beside_layer++, &start);
    s->last_beside_layer = start.call;
    dl_template_add(place_of(s, ev), &(struct dl_instruction){
                                         .name = dl_op_name(ev->op), .cause = ev->cause, .host_s = launch_s(s, ev)});
    return DL_OK;
}

/* What of a trip does not go on beside the work of another micro-batch is waited for; it is launched with the rest. */
static enum dl_status put_partly_beside_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const double hidden = s->request->job->setting.software->dispatch_overlap_fraction;
    if (ev->over == DL_NOT_OVER || hidden == 1) return put_beside_layer(s, ev, err);
    struct dl_event beside = *ev, waited_for = *ev;
    beside.part = hidden, beside.bytes = hidden * ev->bytes;
    waited_for.part = 1 - hidden, waited_for.bytes = (1 - hidden) * ev->bytes;
    waited_for.async = false, waited_for.is_replayed = true;
    if (hidden > 0 && put_beside_layer(s, &beside, err)) return err->status;
    return add_in_lockstep(s, &waited_for, AT_END, err);
}

/* Tokens are counted when they are about to travel, or stay, and perhaps when they have come; backward that is known.
 */
static void count_tokens(struct dl_sink *s, const struct dl_event *ev, bool drains)
{
    const bool is_new = ev->over == DL_TO_EXPERTS && (ev->pass == DL_FORWARD || ev->pass == DL_RECOMPUTE);
    if (is_new && drains && !ev->is_replayed && !ev->is_even) add_drain(s->into);
}

static enum dl_status add_collective(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const bool in_lockstep = !(ev->members.digits & ~(dl_in_lockstep(setting) | DL_ALONG_EXPERTS));
    assert(!ev->async || !ev->members.is_pair);
    const struct dl_software *const software = setting->software;
    if (ev->members.digits == dl_along_experts(setting)) count_tokens(s, ev, software->drains_at_dispatch);
    if (in_lockstep && ev->async) return put_partly_beside_layer(s, ev, err);
    if (!in_lockstep) add_exchange(s, ev);
    if (in_lockstep && add_in_lockstep(s, ev, AT_END, err)) return err->status;
    if (ev->once) count_tokens(s, ev, software->drains_after_dispatch);
    return DL_OK;
}

static enum dl_status add_compute(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const bool is_apart = place_of(s, ev) != s->into; /* where weight gradients come later nothing goes beside them */
    const size_t kernel = s->into->n_instructions;
    const double seconds = add_kernel(s, ev);
    if (ev->bytes <= 0) return DL_OK;
    struct dl_event beside = *ev;
    beside.cause = ev->beside;
    beside.gradient = DL_GRADIENT_INPUT;
    return add_in_lockstep(s, &beside, is_apart || seconds == 0 ? AT_END : kernel, err);
}

static void add_update(struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double bytes =
        (ev->parameters_inside + ev->parameters_outside + ev->parameters_expert) * dl_optimizer_moved_bytes(setting);
    struct dl_event kernel = *ev;
    kernel.cause = DL_CAUSE_OPTIMIZER;
    kernel.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                                       .name = "optimizer",
                                       .operation = setting->optimizer,
                                       .elements = bytes / dl_precision_bytes(setting->precision)};
    add_kernel(s, &kernel);
}

/* Some software waits at both ends of a block that is recomputed. */
static void drain_at_recompute(struct dl_sink *s, const struct dl_event *ev)
{
    const bool whole = ev->layer->is_block && dl_recompute_of(ev->recomputed, ev->block) == DL_RECOMPUTE_BLOCKS;
    if (whole && s->request->job->setting.software->drains_at_recompute && !ev->is_replayed) add_drain(s->into);
}

/* Its graph is one launch. */
static void begin_layer(struct dl_sink *s, const struct dl_event *ev)
{
    const double launch = s->request->job->setting.software->host_s_per_launch;
    end_layer(s); /* of a group that is recomputed only the last one is done */
    drain_at_recompute(s, ev);
    s->layer_begins = s->into->n_instructions;
    if (ev->is_replayed)
        dl_template_add(s->into, &(struct dl_instruction){.name = "graph", .cause = ev->cause, .host_s = launch});
}

enum dl_status dl_sink_take(void *user, const struct dl_event *ev, struct dl_error *err)
{
    struct dl_sink *const s = user;
    switch (ev->kind) {
    case DL_EV_COMPUTE: return add_compute(s, ev, err);
    case DL_EV_COLLECTIVE: return add_collective(s, ev, err);
    case DL_EV_UPDATE: add_update(s, ev); break;
    case DL_EV_WAIT: add_wait(s, ev); break;
    case DL_EV_COPY: return dl_sink_copy(s, ev, err);
    case DL_EV_HOST_UPDATE: return dl_sink_host_update(s, ev, err);
    case DL_EV_BATCH: get_batch(s, ev); break;
    case DL_EV_READ: return dl_sink_read(s, ev, err);
    case DL_EV_LAYER: begin_layer(s, ev); break;
    case DL_EV_HAND_OVER: count_tokens(s, ev, s->request->job->setting.software->drains_at_dispatch); break;
    case DL_EV_LAYER_DONE:
        end_layer(s);
        drain_at_recompute(s, ev);
        break;
    case DL_EV_ALLOC:
    case DL_EV_FREE: dl_sink_memory(s, ev); break;
    case DL_EV_GRADIENT: break; /* nobody had anything to do here */
    }
    return DL_OK;
}

void dl_sink_forget_calls(struct dl_sink *s)
{
    s->out->n_calls = 0;
    for (size_t i = 0; i < s->n_prices; i++) s->prices[i]->call = DL_EVERY_CALL;
}

void dl_sink_release(struct dl_sink *s)
{
    dl_free(s->prices);
    dl_free(s->note.draws);
    dl_free(s->position.draws);
    dl_free(s->buckets.filling.items);
    dl_free(s->buckets.sent.items);
}
