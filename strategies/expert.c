/* expert.c - the experts of a layer divided over ranks of the data axis, to which tokens travel and from which they
 * return (GShard, arXiv 2006.16668; Switch Transformers, arXiv 2101.03961).
 *
 * A rank has experts / ways of them and works on the tokens of all ranks of its group. Replicas of a group go in step:
 * where nothing else can be on their links the all-to-alls are timed as work (see sim/plan). */
#include <assert.h>
#include <gsl/gsl_randist.h>
#include <math.h>

#include "sim/core/random.h"
#include "strategies/strategies.h"

enum { as_software = -1 };
struct options {
    int64_t ways, dispatch, seed; /* dispatch: enum dl_dispatch */
    double imbalance, skew;
    bool overlap;
};
static const struct options defaults = {.ways = 1, .dispatch = as_software, .imbalance = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "replicas that share the experts"},
    {"dispatch", DL_CHOICE, offsetof(struct options, dispatch), 0, 0, true, dl_dispatches,
     "tokens are sent once to each expert, or once to each node and rank; as the software does if absent"},
    {"overlap", DL_BOOL, offsetof(struct options, overlap), 0, 0, true, NULL,
     "tokens are sent while the device computes another micro-batch; false if absent"},
    {"imbalance", DL_NUMBER, offsetof(struct options, imbalance), 1, 65536, true, NULL,
     "tokens of the busiest rank over the mean; 1 if absent"},
    {"skew", DL_NUMBER, offsetof(struct options, skew), 0, 100, true, NULL,
     "in place of imbalance: standard deviation over mean of the tokens of these ranks, drawn for every layer; 0 if "
     "absent"},
    {"seed", DL_INT, offsetof(struct options, seed), 0, 1e15, true, NULL, "of skew; 0 if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->expert_ways = (uint32_t)((const struct options *)options)->ways;
    return DL_OK;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    const double experts = what->model->routing.experts;
    if (experts == 0) return dl_fail(err, DL_IMPOSSIBLE, what->where, "%s has no experts", what->model->name);
    if (o->imbalance > (double)o->ways)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "imbalance"),
                       "must be at most ways, %lld, when one rank gets everything; got %g", (long long)o->ways,
                       o->imbalance);
    if (o->overlap && what->setting->micros < 2)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "overlap"),
                       "needs two micro-batches of a replica at least; there is one");
    if (o->skew > 0 && o->imbalance > 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "skew"),
                       "means nothing beside imbalance; say one of them");
    if (o->seed && o->skew == 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "seed"), "means nothing without skew");
    if (dl_check_ways(what, (uint32_t)o->ways, experts, "the experts", err)) return err->status;
    return dl_check_ways(what, (uint32_t)o->ways, what->setting->ways[DL_AXIS_DATA], "the data ways", err);
}

/* Of a layer: the tokens of its busiest rank over the mean, as given or drawn. Tokens of a rank are Gamma-distributed:
 * never negative, and of any deviation. */
static double imbalance_of(const struct options *o, const struct dl_layer *layer)
{
    if (o->skew == 0) return o->imbalance;
    const double variance = o->skew * o->skew;
    gsl_rng *const rng = dl_random_new((uint64_t)o->seed, "experts", layer->index);
    double sum = 0, most = 0;
    for (int64_t i = 0; i < o->ways; i++) {
        const double tokens = gsl_ran_gamma(rng, 1 / variance, variance);
        sum += tokens;
        most = fmax(most, tokens);
    }
    gsl_rng_free(rng);
    return sum > 0 ? most * (double)o->ways / sum : 1;
}

/* Fewer experts with more tokens each: as much work as before, on the mean rank. */
static void share_experts(const struct options *o, struct dl_event *ev)
{
    const double imbalance = imbalance_of(o, ev->layer);
    const bool of_weights = ev->pass == DL_BACKWARD && ev->gradient == DL_GRADIENT_WEIGHT;
    struct dl_kernel *const k = &ev->kernel;
    if (k->kind == DL_KERNEL_GEMM) {
        k->batch /= (double)o->ways;
        *(of_weights ? &k->k : &k->m) *= (double)o->ways * imbalance;
    } else {
        k->elements *= imbalance;
    }
    ev->mean_work = 1 / imbalance;
}

