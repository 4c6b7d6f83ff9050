/* data.c - replicas of the model, each with a part of the batch; gradients are summed over them: all at the end, or
 * while a backward goes on, each as soon as a bucket of them is complete. Servers that add them up are devices of their
 * own, after those that train. Devices that stream weights send gradients out themselves: nothing is left to do where
 * the network sums these on their way. */
#include <math.h>

#include "strategies/choices.h"
#include "strategies/layer_memory.h"
#include "strategies/strategies.h"

static const char *const whens[] = {"end", "micro", NULL}; /* as enum dl_when */

/* The first is the fastest all-reduce, the others are algorithms of that name. NCCL has nothing but rings before its
 * version 2.4; direct_ring is for what is compressed. */
static const char *const exchanges[] = {[DL_SUM_ALLREDUCE] = "allreduce",
                                        [DL_SUM_SERVERS] = "parameter_server",
                                        [DL_SUM_SERVERS_SERIAL] = "parameter_server_serial",
                                        [DL_SUM_RINGS] = "rings",
                                        [DL_SUM_DIRECT_RING] = "direct_ring",
                                        [DL_SUM_DIRECT_RING + 1] = NULL};
enum { most_buckets = 100000 }; /* more would be simulated for hours */

struct options {
    bool overlap;
    double bucket_bytes;             /* 0: absent */
    int64_t when, exchange, servers; /* servers 0: absent */
};
static const struct options defaults = {.when = DL_WHEN_AS_SOFTWARE};
static const struct dl_field fields[] = {
    {"overlap", DL_BOOL, offsetof(struct options, overlap), 0, 0, true, NULL,
     "gradients are summed during the backward; false if absent"},
    {"bucket_bytes", DL_NUMBER, offsetof(struct options, bucket_bytes), 1, 1e18, true, NULL,
     "gradients that are summed together; those of one layer, or all without overlap, if absent"},
    {"when", DL_CHOICE, offsetof(struct options, when), 0, 0, true, whens,
     "summed at the end of the step or in every micro-batch; at the end, with ZeRO 2 and 3 as the software does, if "
     "absent"},
    {"exchange", DL_CHOICE, offsetof(struct options, exchange), 0, 0, true, exchanges,
     "how gradients are summed; allreduce if absent"},
    {"servers", DL_INT, offsetof(struct options, servers), 1, 1024, true, NULL,
     "devices of a parameter server, beside those that train; 1 if absent"},
};

/* Parameters whose gradients are there but not yet on their way, and the tensors that these are. */
struct waiting {
    double parameters, n_tensors;
};

/* Of all replicas, and of experts. Empty after a pass. */
struct state {
    struct waiting waiting[2];
};

static bool has_servers(const struct options *o)
{
    return o->exchange == DL_SUM_SERVERS || o->exchange == DL_SUM_SERVERS_SERIAL;
}

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    (void)entry, (void)err;
    setting->sums_when = (enum dl_when)o->when;
    setting->last_backward_differs |= o->overlap && o->when != DL_WHEN_MICRO;
    setting->exchanges_beside_work |= o->overlap;
    setting->sums_beside_work |= o->overlap;
    setting->bucket_bytes = o->bucket_bytes;
    setting->servers = !has_servers(o) ? 0 : o->servers ? (uint32_t)o->servers : 1;
    return DL_OK;
}

static enum dl_status check_buckets(const struct options *o, const struct dl_check *what, struct dl_error *err)
{
    if (o->bucket_bytes <= 0) return DL_OK;
    const double bytes = dl_model_parameters(what->model) * dl_gradient_bytes(what->setting);
    if (what->setting->zero_stage == 3)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "bucket_bytes"),
                       "zero's stage 3 scatters gradients layer by layer; leave it out or lower the stage");
    if (bytes > o->bucket_bytes * most_buckets)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "bucket_bytes"),
                       "must be at least %.0f, so that %.4g bytes of gradients are at most %d buckets; got %g",
                       ceil(bytes / most_buckets), bytes, most_buckets, o->bucket_bytes);
    return DL_OK;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (o->exchange != DL_SUM_ALLREDUCE && what->setting->zero_stage)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "exchange"),
                       "zero scatters gradients, which %s; must be allreduce with it, got %s",
                       has_servers(o) ? "servers do not" : "is no all-reduce", exchanges[o->exchange]);
    if (o->exchange != DL_SUM_ALLREDUCE && what->setting->sums_on_the_way)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "exchange"),
                       "the network sums gradients on their way out of the devices; leave it out");
    if (o->servers && o->exchange != DL_SUM_SERVERS)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "servers"),
                       "only the exchange parameter_server has them to choose, got %s", exchanges[o->exchange]);
    return check_buckets(o, what, err);
}

