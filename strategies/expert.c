/* expert.c - the experts of a layer divided over ranks of the data axis, to which tokens travel and from which they
 * return (Switch Transformers, arXiv 2101.03961). Ranks in lockstep, which have other tokens of the same samples, may
 * be counted among them (MoE Parallel Folding, arXiv 2504.14960).
 *
 * How they travel is the operator's matter (see operators.h). Replicas of a group go in step: where nothing else can be
 * on their links the all-to-alls are timed as work (see sim/plan). */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "sim/core/random.h"
#include "strategies/operators.h"
#include "strategies/strategies.h"

enum { as_software = -1 };
struct options {
    int64_t ways, dispatch, tensor_ways, seed; /* dispatch: enum dl_dispatch */
    double imbalance, skew;
    bool overlap, over_tensor, over_context, even;
};
static const struct options defaults = {.ways = 1, .dispatch = as_software, .tensor_ways = 1, .imbalance = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "replicas that share the experts"},
    {"dispatch", DL_CHOICE, offsetof(struct options, dispatch), 0, 0, true, dl_dispatches,
     "tokens are sent once to each expert, or once to each node and rank; as the software does if absent"},
    {"overlap", DL_BOOL, offsetof(struct options, overlap), 0, 0, true, NULL,
     "tokens are sent while the device computes another micro-batch in the other direction, as soon as the schedule "
     "has "
     "one; false if absent"},
    {"over_tensor", DL_BOOL, offsetof(struct options, over_tensor), 0, 0, true, NULL,
     "tensor ranks have whole experts each, rather than a part of every one, and are counted in `ways`; needs sequence "
     "parallelism; false if absent"},
    {"tensor_ways", DL_INT, offsetof(struct options, tensor_ways), 1, 65536, true, NULL,
     "of over_tensor: neighbouring tensor ranks that divide each expert, which count in `ways` as one; 1 if absent"},
    {"over_context", DL_BOOL, offsetof(struct options, over_context), 0, 0, true, NULL,
     "context ranks have experts of their own each, rather than all the same, and are counted in `ways`; false if "
     "absent"},
    {"even", DL_BOOL, offsetof(struct options, even), 0, 0, true, NULL,
     "each expert gets as many tokens as any other, more are dropped: nobody counts them, and the host does not wait; "
     "false if absent"},
    {"imbalance", DL_NUMBER, offsetof(struct options, imbalance), 1, 65536, true, NULL,
     "tokens of the busiest rank over the mean; 1 if absent"},
    {"skew", DL_NUMBER, offsetof(struct options, skew), 0, 100, true, NULL,
     "in place of imbalance: standard deviation over mean of the tokens of these ranks, drawn for every layer; 0 if "
     "absent"},
    {"seed", DL_INT, offsetof(struct options, seed), 0, 1e15, true, NULL, "of skew; 0 if absent"},
};

/* Ranks in lockstep that have experts of their own; the setting takes out tensor ranks that divide each. */
static dl_digits over(const struct options *o)
{
    return (o->over_tensor ? DL_ALONG_TENSOR : 0) | (o->over_context ? DL_ALONG_CONTEXT : 0);
}

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->expert_ways = (uint32_t)o->ways;
    setting->experts_over = over(o);
    setting->expert_tensor_ways = (uint32_t)o->tensor_ways;
    return DL_OK;
}

/* Tensor ranks are numbered so that both those that divide an expert and those that need a head of keys are next to
 * each other. */
static enum dl_status check_tensor_ways(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const uint32_t tensor = s->ways[DL_AXIS_TENSOR], ways = (uint32_t)o->tensor_ways, copies = s->key_copies;
    if (ways == 1) return DL_OK;
    if (tensor % ways || ways == tensor)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "tensor_ways"),
                       "must be a part of the tensor ways, %u, got %u", tensor, ways);
    if (copies > 1 && copies % ways && ways % copies)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "tensor_ways"),
                       "must divide the tensor ranks that need the same head of keys, %u, or be a multiple of these; "
                       "got %u",
                       copies, ways);
    return DL_OK;
}

static enum dl_status check_over_tensor(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const uint32_t tensor = s->ways[DL_AXIS_TENSOR];
    if (tensor == 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "over_tensor"), "means nothing without tensor ranks");
    if (dl_layout_parts(&s->layouts.outside, DL_BY_TOKEN, &s->ranks) != tensor)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "over_tensor"),
                       "needs tensor ranks that have tokens of their own: {\"name\": \"tensor\", \"sequence\": true}");
    return check_tensor_ways(o, what, err);
}

