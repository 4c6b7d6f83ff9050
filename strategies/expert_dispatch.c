/* expert_dispatch.c - tokens of all ranks travel to those that have their experts, and return (GShard, arXiv
 * 2006.16668): once for each expert, or once for each node and rank with any (DeepEP).
 *
 * A rank has experts / ways of them and works on the tokens of all ranks of its group. */
#include <assert.h>

#include "strategies/operators.h"

/* Ranks in lockstep that share the experts too have tokens of their own. */
static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    const struct dl_layout by_experts = {.cut[DL_EXPERT] = DL_ALONG_EXPERTS | o->over};
    const struct dl_layout by_samples = {.cut[DL_SAMPLE] = DL_ALONG_EXPERTS, .cut[DL_TOKEN] = o->over};
    return (struct dl_operator_layouts){
        .weights = by_experts, .inside = by_experts, .outside = by_samples, .used = by_experts, .made = by_experts};
}

/* Fewer experts with more tokens each: as much work as before, on the mean rank. */
static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const bool of_weights = ev->pass == DL_BACKWARD && ev->gradient == DL_GRADIENT_WEIGHT;
    struct dl_event mine = *ev;
    struct dl_kernel *const k = &mine.kernel;
    const struct dl_operator_layouts l = layouts(o);
    dl_kernel_cut(k, &l.outside, &l.inside, &dl_stack_setting(below)->ranks);
    *(k->kind != DL_KERNEL_GEMM ? &k->elements : of_weights ? &k->k : &k->m) *= o->imbalance;
    mine.mean_work = 1 / o->imbalance;
    return dl_emit(below, &mine, err);
}

/* ---- once for each expert ---- */

/* A batch of experts, and tokens whose width is k. A layer to whose experts tokens travel has one (workload.h). */
static const struct dl_kernel *first_product(const struct dl_layer *layer)
{
    const struct dl_work *at = layer->forward, *const end = at + layer->n_forward;
    while (at < end && !(at->kernel.by.batch & DL_BY_EXPERT && at->kernel.kind == DL_KERNEL_GEMM)) at++;
    assert(at < end);
    return &at->kernel;
}

/* All that a trip brings, or is to take, is read and written. */
static enum dl_status pass_over(const struct dl_event *trip, const char *name, const char *operation,
                                struct dl_stack *below, struct dl_error *err)
{
    const double read_and_written = 2;
    struct dl_event pass = *trip;
    pass.kind = DL_EV_COMPUTE;
    pass.cause = DL_CAUSE_COMPUTE;
    pass.bytes = 0;
    pass.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                                     .name = name,
                                     .operation = operation,
                                     .pass = trip->pass == DL_BACKWARD ? DL_PASS_INPUT_GRADIENT : DL_PASS_FORWARD,
                                     .elements = read_and_written * trip->bytes /
                                                 dl_precision_bytes(dl_stack_setting(below)->precision)};
    return dl_emit(below, &pass, err);
}

static const double weight_bytes = 4; /* of a token for one of its experts, in fp32 */

/* Copies come from each rank expert by expert: they are put together by expert, and apart again before they return. */
static enum dl_status sort(const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    return pass_over(trip, "sort", "permute", below, err);
}

static enum dl_status pad(const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    return pass_over(trip, "pad", "copy", below, err);
}

/* Where all experts get as many tokens, their number is a multiple already. */
static bool pads(const struct dl_operator_options *o, const struct dl_setting *s, const struct dl_layer *layer)
{
    const struct dl_operand_rule *const operands = dl_operands_in(s, layer);
    return operands && operands->pads && !o->even;
}

/* What a rank needs to know of all others before it can send, and what it then makes of it. */
static enum dl_status gather_first(const struct dl_event *trip, double bytes, const struct dl_kernel *reads,
                                   struct dl_stack *below, struct dl_error *err)
{
    struct dl_event gather = *trip, places = *trip;
    gather.op = DL_ALLGATHER;
    gather.over = DL_NOT_OVER;
    gather.bytes = bytes;
    places.kind = DL_EV_COMPUTE;
    places.cause = DL_CAUSE_COMPUTE;
    places.bytes = 0;
    places.kernel = *reads;
    return dl_emit(below, &gather, err) || dl_emit(below, &places, err) ? err->status : DL_OK;
}