/* One after the other with the rest of the work, whose memory it shares. Stage 3 of ZeRO has no buckets. */
static enum dl_status fill_bucket(double bytes, double n_tensors, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double moved = s->zero_stage < 3 ? s->software->bucket_moves * bytes : 0;
    return moved > 0 ? dl_emit_pass_of(below, "bucket", moved, n_tensors, DL_GRADIENT, err) : DL_OK;
}

/* What an event asks for. Where ZeRO keeps shards, gradients are scattered before the end, in stage 3 by zero itself;
 * all that is left to sum is then the shards of several groups of replicas. */
struct due {
    bool scatter, sum;
};

static bool scatters(const struct dl_setting *s) { return s->zero_stage == 2 && dl_keeps_shards(s); }

static struct due due_of(const struct options *o, const struct dl_event *ev, const struct dl_setting *s)
{
    const bool in_every_micro = o->when == DL_WHEN_MICRO, is_last = ev->last_micro;
    return (struct due){.scatter = scatters(s) && (is_last || dl_accumulated(s) == DL_ACCUMULATES_SHARDS),
                        .sum = in_every_micro || (o->overlap && is_last)};
}

static enum dl_status sum(const struct options *o, bool of_experts, struct waiting all, struct due due,
                          struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event exchange = {.kind = DL_EV_COLLECTIVE,
                                .pass = DL_GRADIENT,
                                .cause = DL_CAUSE_DATA,
                                .op = DL_ALLREDUCE,
                                .members = dl_holders(s, of_experts),
                                .bytes = all.parameters * dl_gradient_bytes(s),
                                .algorithm = o->exchange == DL_SUM_ALLREDUCE ? NULL : exchanges[o->exchange],
                                .async = o->overlap,
                                .handle = DL_EVERY_CALL}; /* nobody waits for it alone */
    struct dl_event scatter = exchange;
    scatter.op = DL_REDUCESCATTER;
    if (all.parameters <= 0 || dl_copies(s, of_experts) == 1) return DL_OK;
    if ((due.scatter || !scatters(s)) && fill_bucket(exchange.bytes, all.n_tensors, below, err)) return err->status;
    if (due.scatter && dl_emit(below, &scatter, err)) return err->status;
    return due.sum ? dl_emit(below, &exchange, err) : DL_OK;
}

/* Where nothing overlaps buckets only limit what goes at once. */
static enum dl_status sum_in_parts(const struct options *o, bool of_experts, struct waiting all, struct dl_stack *below,
                                   struct dl_error *err)
{
    const double bytes = all.parameters * dl_gradient_bytes(dl_stack_setting(below));
    const double n = o->bucket_bytes > 0 ? ceil(bytes / o->bucket_bytes) : 1;
    const struct waiting part = {all.parameters / n, all.n_tensors / n};
    for (double i = 0; i < n; i++)
        if (sum(o, of_experts, part, (struct due){.sum = true}, below, err)) return err->status;
    return DL_OK;
}

/* In the set that dl_parameters_in has their parameters in. */
static double tensors_in(const struct dl_setting *s, double all, double of_experts, bool expert_set)
{
    const double apart = dl_expert_parts(s) > 1 ? of_experts : 0;
    return expert_set ? apart : all - apart;
}

/* A bucket is full with the layer that reaches its size (as PyTorch's and Megatron's), or with the last one. Shards are
 * kept to save memory, so gradients go as soon as they can, whether something else is done meanwhile or not. */
