#include "strategies/stack.h"

#include <string.h>

enum dl_status dl_emit(struct dl_stack *below, const struct dl_event *ev, struct dl_error *err)
{
    while (below->strategy && !below->strategy->rewrite) below++;
    if (!below->strategy) return below->sink(below->user, ev, err);
    return below->strategy->rewrite(below->options, ev, below + 1, err);
}

const struct dl_setting *dl_stack_setting(const struct dl_stack *below) { return below->setting; }

void *dl_stack_state(struct dl_stack *below) { return below[-1].state; }

double *dl_stack_note(struct dl_stack *below, const struct dl_layer *layer) { return &below[-1].notes[layer->index]; }

void dl_stack_begin(struct dl_stack *top, const struct dl_stack_use *use)
{
    const size_t notes_bytes = use->n_layers * sizeof *top->notes;
    struct dl_stack *level = top;
    for (; level->strategy; level++) {
        if (level->state) memset(level->state, 0, level->strategy->state_size);
        if (!level->strategy->notes_layers) continue;
        level->notes = dl_arena_alloc(use->arena, notes_bytes);
        memset(level->notes, 0, notes_bytes);
    }
    level->sink = use->sink;
    level->user = use->user;
}

void dl_stack_end(struct dl_stack *top)
{
    struct dl_stack *level = top;
    for (; level->strategy; level++) level->notes = NULL;
    level->sink = NULL;
    level->user = NULL;
}

static struct dl_event event_of(const struct dl_work *work, enum dl_pass pass, const struct dl_layer *layer)
{
    return (struct dl_event){.kind = DL_EV_COMPUTE,
                             .pass = pass,
                             .cause = pass == DL_RECOMPUTE ? DL_CAUSE_RECOMPUTE : DL_CAUSE_COMPUTE,
                             .layer = layer,
                             .kernel = work->kernel,
                             .in_pieces = dl_work_has_pieces(work)};
}

static enum dl_status hand_over(struct dl_stack *below, struct dl_event *ev, enum dl_hand_over over, double elements,
                                struct dl_error *err)
{
    ev->kind = DL_EV_HAND_OVER;
    ev->over = over;
    ev->elements = elements;
    return elements > 0 ? dl_emit(below, ev, err) : DL_OK;
}

/* Of the products of adapters: what the forward makes, and both sides of the gradient of what they are given. */
static enum dl_status hand_over_adapted(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                                        const struct dl_layer *layer, bool is_made, struct dl_error *err)
{
    const struct dl_kernel *const k = &work->kernel;
    if (!k->adapter || k->pass == DL_PASS_WEIGHT_GRADIENT || (!is_made && pass != DL_BACKWARD)) return DL_OK;
    struct dl_event ev = event_of(work, pass, layer);
    return hand_over(below, &ev, is_made ? DL_MADE_BY_ADAPTER : DL_GIVEN_ADAPTER, k->m * (is_made ? k->n : k->k), err);
}

enum dl_status dl_emit_given(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                             const struct dl_layer *layer, struct dl_error *err)
{
    const double for_key_heads = pass == DL_BACKWARD ? work->for_key_heads : 0;
    if (hand_over_adapted(below, work, pass, layer, false, err)) return err->status;
    if (work->to_experts == 0 && work->from_experts == 0 && work->enters == 0 && for_key_heads == 0 &&
        work->row_sums == 0)
        return DL_OK;
    struct dl_event ev = event_of(work, pass, layer);
    if (hand_over(below, &ev, DL_FOR_KEY_HEADS, for_key_heads, err) ||
        hand_over(below, &ev, DL_ROW_SUMS, work->row_sums, err))
        return err->status;
    if (hand_over(below, &ev, DL_TO_EXPERTS, work->to_experts, err) ||
        hand_over(below, &ev, DL_FROM_EXPERTS, work->from_experts, err))
        return err->status;
    return hand_over(below, &ev, DL_INTO_PAIR, work->enters, err);
}

enum dl_status dl_emit_kernel(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                              const struct dl_layer *layer, struct dl_error *err)
{
    struct dl_event ev = event_of(work, pass, layer);
    ev.gradient = work->gradient;
    if (ev.in_pieces) {
        ev.enters = work->enters;
        ev.leaves = work->leaves;
    }
    return dl_emit(below, &ev, err);
}

enum dl_status dl_emit_made(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err)
{
    const double for_key_heads = pass == DL_BACKWARD ? 0 : work->for_key_heads;
    if (hand_over_adapted(below, work, pass, layer, true, err)) return err->status;
    if (work->leaves == 0 && for_key_heads == 0) return DL_OK;
    struct dl_event ev = event_of(work, pass, layer);
    if (hand_over(below, &ev, DL_FOR_KEY_HEADS, for_key_heads, err)) return err->status;
    return hand_over(below, &ev, DL_OUT_OF_PAIR, work->leaves, err);
}

