#include "strategies/sink.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/core/random.h"
#include "sim/cost/taken.h"
#include "sim/program/segments.h"
#include "strategies/layer_memory.h"
#include "strategies/position_records.h"
#include "strategies/recompute.h"

/* Gradients of a layer are complete where its weight gradients are. */
struct dl_template *dl_sink_place(const struct dl_sink *s, const struct dl_event *ev)
{
    const bool of_weights = ev->pass == DL_GRADIENT || (ev->pass == DL_BACKWARD && ev->gradient == DL_GRADIENT_WEIGHT);
    return of_weights && s->weights ? s->weights : s->into;
}

/* Of a linear layer as a module, whose backward makes both gradients in one call; router and logits are none. */
static double call_s(const struct dl_software *software, const struct dl_kernel *k)
{
    const bool is_linear = dl_kernel_is_linear(k) && !k->stays_wide;
    if (!is_linear || k->pass == DL_PASS_WEIGHT_GRADIENT) return 0;
    return dl_kernel_is_of_experts(k) ? software->group_host_s : software->linear_host_s;
}

void dl_sink_blocking_launch(const struct dl_sink *s, struct dl_template *into, struct dl_instruction *what)
{
    if (!s->blocks_launches || what->host_s == 0) return;
    dl_template_add(into, &(struct dl_instruction){.name = "launch", .cause = DL_CAUSE_HOST, .device_s = what->host_s});
    what->host_s = 0;
}

static void add_launched(const struct dl_sink *s, struct dl_template *into, struct dl_instruction what)
{
    dl_sink_blocking_launch(s, into, &what);
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

/* How long the kernel keeps the device busy. What is many launches begins with the first of them. */
static double add_kernel(struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_software *const software = s->request->job->setting.software;
    const struct dl_priced_kernel *const priced = dl_sink_price_kernel(s, &ev->kernel);
    if (priced->is_part_of_another) return 0;
    const double n_tensors = priced->rule && ev->n_tensors > 0 ? ev->n_tensors : 1;
    const double device_s = priced->price.seconds + (priced->rule ? priced->rule->tensor_s * ev->n_tensors : 0);
    const double s_per_launch =
        s->launch_wait_s + (priced->is_group ? software->host_s_per_group_launch : software->host_s_per_launch);
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
                                 .kernel = dl_class_of_kernel(&ev->kernel),
                                 .ground = priced->price.ground};
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        one.counted_flop[count] = dl_counted_flop(&ev->kernel, one.flop, (enum dl_flop_count)count);
    if (priced->rule && priced->rule->drains && !ev->is_replayed) add_drain(dl_sink_place(s, ev));
    for (double part = 0; part < n_parts; part++) add_launched(s, dl_sink_place(s, ev), one);
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

/* Of the group of this rank, its first: on its node, with it. */
static uint32_t count_near(const struct dl_sink *s, dl_digits along, uint32_t first)
{
    const struct dl_ranks *const ranks = &s->request->job->setting.ranks;
    const struct dl_topology *const t = s->request->estimator->topology;
    const uint32_t *const devices = s->request->device_of_rank;
    const uint32_t n = dl_ranks_count(ranks, along), node = dl_topology_node_of(t, devices[first]);
    uint32_t n_near = 0;
    for (uint32_t i = 0; i < n; i++)
        n_near += dl_topology_node_of(t, devices[first + dl_ranks_offset(ranks, along, i)]) == node;
    return n_near;
}

/* Those on the node of the first count in part; the others wait for the group that has the fewest of them. */
static double ranks_to_agree_with(const struct dl_sink *s, const struct dl_members *members)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const double less = 1 - setting->software->collective_near_fraction;
    const dl_digits along = members->digits, beside = dl_ranks_all(&setting->ranks) & ~along;
    const uint32_t n = dl_members_count(&setting->ranks, members), n_groups = dl_ranks_count(&setting->ranks, beside);
    uint32_t fewest = n;
    if (members->is_pair || members->are_drawn || less == 0) return n;
    for (uint32_t i = 0; i < n_groups && fewest > 1; i++) {
        const uint32_t n_near = count_near(s, along, dl_ranks_offset(&setting->ranks, beside, i));
        if (n_near < fewest) fewest = n_near;
    }
    return n - fewest * less;
}

static double agreement_s(const struct dl_sink *s, const struct dl_event *ev)
{
    const double each_s = s->request->job->setting.software->collective_rank_host_s;
    return each_s > 0 ? each_s * ranks_to_agree_with(s, &ev->members) : 0;
}

double dl_sink_launch_s(const struct dl_sink *s, const struct dl_event *ev)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_software *const software = setting->software;
    if (ev->is_replayed) return 0;
    return s->launch_wait_s + software->collective_host_s + agreement_s(s, ev) + ev->parts_host_s;
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
    struct dl_template *const into = dl_sink_place(s, ev);
    add_launched(s, into,
                 (struct dl_instruction){
                     .kind = DL_START, .name = dl_op_name(ev->op), .host_s = dl_sink_launch_s(s, ev), .call = call});
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
    add_wait_for(s, dl_sink_place(s, ev), call);
}

