/* offload.c - what does not fit on the device waits in the memory of its host.
 *
 * optimizer: the host updates that part of the parameters; gradients go there and parameters come back in tiles, while
 * others are at work (ZeRO-Offload, Ren et al., ATC 2021, section 4). parameters: that part comes from the host for
 * each use of a layer (ZeRO-Infinity, arXiv 2104.07857). activations: that part of what blocks save goes to the host
 * after their forward and comes back for their backward. Copies for layers go beside the work of a layer, on streams
 * of their own there and back, and cost what they take longer, unless the software copies activations between its
 * kernels. */
#include <stdio.h>

#include "strategies/layer_memory.h"
#include "strategies/strategies.h"

struct options {
    double optimizer, parameters, activations;
};
static const struct options defaults = {0};
static const struct dl_field fields[] = {
    {"optimizer", DL_NUMBER, offsetof(struct options, optimizer), 0, 1, true, NULL,
     "share of the optimizer states that the host keeps and updates; 0 if absent"},
    {"parameters", DL_NUMBER, offsetof(struct options, parameters), 0, 1, true, NULL,
     "share of the parameters that the host keeps; 0 if absent"},
    {"activations", DL_NUMBER, offsetof(struct options, activations), 0, 1, true, NULL,
     "share of the saved activations of blocks that the host keeps; 0 if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->last_backward_differs |= o->optimizer > 0; /* it completes what the host needs */
    return DL_OK;
}

static bool keeps_copies(const struct dl_setting *s)
{
    const struct dl_operand_rule *const rule =
        s->software ? dl_operand_rule_for(&s->software->operands, s->precision) : NULL;
    return rule && rule->weight_copies > 0;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (what->setting->narrow_weights && o->parameters > 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "parameters"),
                       "must be 0 beside lora's narrow_weights: weights come from the host as wide as activations");
    if (what->setting->secondary_ways && o->parameters > 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "parameters"),
                       "must be 0 beside zero's secondary_ways: the second copy of parameters is on the devices");
    if (keeps_copies(what->setting) && o->parameters > 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "parameters"),
                       "must be 0 in %s with software %s, which keeps narrow copies of weights on the device",
                       dl_precision_name(what->setting->precision), what->setting->software->name);
    if (!what->setting->streams_weights || (o->optimizer == 0 && o->parameters == 0)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, o->optimizer > 0 ? "optimizer" : "parameters"),
                   "must be 0 on devices that stream weights: these are outside already");
}

/* Activations go in the forward and come back in the backward. What goes between kernels is kept wherever the host has
 * room. */
static enum dl_status copy(double bytes, bool to_host, bool async, enum dl_pass pass, struct dl_stack *below,
                           struct dl_error *err)
{
    const struct dl_event ev = {.kind = DL_EV_COPY,
                                .pass = pass,
                                .cause = DL_CAUSE_OFFLOAD,
                                .bytes = bytes,
                                .async = async,
                                .to_host = to_host,
                                .to_new_memory = to_host && !async && pass == DL_FORWARD};
    return bytes > 0 ? dl_emit(below, &ev, err) : DL_OK;
}

/* Of a layer's parameters, those that this rank keeps. */
static double own_parameters(const struct dl_event *ev, const struct dl_setting *s)
{
    return dl_layer_held(s, ev->layer, s->zero_stage >= 3);
}

static enum dl_status copy_for_layer(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                     struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double parameters = own_parameters(ev, s) * o->parameters * dl_precision_bytes(s->precision);
    const double activations = *dl_stack_note(below, ev->layer);
    const bool is_forward = ev->pass == DL_FORWARD, beside_layer = !s->software->offload_blocks;
    const double both_come = is_forward || !beside_layer ? 0 : activations;
    if (copy(parameters + both_come, false, true, ev->pass, below, err)) return err->status;
    return copy(activations - both_come, is_forward, beside_layer, ev->pass, below, err);
}