/* How many tokens each of them has for each expert. */
static enum dl_status count(const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    const double ways = dl_n_expert_ranks(dl_stack_setting(below));
    const double count_bytes = 8, counts = ways * first_product(trip->layer)->batch;
    const struct dl_kernel offsets = {.kind = DL_KERNEL_MEMORY, .name = "count_tokens", .elements = counts};
    return gather_first(trip, count_bytes * counts, &offsets, below, err);
}

/* Each copy has a weight, which goes with it, and the gradient of which returns; in an exchange of its own. */
static enum dl_status send_weights(const struct dl_event *trip, double copies, struct dl_stack *below,
                                   struct dl_error *err)
{
    struct dl_event weights = *trip;
    weights.over = DL_NOT_OVER;
    weights.bytes = weight_bytes * copies;
    return dl_emit(below, &weights, err);
}

static enum dl_status to_experts(const struct dl_operator_options *o, const struct dl_event *tensor,
                                 const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_kernel *const product = first_product(tensor->layer);
    const bool sorts = product->batch > dl_n_expert_ranks(s), goes = tensor->over == DL_TO_EXPERTS;
    const bool by_counts = s->software->drains_at_dispatch, back = tensor->pass == DL_BACKWARD;
    const bool of_dispatch = goes != back; /* that way, or its gradient */
    const bool is_padded = pads(o, s, tensor->layer);
    if (by_counts && of_dispatch && !back && !o->even && count(trip, below, err)) return err->status;
    if (is_padded && !goes && pad(trip, below, err)) return err->status;
    if (sorts && !goes && sort(trip, below, err)) return err->status;
    if (dl_emit(below, trip, err)) return err->status;
    if (by_counts && of_dispatch && send_weights(trip, tensor->elements / product->k / s->parts.outside, below, err))
        return err->status;
    if (sorts && goes && sort(trip, below, err)) return err->status;
    return is_padded && goes ? pad(trip, below, err) : DL_OK;
}

const struct dl_operator dl_operator_to_experts = {
    .name = "to_experts",
    .among = DL_ALONG_EXPERTS,
    .layouts = layouts,
    .kernel = kernel,
    .hand_over = to_experts,
};

/* ---- once for each node ---- */

/* All ranks gather which of their tokens goes to which expert, a byte for each of both, and read it all for the places
 * that tokens get (DeepEP, docs/Hybrid-EP_Implementation.md, 5 and 7.1). */
static enum dl_status gather_map(const struct dl_event *trip, double copies, struct dl_stack *below,
                                 struct dl_error *err)
{
    const struct dl_kernel *const product = first_product(trip->layer);
    const double of_copy = dl_layer_tokens(trip->layer) / (product->k * product->m * product->batch);
    const double bytes = dl_n_expert_ranks(dl_stack_setting(below)) * copies * of_copy * product->batch;
    const struct dl_kernel places = {.kind = DL_KERNEL_MEMORY,
                                     .name = "read_map",
                                     .operation = "reduce",
                                     .elements = bytes / dl_precision_bytes(dl_stack_setting(below)->precision)};
    struct dl_event waited_for = *trip;
    waited_for.async = false;
    return gather_first(&waited_for, bytes, &places, below, err);
}

/* Weights go with tokens to their experts, and their gradients come back with those of the tokens. */
static enum dl_status to_nodes(const struct dl_operator_options *o, const struct dl_event *tensor,
                               const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool goes = tensor->over == DL_TO_EXPERTS, back = tensor->pass == DL_BACKWARD, of_dispatch = goes != back;
    struct dl_event once = *trip;
    (void)o;
    once.once = true;
    if (s->software->dispatches_by_maps && of_dispatch) {
        const struct dl_kernel *const product = first_product(tensor->layer);
        const double token_bytes = product->k * dl_precision_bytes(s->precision);
        once.weights = weight_bytes * product->batch / token_bytes;
        if (!back && gather_map(trip, trip->bytes / token_bytes, below, err)) return err->status;
    }
    return dl_emit(below, &once, err);
}

const struct dl_operator dl_operator_to_nodes = {
    .name = "to_nodes",
    .among = DL_ALONG_EXPERTS,
    .layouts = layouts,
    .kernel = kernel,
    .hand_over = to_nodes,
};