/* Tokens are counted when they are about to travel, or stay, and perhaps when they have come; backward that is known.
 * Where trips go on beside another micro-batch, forward and backward of two are one pass with one wait in each layer.
 * Here they come one after the other, so both have it: else the host would be ahead by a whole backward. A wait has no
 * time of its own that could be shared out between them. */
static void count_tokens(struct dl_sink *s, const struct dl_event *ev, bool drains)
{
    const bool is_new = ev->pass == DL_FORWARD || ev->pass == DL_RECOMPUTE || (ev->async && ev->pass == DL_BACKWARD);
    if (is_new && ev->over == DL_TO_EXPERTS && drains && !ev->is_replayed && !ev->is_even) add_drain(s->into);
}

/* A block of which trips overlap has a part for each trip and for what lies between, with streams and events, whether
 * another is beside it or not; what is repeated for the backward is within one of these. */
static void cut_into_parts(struct dl_sink *s, const struct dl_event *ev)
{
    const double host_s = s->request->job->setting.software->overlap_host_s;
    if (ev->over != DL_TO_EXPERTS || ev->pass == DL_RECOMPUTE || host_s == 0 || ev->is_replayed) return;
    dl_template_add(s->into, &(struct dl_instruction){.name = "parts", .host_s = host_s});
}

static enum dl_status add_collective(struct dl_sink *s, const struct dl_event *asked, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    struct dl_event as_done = *asked;
    const struct dl_event *const ev = &as_done;
    as_done.async &= !setting->software->waits_for_collectives;
    const bool in_lockstep = !(ev->members.digits & ~(dl_in_lockstep(setting) | DL_ALONG_EXPERTS));
    assert(!ev->async || !ev->members.is_pair);
    const struct dl_software *const software = setting->software;
    if (in_lockstep && ev->async) cut_into_parts(s, ev);
    if (ev->members.digits == dl_along_experts(setting)) count_tokens(s, ev, software->drains_at_dispatch);
    if (in_lockstep && ev->async) return dl_sink_beside_layer(s, ev, err);
    if (!in_lockstep) add_exchange(s, ev);
    if (in_lockstep && dl_sink_in_lockstep(s, ev, DL_AT_END, err)) return err->status;
    if (ev->once) count_tokens(s, ev, software->drains_after_dispatch);
    return DL_OK;
}

static enum dl_status add_compute(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    /* Where weight gradients come later nothing goes beside them. */
    const bool is_apart = dl_sink_place(s, ev) != s->into || s->request->job->setting.software->waits_for_collectives;
    const size_t kernel = s->into->n_instructions;
    const double seconds = add_kernel(s, ev);
    if (ev->bytes <= 0) return DL_OK;
    struct dl_event beside = *ev;
    beside.cause = ev->beside;
    beside.gradient = DL_GRADIENT_INPUT;
    return dl_sink_in_lockstep(s, &beside, is_apart || seconds == 0 ? DL_AT_END : kernel, err);
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
                                       .operation = setting->optimizer_operation,
                                       .elements = bytes / dl_precision_bytes(setting->precision)};
    add_kernel(s, &kernel);
}

/* Blocks that are iterations of a loop keep activations in arrays of all of them. */
static enum dl_status copy_kept(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_keep_code *const keep = &setting->software->keep;
    const bool is_saved = ev->tensor == DL_TENSOR_SAVED || ev->tensor == DL_TENSOR_SCORES;
    const double moves = is_saved ? keep->moves : ev->tensor == DL_TENSOR_SLICED ? keep->backward_moves : 0;
    const double elements = moves * dl_allocated_bytes(ev) / dl_precision_bytes(setting->precision);
    struct dl_event copy = {.kind = DL_EV_COMPUTE, .pass = ev->pass, .cause = DL_CAUSE_COMPUTE, .layer = ev->layer};
    copy.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                                     .name = "keep",
                                     .operation = "copy",
                                     .pass = is_saved ? DL_PASS_FORWARD : DL_PASS_INPUT_GRADIENT,
                                     .elements = elements};
    return elements > 0 && ev->layer->is_block ? add_compute(s, &copy, err) : DL_OK;
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
    dl_sink_end_layer(s); /* of a group that is recomputed only the last one is done */
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
        dl_sink_end_layer(s);
        drain_at_recompute(s, ev);
        break;
    case DL_EV_ALLOC: dl_sink_memory(s, ev); return copy_kept(s, ev, err);
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
    dl_free(s->after_layer);
    dl_free(s->note.draws);
    dl_free(s->position.draws);
    dl_free(s->buckets.filling.items);
    dl_free(s->buckets.sent.items);
}