/* The host that updates gets its part of the sums when a step has all, and nothing goes on before it has it. */
static bool waits_for_sums(const struct options *o, const struct dl_event *ev, const struct dl_setting *s)
{
    return o->optimizer > 0 && s->software->offload_blocks && ev->kind == DL_EV_COLLECTIVE && ev->last_micro;
}

/* What the host has updated and keeps need not come back; what the device has updated and the host keeps must go. */
static enum dl_status update(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double all = ev->parameters_inside + ev->parameters_outside + ev->parameters_expert;
    const double returning = o->optimizer - o->parameters, bytes = all * dl_precision_bytes(s->precision);
    struct dl_event here = *ev, there = *ev;
    double *const parts[] = {&here.parameters_inside, &here.parameters_outside, &here.parameters_expert};
    for (size_t i = 0; i < DL_COUNT(parts); i++) *parts[i] *= 1 - o->optimizer;
    there.kind = DL_EV_HOST_UPDATE;
    there.cause = DL_CAUSE_OFFLOAD;
    there.bytes = returning > 0 ? returning * bytes : 0;
    double *const away[] = {&there.parameters_inside, &there.parameters_outside, &there.parameters_expert};
    for (size_t i = 0; i < DL_COUNT(away); i++) *away[i] *= o->optimizer;
    if ((o->optimizer < 1 && dl_emit(below, &here, err)) || (o->optimizer > 0 && dl_emit(below, &there, err)))
        return err->status;
    return copy(-returning * bytes, true, false, DL_OPTIMIZER, below, err);
}

/* ---- memory ---- */

/* The part of a tensor that the host has in place of the device. */
static double part_away(const struct options *o, const struct dl_event *ev)
{
    switch (ev->tensor) {
    case DL_TENSOR_PARAMETERS:
    case DL_TENSOR_FROZEN: return o->parameters;
    case DL_TENSOR_OPTIMIZER:
    case DL_TENSOR_UPDATING: return o->optimizer;
    case DL_TENSOR_SAVED:
    case DL_TENSOR_SLICED:
    case DL_TENSOR_SCORES: return ev->layer->is_block ? o->activations : 0;
    default: return 0;
    }
}

static struct dl_event scaled(const struct dl_event *ev, double factor)
{
    struct dl_event part = *ev;
    part.bytes *= factor;
    part.inside_bytes *= factor;
    part.outside_bytes *= factor;
    part.parameter_bytes *= factor;
    return part;
}

/* Notes of layers are their activations on the host, or on the way. */
static enum dl_status stage(const struct dl_event *at, enum dl_tensor_kind tensor, struct dl_stack *below,
                            struct dl_error *err)
{
    return dl_emit_alloc(below, tensor, at, *dl_stack_note(below, at->layer), err);
}

static enum dl_status stage_more(const struct dl_event *saved, struct dl_stack *below, struct dl_error *err)
{
    *dl_stack_note(below, saved->layer) += dl_allocated_bytes(saved);
    return stage(saved, DL_TENSOR_STAGED, below, err);
}

static enum dl_status alloc_here_and_there(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                                           struct dl_error *err)
{
    const double away = part_away(o, ev);
    const struct dl_event here = scaled(ev, 1 - away);
    struct dl_event there = scaled(ev, away);
    if (dl_emit(below, &here, err) || away == 0) return err->status;
    if (ev->pass == DL_FORWARD) return stage_more(&there, below, err);
    if (ev->pass != DL_HOLD) return DL_OK;
    there.tensor = ev->tensor == DL_TENSOR_PARAMETERS ? DL_TENSOR_HOST_PARAMETERS
                   : ev->tensor == DL_TENSOR_FROZEN   ? DL_TENSOR_HOST_FROZEN
                                                      : DL_TENSOR_HOST_OPTIMIZER;
    return dl_emit(below, &there, err);
}

/* A layer so many further in the pass, as an event has its own. */
static struct dl_event further(const struct dl_event *ev, int places)
{
    struct dl_event at = *ev;
    const int away = ev->pass == DL_BACKWARD ? -places : places;
    at.layer += away;
    at.block += (uint32_t)away;
    return at;
}

