/* zero_parameters.c - parameters that ZeRO cuts are gathered: before each use, or by those that have updated them. */
#include <math.h>

#include "strategies/zero_parts.h"

/* DeepSpeed, runtime/zero/config.py: stage3_max_live_parameters and stage3_max_reuse_distance; reduce_bucket_size. */
static const double default_parameters = 1e9, default_bucket = 5e8;

bool dl_zero_gathers_modules(const struct dl_zero_options *o, const struct dl_setting *s)
{
    return s->zero_stage == 3 && o->prefetch < 0 && s->software->gathers_modules;
}

uint32_t dl_zero_gathers_ahead(const struct dl_zero_options *o, const struct dl_setting *s)
{
    if (dl_zero_gathers_modules(o, s) || s->streams_weights) return 0;
    return o->prefetch < 0 ? s->software->gathers_ahead : (uint32_t)o->prefetch;
}

double dl_zero_cut_parameters(const struct dl_event *of, const struct dl_setting *s, struct dl_zero_set set)
{
    return dl_zero_shards(s, set) > 1 ? dl_parameters_in(of, s, set.of_experts) : 0;
}

enum dl_status dl_zero_exchange(struct dl_event ev, struct dl_zero_set set, double bytes, struct dl_stack *below,
                                struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    ev.kind = DL_EV_COLLECTIVE;
    ev.cause = DL_CAUSE_DATA;
    ev.members = set.is_near ? dl_secondary_sharers(s, set.of_experts) : dl_sharers(s, set.of_experts);
    ev.bytes = bytes;
    return dl_emit(below, &ev, err);
}

static struct dl_payload gathered_payload(const struct dl_zero_options *o)
{
    if (!o->gather_bits) return (struct dl_payload){.kind = DL_DENSE};
    return (struct dl_payload){.kind = DL_QUANTIZED, .bits = (double)o->gather_bits, .has_kernels = true};
}

/* Stages 1 and 2 gather what was just updated, stage 3 and overlap what a layer needs. */
static enum dl_pass gathering_pass(const struct dl_zero_options *o)
{
    return o->stage == 3 || o->overlap ? DL_PARAMETERS : DL_OPTIMIZER;
}

enum dl_status dl_zero_convert(const struct dl_zero_options *o, const char *name, double parameters,
                               struct dl_stack *below, struct dl_error *err)
{
    const struct dl_payload payload = gathered_payload(o);
    const double plain = parameters * dl_precision_bytes(dl_stack_setting(below)->precision);
    if (!o->gather_bits || parameters <= 0) return DL_OK;
    const double packed = dl_payload_bytes(&payload, parameters * DL_PAYLOAD_VALUE_BYTES, 1);
    return dl_emit_pass(below, name, plain + packed, gathering_pass(o), err);
}

uint32_t dl_zero_n_owners(const struct dl_zero_options *o, const struct dl_event *of, const struct dl_setting *s,
                          bool of_experts)
{
    if (o->stage == 3 || !s->software->deals_tensors) return 0;
    return (uint32_t)fmin(dl_shards(s, of_experts), fmax(of->n_tensors, 1));
}

/* What owners have differs, as tensors do; what goes through the network in all does not. */
static enum dl_status give_out(struct dl_event ev, uint32_t owners, struct dl_zero_set set, double bytes,
                               struct dl_stack *below, struct dl_error *err)
{
    ev.op = DL_BROADCAST;
    ev.async = true;
    for (uint32_t i = 0; i < owners; i++)
        if (dl_zero_exchange(ev, set, bytes / owners, below, err)) return err->status;
    return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .pass = ev.pass, .handle = ev.handle}, err);
}