static enum dl_status add_layer(const struct options *o, const struct dl_event *ev, bool of_experts,
                                struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct due due = due_of(o, ev, s);
    struct waiting *const waiting = &((struct state *)dl_stack_state(below))->waiting[of_experts];
    waiting->parameters += dl_parameters_in(ev, s, of_experts);
    waiting->n_tensors += tensors_in(s, ev->layer->n_tensors, dl_layer_expert_tensors(ev->layer), of_experts);
    const bool last = !ev->n_after, full = waiting->parameters * dl_gradient_bytes(s) >= o->bucket_bytes;
    const bool goes_at_once = o->overlap || due.scatter;
    if (!(last || (full && goes_at_once))) return DL_OK;
    const struct waiting all = *waiting;
    *waiting = (struct waiting){0};
    if (goes_at_once) return sum(o, of_experts, all, due, below, err);
    return sum_in_parts(o, of_experts, all, below, err);
}

static enum dl_status end_step(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                               struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    if (o->overlap) return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .handle = DL_EVERY_CALL}, err);
    for (int set = 0; set < 2 && o->when != DL_WHEN_MICRO; set++) {
        const struct waiting all = {dl_parameters_in(ev, s, set),
                                    tensors_in(s, ev->n_tensors, ev->n_expert_tensors, set)};
        if (sum_in_parts(o, set, all, below, err)) return err->status;
    }
    return DL_OK;
}

/* Buckets that are no views of the gradients themselves, as wide as a backward makes these. */
static enum dl_status copy_gradients(const struct dl_event *ev, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double made_bytes = dl_gradient_copy_bytes(s);
    struct dl_event copies = *ev;
    copies.tensor = DL_TENSOR_BUCKETS;
    copies.parameter_bytes = made_bytes > 0 ? made_bytes : dl_gradient_bytes(s);
    if (dl_copies(s, true) == 1 && s->software->bucket_copies != DL_BUCKET_COPIES_ALWAYS) copies.parameters_expert = 0;
    return dl_emit(below, &copies, err);
}

/* What else frees gradients does so by the same buckets. */
static enum dl_status pass_on(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    if (ev->kind != DL_EV_LAYER_DONE) return dl_emit(below, ev, err);
    struct dl_event told = *ev;
    told.bucket_bytes = o->bucket_bytes;
    return dl_emit(below, &told, err);
}

static bool has_to_sum(const struct dl_setting *s) { return !s->sums_on_the_way && dl_copies(s, false) > 1; }

/* Once for all parameters that a rank holds. */
static bool has_bucket_copies(const struct dl_event *ev, const struct dl_setting *s)
{
    const enum dl_bucket_copies of = s->software->bucket_copies;
    const bool has = of == DL_BUCKET_COPIES_ALWAYS
                         ? s->zero_stage == 0
                         : of == DL_BUCKET_COPIES_OF_REPLICAS && s->zero_stage < 2 && has_to_sum(s);
    return has && ev->pass == DL_HOLD && ev->tensor == DL_TENSOR_PARAMETERS;
}

/* After this layer. */
static bool sums_layer(const struct options *o, const struct dl_event *layer, const struct dl_setting *s)
{
    const struct due due = due_of(o, layer, s);
    return layer->pass == DL_BACKWARD && has_to_sum(s) && (due.scatter || due.sum);
}

static enum dl_status add_both(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                               struct dl_error *err)
{
    return add_layer(o, ev, false, below, err) ? err->status : add_layer(o, ev, true, below, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    const struct dl_setting *const s = dl_stack_setting(below);
    if (pass_on(o, ev, below, err)) return err->status;
    switch (ev->kind) {
    case DL_EV_ALLOC: return has_bucket_copies(ev, s) ? copy_gradients(ev, below, err) : DL_OK;
    case DL_EV_GRADIENT: return has_to_sum(s) ? end_step(o, ev, below, err) : DL_OK;
    case DL_EV_LAYER_DONE: return sums_layer(o, ev, s) ? add_both(o, ev, below, err) : DL_OK;
    default: return DL_OK;
    }
}

/* Gradients of layers go together, and the last layer ends it. */
static uint32_t place(const void *options, const void *state, const struct dl_event *layer, const struct dl_setting *s)
{
    (void)state;
    return sums_layer(options, layer, s) ? DL_OWN_PLACE : 0;
}

const struct dl_strategy dl_strategy_data = {
    .name = "data",
    .sums_gradients = true,
    .doc = "replicas of the model, as many as the other strategies leave devices for",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .state_size = sizeof(struct state),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .place = place,
};