/* Parameters come when those of other ranks would. */
static enum dl_status fetch(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                            struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const uint32_t ahead = ev->gathered_ahead;
    for (uint32_t i = ev->first ? 0 : ahead; o->parameters > 0 && i <= ahead && i <= ev->n_after; i++) {
        const struct dl_event at = further(ev, (int)i);
        const double parameters = dl_layer_held(s, at.layer, s->zero_stage >= 3);
        const double bytes = parameters * o->parameters * dl_precision_bytes(s->precision);
        if (dl_emit_alloc(below, DL_TENSOR_FETCHED, &at, bytes, err)) return err->status;
    }
    return DL_OK;
}

/* What a layer saves goes while the next one works, and comes while the one before it does. */
static enum dl_status enter(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                            struct dl_error *err)
{
    if (fetch(o, ev, below, err) || o->activations == 0) return err->status;
    if (ev->pass == DL_FORWARD) {
        *dl_stack_note(below, ev->layer) = 0;
        return DL_OK;
    }
    if (ev->first && stage(ev, DL_TENSOR_STAGED, below, err)) return err->status;
    const struct dl_event next = further(ev, 1);
    return ev->n_after ? stage(&next, DL_TENSOR_STAGED, below, err) : DL_OK;
}

static enum dl_status leave(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                            struct dl_error *err)
{
    const bool forward = ev->pass == DL_FORWARD;
    const struct dl_event before = further(ev, -1);
    if (o->parameters > 0 && dl_emit_free(below, DL_TENSOR_FETCHED, ev, err)) return err->status;
    if (o->activations == 0) return DL_OK;
    if (forward && stage(ev, DL_TENSOR_HOST_SAVED, below, err)) return err->status;
    if (forward && !ev->first && dl_emit_free(below, DL_TENSOR_STAGED, &before, err)) return err->status;
    if ((!forward || !ev->n_after) && dl_emit_free(below, DL_TENSOR_STAGED, ev, err)) return err->status;
    return forward ? DL_OK : dl_emit_free(below, DL_TENSOR_HOST_SAVED, ev, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (ev->kind == DL_EV_UPDATE) return update(o, ev, below, err);
    if (ev->kind == DL_EV_ALLOC) return alloc_here_and_there(o, ev, below, err);
    if (waits_for_sums(o, ev, dl_stack_setting(below))) {
        struct dl_event waited_for = *ev;
        waited_for.async = false;
        return dl_emit(below, &waited_for, err);
    }
    if (dl_emit(below, ev, err)) return err->status;
    if (ev->kind == DL_EV_LAYER && ev->pass != DL_RECOMPUTE) return enter(o, ev, below, err);
    if (ev->kind != DL_EV_LAYER_DONE || leave(o, ev, below, err)) return err->status;
    return copy_for_layer(o, ev, below, err);
}

static void tell(const void *options, void (*say)(void *user, const char *words), void *user)
{
    const struct options *const o = options;
    const struct {
        const char *what;
        double part;
    } parts[] = {{"optimizer", o->optimizer}, {"parameters", o->parameters}, {"activations", o->activations}};
    for (size_t i = 0; i < DL_COUNT(parts); i++) {
        char words[80];
        snprintf(words, sizeof words, "%.3g %% of %s offloaded", 100 * parts[i].part, parts[i].what);
        if (parts[i].part > 0) say(user, words);
    }
}

static const char *move_more(json_t *entry, const struct dl_setting *s, uint32_t step, struct dl_arena *arena)
{
    static const char *const keys[] = {"optimizer", "activations"};
    (void)s;
    if (json_number_value(json_object_get(entry, keys[step])) == 1) return NULL;
    json_object_set_new(entry, keys[step], json_integer(1));
    return dl_arena_format(arena, "offload of %s", keys[step]);
}

static const struct dl_relief relief = {.rank = 6, .n_steps = 2, .change = move_more};

const struct dl_strategy dl_strategy_offload = {
    .name = "offload",
    .needs_host = true,
    .doc = "optimizer states, parameters and activations kept in the memory of the host",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .notes_layers = true,
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .tell = tell,
    .relief = &relief,
};