/* A batch of experts, and tokens whose width is k. A layer to whose experts tokens travel has one (workload.h). */
static const struct dl_kernel *first_product(const struct dl_layer *layer)
{
    const struct dl_work *at = layer->forward, *const end = at + layer->n_forward;
    while (at < end && !(at->kernel.among_experts && at->kernel.kind == DL_KERNEL_GEMM)) at++;
    assert(at < end);
    return &at->kernel;
}

/* Copies come from each rank expert by expert: they are put together by expert, and apart again before they return. */
static enum dl_status sort(const struct dl_event *trip, struct dl_stack *below, struct dl_error *err)
{
    const double read_and_written = 2;
    struct dl_event pass = *trip;
    pass.kind = DL_EV_COMPUTE;
    pass.cause = DL_CAUSE_COMPUTE;
    pass.bytes = 0;
    pass.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY,
                                     .name = "sort",
                                     .operation = "permute",
                                     .pass = trip->pass == DL_BACKWARD ? DL_PASS_INPUT_GRADIENT : DL_PASS_FORWARD,
                                     .elements = read_and_written * trip->bytes /
                                                 dl_precision_bytes(dl_stack_setting(below)->precision)};
    return dl_emit(below, &pass, err);
}

/* What a rank needs to know of all others before it can send: how many tokens each of them has for each expert. */
static enum dl_status count(const struct options *o, const struct dl_event *trip, struct dl_stack *below,
                            struct dl_error *err)
{
    const double count_bytes = 8, counts = (double)o->ways * first_product(trip->layer)->batch;
    struct dl_event gather = *trip, offsets = *trip;
    gather.op = DL_ALLGATHER;
    gather.mark = DL_WORK_KERNEL;
    gather.bytes = count_bytes * counts;
    offsets.kind = DL_EV_COMPUTE;
    offsets.cause = DL_CAUSE_COMPUTE;
    offsets.bytes = 0;
    offsets.kernel = (struct dl_kernel){.kind = DL_KERNEL_MEMORY, .name = "count_tokens", .elements = counts};
    return dl_emit(below, &gather, err) || dl_emit(below, &offsets, err) ? err->status : DL_OK;
}

/* Each copy has a weight, which goes with it, and the gradient of which returns; in an exchange of its own. */
static enum dl_status send_weights(const struct dl_event *trip, double copies, struct dl_stack *below,
                                   struct dl_error *err)
{
    const double weight_bytes = 4;
    struct dl_event weights = *trip;
    weights.mark = DL_WORK_KERNEL;
    weights.bytes = weight_bytes * copies;
    return dl_emit(below, &weights, err);
}

/* Tensor ranks have the same data here, unless they divide it. */
static enum dl_status travel(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event trip = *ev;
    trip.kind = DL_EV_COLLECTIVE;
    trip.cause = DL_CAUSE_EXPERT;
    trip.op = DL_ALLTOALL;
    trip.members.digits = DL_ALONG_EXPERTS;
    trip.async = o->overlap;
    trip.once = (o->dispatch == as_software ? s->software->dispatch : o->dispatch) == DL_DISPATCH_TO_NODES;
    trip.bytes = imbalance_of(o, ev->layer) * ev->elements * dl_precision_bytes(s->precision) / s->parts.outside;
    const struct dl_kernel *const product = first_product(ev->layer);
    const bool sorts = !trip.once && product->batch > (double)o->ways;
    const bool by_counts = !trip.once && s->software->drains_at_dispatch, back = ev->pass == DL_BACKWARD;
    const bool to_experts = ev->mark == (back ? DL_WORK_COMBINE : DL_WORK_DISPATCH); /* that way, or its gradient */
    if (by_counts && to_experts && !back && count(o, &trip, below, err)) return err->status;
    if (sorts && ev->mark == DL_WORK_COMBINE && sort(&trip, below, err)) return err->status;
    if (dl_emit(below, &trip, err)) return err->status;
    if (by_counts && to_experts && send_weights(&trip, ev->elements / product->k / s->parts.outside, below, err))
        return err->status;
    return sorts && ev->mark == DL_WORK_DISPATCH ? sort(&trip, below, err) : DL_OK;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways == 1) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_MARK && (ev->mark == DL_WORK_DISPATCH || ev->mark == DL_WORK_COMBINE))
        return travel(o, ev, below, err);
    struct dl_event mine = *ev;
    if (ev->kind == DL_EV_COMPUTE && ev->kernel.among_experts) share_experts(o, &mine);
    mine.parameters_expert /= (double)o->ways;
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_strategy_expert = {
    .name = "expert",
    .doc = "experts divided over `ways` replicas, to which tokens are sent",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
};