/* What ways count, by the axes over which experts are. */
static const struct {
    const char *of, *with, *all;
} over_words[] = {[1] = {"tensor", "over_tensor", "tensor x data ways"},
                  [2] = {"context", "over_context", "context x data ways"},
                  [3] = {"tensor x context", "over_tensor and over_context", "tensor x context x data ways"},
                  [5] = {"tensor / tensor_ways", "over_tensor", "tensor x data ways / tensor_ways"},
                  [7] = {"tensor x context / tensor_ways", "over_tensor and over_context",
                         "tensor x context x data ways / tensor_ways"}};

static enum dl_status check_over(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const uint64_t others = dl_expert_ways_in_lockstep(s);
    const int words = (o->over_tensor ? 1 : 0) + (o->over_context ? 2 : 0) + (o->tensor_ways > 1 ? 4 : 0);
    if (o->over_tensor && check_over_tensor(o, what, err)) return err->status;
    if (o->over_context && s->ways[DL_AXIS_CONTEXT] == 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "over_context"), "means nothing without context ranks");
    if ((uint64_t)o->ways % others)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "ways"),
                       "must be a multiple of the %s ways, %ju, with %s; got %lld", over_words[words].of,
                       (uintmax_t)others, over_words[words].with, (long long)o->ways);
    return dl_check_ways(what, (uint32_t)o->ways, (double)others * dl_n_replicas(s), over_words[words].all, err);
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
    if (o->even && (o->skew > 0 || o->imbalance > 1))
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "even"), "means nothing beside imbalance or skew");
    if (o->tensor_ways > 1 && !o->over_tensor)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "tensor_ways"), "means nothing without over_tensor");
    if (o->skew > 0 && o->imbalance > 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "skew"),
                       "means nothing beside imbalance; say one of them");
    if (o->seed && o->skew == 0)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "seed"), "means nothing without skew");
    if (dl_check_ways(what, (uint32_t)o->ways, experts, "the experts", err)) return err->status;
    if (over(o)) return check_over(o, what, err);
    return dl_check_ways(what, (uint32_t)o->ways, dl_n_replicas(what->setting), "the data ways", err);
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

/* ---- events ---- */

static const struct dl_operator *operator_of(const struct options *o, const struct dl_setting *s)
{
    return dl_operator_of(DL_OF_EXPERTS, o->dispatch == as_software ? (int64_t)s->software->dispatch : o->dispatch);
}

/* The elements are those of one context rank. Tensor ranks have the same data here, unless they divide it. */
static enum dl_status travel(const struct dl_operator *op, const struct dl_operator_options *o,
                             const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_operator_layouts l = op->layouts(o);
    const bool goes = ev->over == DL_TO_EXPERTS;
    /* Beside those of the layouts. */
    const uint32_t parts = s->parts.outside / dl_ranks_count(&s->ranks, o->over & DL_ALONG_TENSOR);
    struct dl_move moves[DL_MOST_MOVES];
    const size_t n = dl_resolve(&s->ranks, goes ? &l.outside : &l.made, goes ? &l.used : &l.outside,
                                dl_expert_parts(s) * ev->elements, moves);
    for (size_t i = 0; i < n; i++) {
        struct dl_event trip = *ev;
        trip.kind = DL_EV_COLLECTIVE;
        trip.cause = DL_CAUSE_EXPERT;
        trip.op = moves[i].op;
        trip.members.digits = moves[i].along;
        trip.async = o->overlap;
        trip.bytes = o->imbalance * moves[i].elements * dl_precision_bytes(s->precision) / parts;
        if (op->hand_over(o, ev, &trip, below, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const bool travels = ev->kind == DL_EV_HAND_OVER && (ev->over == DL_TO_EXPERTS || ev->over == DL_FROM_EXPERTS);
    const bool is_of_experts = ev->kind == DL_EV_COMPUTE && dl_kernel_is_of_experts(&ev->kernel);
    struct dl_event mine = *ev;
    mine.is_even = o->even;
    mine.kernel.has_places |= is_of_experts && o->even;
    if (o->ways == 1) return dl_emit(below, &mine, err);
    if (travels || is_of_experts) {
        const struct dl_operator_options told = {.overlap = o->overlap,
                                                 .even = o->even,
                                                 .imbalance = imbalance_of(o, ev->layer),
                                                 .over = dl_stack_setting(below)->experts_over};
        const struct dl_operator *const op = operator_of(o, dl_stack_setting(below));
        return travels ? travel(op, &told, &mine, below, err) : op->kernel(&told, &mine, below, err);
    }
    mine.parameters_expert /= dl_expert_parts(dl_stack_setting(below)); /* and by tensor, over which others divide it */
    return dl_emit(below, &mine, err);
}

/* With skew each layer with experts has a draw of its own. */
static uint32_t place(const void *options, const void *state, const struct dl_event *layer, const struct dl_setting *s)
{
    (void)state, (void)s;
    return ((const struct options *)options)->skew > 0 && layer->layer->expert_parameters > 0 ? DL_OWN_PLACE : 0;
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
    .place = place,
};