enum dl_status dl_zero_gather_set(const struct dl_zero_options *o, struct dl_event ev, const struct dl_event *of,
                                  struct dl_zero_set set, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double parameters = dl_zero_cut_parameters(of, s, set);
    const double bytes_each = o->gather_bits ? DL_PAYLOAD_VALUE_BYTES : dl_precision_bytes(s->precision);
    const uint32_t owners = dl_zero_n_owners(o, of, s, set.of_experts), n_shards = dl_zero_shards(s, set);
    if (parameters <= 0) return DL_OK;
    ev.pass = gathering_pass(o);
    ev.op = DL_ALLGATHER;
    ev.parts_host_s = (o->stage == 3 ? 1 : of->n_tensors) * n_shards * s->software->gather_part_host_s;
    ev.payload = gathered_payload(o);
    if (dl_zero_convert(o, "quantize", parameters / n_shards, below, err)) return err->status;
    if (owners) return give_out(ev, owners, set, parameters * bytes_each, below, err);
    return dl_zero_exchange(ev, set, parameters * bytes_each, below, err);
}

/* ---- before their use ---- */

struct dl_event dl_zero_trained_in(const struct dl_layer *layer, double part, const struct dl_setting *s)
{
    return (struct dl_event){.parameters_inside = part * layer->parameters_inside / s->parts.weights,
                             .parameters_outside = part * layer->parameters_outside / s->parts.others,
                             .parameters_expert =
                                 part * layer->expert_parameters / s->parts.weights / dl_expert_parts(s),
                             .n_tensors = part * layer->n_tensors};
}

static struct dl_event frozen_in(const struct dl_module *m, const struct dl_setting *s)
{
    const struct dl_layer *const layer = m->layer;
    return (struct dl_event){.parameters_inside = m->part * layer->frozen_inside / s->parts.weights,
                             .parameters_outside = m->part * layer->frozen_outside / s->parts.others};
}

/* What is gathered at once for a module. */
struct gathered {
    struct dl_event all;
    struct dl_zero_set set;
};
enum { most_gathered = 3 };

/* The second copy is there from the first use of a step on, or if the update does not change it, always (DeepSpeed,
 * runtime/zero/partitioned_param_coordinator.py: those with and without a secondary tensor are gathered apart). */
static uint32_t find_gathered(const struct dl_module *m, const struct dl_setting *s, struct gathered out[most_gathered])
{
    const bool is_second = s->secondary_ways && !m->is_first, are_apart = s->secondary_ways && m->is_first;
    struct dl_event trained = dl_zero_trained_in(m->layer, m->part, s), frozen = frozen_in(m, s);
    if (!are_apart) {
        trained.parameters_inside += frozen.parameters_inside;
        trained.parameters_outside += frozen.parameters_outside;
        frozen = (struct dl_event){0};
    }
    const struct gathered all[most_gathered] = {
        {trained, {false, is_second}}, {trained, {true, is_second}}, {frozen, {false, are_apart}}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < most_gathered; i++)
        if (dl_zero_cut_parameters(&all[i].all, s, all[i].set) > 0) out[n++] = all[i];
    return n;
}

static uint32_t handle_of(const struct dl_module *m) { return m->layer->index * DL_MOST_MODULES + m->index; }

static enum dl_status gather(const struct dl_zero_options *o, const struct dl_module *m, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_event ev = {.async = true, .handle = handle_of(m)};
    struct gathered gathered[most_gathered];
    const uint32_t n = find_gathered(m, dl_stack_setting(below), gathered);
    for (uint32_t i = 0; i < n; i++)
        if (dl_zero_gather_set(o, ev, &gathered[i].all, gathered[i].set, below, err)) return err->status;
    return DL_OK;
}

/* For the last of its gathers: they go one after the other. */
static enum dl_status wait(const struct dl_zero_options *o, const struct dl_module *m, struct dl_stack *below,
                           struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct gathered gathered[most_gathered];
    const uint32_t n = find_gathered(m, s, gathered);
    double parameters = 0;
    for (uint32_t i = 0; i < n; i++) parameters += dl_zero_cut_parameters(&gathered[i].all, s, gathered[i].set);
    if (parameters <= 0) return DL_OK;
    const double moved = parameters * dl_precision_bytes(s->precision) * s->software->gather_moves;
    if (dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .handle = handle_of(m)}, err)) return err->status;
    if (moved > 0 && dl_emit_pass(below, "copy_out", moved, DL_PARAMETERS, err)) return err->status;
    return dl_zero_convert(o, "dequantize", parameters, below, err);
}