enum dl_status dl_emit_work(struct dl_stack *below, const struct dl_work *work, enum dl_pass pass,
                            const struct dl_layer *layer, struct dl_error *err)
{
    if (dl_emit_given(below, work, pass, layer, err) || dl_emit_kernel(below, work, pass, layer, err))
        return err->status;
    return dl_emit_made(below, work, pass, layer, err);
}

/* With what an adapter makes, or what other tensor ranks do: on a grid all products are sums of panels or ranks. */
static bool is_summed(const struct dl_setting *s, const struct dl_kernel *k)
{
    const enum dl_adapter_target target = k->result == DL_RESULT_FC1          ? DL_TARGET_FC1
                                          : k->result == DL_RESULT_PROJECTION ? DL_TARGET_PROJECTION
                                                                              : DL_TARGET_QKV;
    const bool is_of_ranks = s->ways[DL_AXIS_TENSOR] > 1 && (!s->is_line || k->by.k & DL_BY_INNER);
    return is_of_ranks || s->adapters.targets >> target & 1;
}

/* The product adds its bias itself, so that what is kept without it is made apart, and with it is another kernel's. So
 * it is of queries, keys and values without biases, which are parts of one product, but for first products. */
static bool is_made_apart(const struct dl_setting *s, const struct dl_kernel *k)
{
    const bool is_kept = s->kept_results >> k->result & 1;
    if (k->has_bias) return is_kept && s->kept_before_bias;
    return k->result == DL_RESULT_FC1 || (k->result == DL_RESULT_PROJECTION && is_kept);
}

/* Products in narrow precisions scale what they make: what is kept is then copied, and so it is of sums. */
static bool may_be_kept(const struct dl_setting *s, const struct dl_work *work, const struct dl_layer *layer)
{
    const struct dl_kernel *const k = &work->kernel;
    const bool is_narrow = dl_operands_in(s, layer) && !k->stays_wide;
    if (k->kind != DL_KERNEL_GEMM || is_narrow || !layer->is_block) return false;
    return is_made_apart(s, k) && !is_summed(s, k);
}

enum dl_status dl_emit_kept(struct dl_stack *below, const struct dl_work *work, const struct dl_event *at,
                            struct dl_error *err)
{
    const struct dl_setting *const s = below->setting;
    if (!s->software->keep.repeats_products || at->pass != DL_FORWARD || !may_be_kept(s, work, at->layer)) return DL_OK;
    struct dl_event ev = event_of(work, at->pass, at->layer);
    ev.kernel.name = "kept_product";
    ev.in_pieces = false;
    ev.is_for_kept = true;
    ev.block = at->block;
    ev.n_blocks = at->n_blocks;
    return dl_emit(below, &ev, err);
}

enum dl_status dl_emit_pass(struct dl_stack *below, const char *name, double bytes, enum dl_pass pass,
                            struct dl_error *err)
{
    return dl_emit_pass_of(below, name, bytes, 0, pass, err);
}

enum dl_status dl_emit_pass_of(struct dl_stack *below, const char *name, double bytes, double n_tensors,
                               enum dl_pass pass, struct dl_error *err)
{
    const double elements = bytes / dl_precision_bytes(below->setting->precision);
    const struct dl_event ev = {.kind = DL_EV_COMPUTE,
                                .pass = pass,
                                .cause = DL_CAUSE_DATA,
                                .kernel = {.kind = DL_KERNEL_MEMORY, .name = name, .elements = elements},
                                .n_tensors = n_tensors};
    return dl_emit(below, &ev, err);
}

uint32_t dl_any_place(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting)
{
    (void)options, (void)state, (void)layer, (void)setting;
    return 0;
}

bool dl_stack_place(const struct dl_stack *top, const struct dl_event *layer, uint64_t *out)
{
    *out = 0;
    for (const struct dl_stack *level = top; level->strategy; level++) {
        const struct dl_strategy *const s = level->strategy;
        if (!s->rewrite) continue;
        const uint32_t place = s->place ? s->place(level->options, level->state, layer, level->setting) : DL_OWN_PLACE;
        if (place == DL_OWN_PLACE) return false;
        *out = *out * DL_MOST_PLACES + place;
    }
    return true;
}

const char *dl_stack_on_host(const struct dl_stack *top)
{
    while (top->strategy && !top->strategy->needs_host) top++;
    return top->strategy ? top->where : NULL;
}

bool dl_stack_blocks_launches(const struct dl_stack *top, double *wait_s)
{
    while (top->strategy && !top->strategy->launch_wait_s) top++;
    *wait_s = top->strategy ? top->strategy->launch_wait_s(top->options) : 0;
    return top->strategy;
}

bool dl_stack_replays_launches(const struct dl_stack *top)
{
    while (top->strategy && !top->strategy->replays_launches) top++;
    return top->strategy;
}