/* What a layer has gathered for the first time in a step is copied to where it stays. */
static enum dl_status keep_near(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_event all = dl_zero_trained_in(ev->layer, 1, s);
    const double read_and_written = 2 * dl_precision_bytes(s->precision);
    double kept = 0;
    for (int of_experts = 0; of_experts < 2; of_experts++)
        kept += dl_parameters_in(&all, s, of_experts) / dl_secondary_shards(s, of_experts);
    return dl_emit_pass(below, "copy_out", kept * read_and_written, DL_PARAMETERS, err);
}

static enum dl_status begin_layer(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                                  struct dl_error *err)
{
    const uint32_t ahead = dl_zero_gathers_ahead(o, dl_stack_setting(below));
    for (uint32_t i = ev->first ? 0 : ahead; i <= ahead && i <= ev->n_after; i++) {
        const struct dl_layer *const layer = ev->pass == DL_BACKWARD ? ev->layer - i : ev->layer + i;
        const struct dl_module whole = {.layer = layer, .part = 1, .is_first = ev->first_micro};
        if (gather(o, &whole, below, err)) return err->status;
    }
    return wait(o, &(struct dl_module){.layer = ev->layer, .part = 1, .is_first = ev->first_micro}, below, err);
}

struct dl_module_rules dl_zero_rules(const struct dl_zero_options *o, const struct dl_event *ev,
                                     const struct dl_setting *s)
{
    return (struct dl_module_rules){
        .setting = s,
        .recomputed = ev->recomputed,
        .live_parameters = o->live_parameters > 0 ? o->live_parameters : default_parameters,
        .reuse_parameters = o->reuse_parameters > 0 ? o->reuse_parameters : default_parameters,
        .bucket_parameters = o->bucket_parameters > 0 ? o->bucket_parameters : default_bucket};
}

static enum dl_status begin_use(const struct dl_zero_options *o, struct dl_module_walk *walk,
                                const struct dl_module_rules *rules, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_module_turn turn = dl_modules_use(walk, rules);
    if (turn.now.layer && gather(o, &turn.now, below, err)) return err->status;
    if (turn.wait.layer && wait(o, &turn.wait, below, err)) return err->status;
    return turn.ahead.layer ? gather(o, &turn.ahead, below, err) : DL_OK;
}

/* Before the kernel that needs it, and at the latest when the layer is done. */
static enum dl_status gather_matrices(const struct dl_zero_options *o, const struct dl_event *ev,
                                      struct dl_module_walk *walk, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_module_rules rules = dl_zero_rules(o, ev, dl_stack_setting(below));
    if (ev->kind == DL_EV_LAYER) dl_modules_begin(walk, &rules, ev);
    while (dl_modules_is_use(walk, ev) || (ev->kind == DL_EV_LAYER_DONE && dl_modules_left(walk)))
        if (begin_use(o, walk, &rules, below, err)) return err->status;
    return DL_OK;
}

enum dl_status dl_zero_prepare(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_module_walk *walk,
                               struct dl_stack *below, struct dl_error *err)
{
    const bool is_gathered = (ev->pass == DL_BACKWARD || ev->pass == DL_RECOMPUTE) && !o->reshard;
    if (o->stage < 3 || is_gathered) return DL_OK;
    const bool by_matrix = dl_zero_gathers_modules(o, dl_stack_setting(below));
    if (by_matrix && gather_matrices(o, ev, walk, below, err)) return err->status;
    if (ev->kind == DL_EV_LAYER_DONE && ev->first_micro) return keep_near(ev, below, err);
    return ev->kind == DL_EV_LAYER && !by_matrix ? begin_layer(o, ev, below, err) : DL_OK;
}
