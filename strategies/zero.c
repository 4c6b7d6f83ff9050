/* zero.c - what replicas hold in common is cut over them (ZeRO, SC20).
 *
 * Stages 1 and 2 scatter the sums of gradients, update a part of the parameters each, and gather them: the same bytes
 * as an all-reduce, unless the software gives all sums to all in stage 1. Stage 3 (FSDP) gathers the parameters of a
 * layer before each use, of the next layers while this one computes, and scatters gradients after its backward: half
 * as many bytes again. It has none of that half where the parameters stay gathered between forward and backward. Some
 * software gathers matrix by matrix instead: see zero_modules.h.
 *
 * With several micro-batches stages 2 and 3 either reduce-scatter in each of them and keep shards of gradients, or keep
 * whole gradients, of all or of a chunk, and reduce-scatter in the last: see enum dl_accumulates.
 *
 * Software that cuts between tensors has each rank broadcast those that it has updated, one rank after the other.
 *
 * With shard_ways only neighbours cut among themselves (HSDP; MiCS, VLDB 2022): gradients are scattered inside these
 * shards, and each part is then summed across them.
 *
 * With secondary_ways so many neighbours keep a second copy of the parameters among them, from their first gather in a
 * step, which is among all, to the update; later gathers go among these neighbours (hpZ of ZeRO++, Wang et al., ICLR
 * 2024; DeepSpeed, runtime/zero/partition_parameters.py, ds_secondary_tensor). */
#include <math.h>

#include "strategies/strategies.h"
#include "strategies/zero_memory.h"
#include "strategies/zero_parts.h"

static const struct dl_zero_options defaults = {.stage = 1, .prefetch = -1, .reshard = true};
static const struct dl_field fields[] = {
    {"stage", DL_INT, offsetof(struct dl_zero_options, stage), 1, 3, true, NULL,
     "what is sharded: 1 optimizer states, 2 also gradients, 3 also parameters; 1 if absent"},
    {"prefetch", DL_INT, offsetof(struct dl_zero_options, prefetch), 0, 65536, true, NULL,
     "of stage 3: layers gathered ahead; as the software does if absent"},
    {"live_parameters", DL_NUMBER, offsetof(struct dl_zero_options, live_parameters), 1, 1e18, true, NULL,
     "where matrices are gathered one by one: stop prefetching above this many gathered parameters; 1e9 if absent"},
    {"reuse_parameters", DL_NUMBER, offsetof(struct dl_zero_options, reuse_parameters), 1, 1e18, true, NULL,
     "where matrices are gathered one by one: keep a matrix that is used again within this many parameters; 1e9 if "
     "absent"},
    {"bucket_parameters", DL_NUMBER, offsetof(struct dl_zero_options, bucket_parameters), 1, 1e18, true, NULL,
     "where matrices are gathered one by one: gradients of a block scattered together, unless a matrix has more; 5e8 "
     "if absent"},
    {"reshard", DL_BOOL, offsetof(struct dl_zero_options, reshard), 0, 0, true, NULL,
     "of stage 3: release gathered parameters after the forward; true if absent"},
    {"overlap", DL_BOOL, offsetof(struct dl_zero_options, overlap), 0, 0, true, NULL,
     "of stages 1 and 2: updated parameters are gathered during the first forwards of the next step, and not after the "
     "update; of a pipeline's stages, those of chunks after their first; false if absent"},
    {"shard_ways", DL_INT, offsetof(struct dl_zero_options, shard_ways), 1, 1e9, true, NULL,
     "neighbouring replicas that shard among themselves; all if absent"},
    {"secondary_ways", DL_INT, offsetof(struct dl_zero_options, secondary_ways), 2, 1e9, true, NULL,
     "of stage 3: neighbouring replicas that keep a second copy of the parameters from their first use in a step on, "
     "and gather them among themselves (hpZ of ZeRO++); no such copy if absent"},
    {"gather_bits", DL_INT, offsetof(struct dl_zero_options, gather_bits), 1, 16, true, NULL,
     "bits of a gathered parameter (qwZ of ZeRO++); those of the precision if absent"},
    {"scatter_bits", DL_INT, offsetof(struct dl_zero_options, scatter_bits), 1, 16, true, NULL,
     "with secondary_ways: bits of a gradient, which goes by all-to-alls among these neighbours and then across them "
     "(qgZ of ZeRO++); by a reduce-scatter as it is if absent"},
};

struct state {
    struct dl_module_walk walk;
    double chunk_bytes; /* see dl_zero_alloc */
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct dl_zero_options *const o = options;
    (void)entry, (void)err;
    setting->zero_stage = setting->zero_asked = (uint32_t)o->stage;
    setting->exchanges_beside_work |= o->stage == 3 || o->overlap;
    setting->sums_beside_work |= o->stage == 3;
    setting->shard_ways = (uint32_t)o->shard_ways;
    setting->secondary_ways = (uint32_t)o->secondary_ways;
    setting->packs_gradients = o->scatter_bits > 0;
    setting->first_forward_differs |= o->secondary_ways > 0 || o->overlap;
    return DL_OK;
}

static enum dl_status check_shards(const struct dl_zero_options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    if (!o->shard_ways) return DL_OK;
    if (o->shard_ways % s->expert_ways)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "shard_ways"),
                       "must be a multiple of the expert ways, %u, got %lld", s->expert_ways, (long long)o->shard_ways);
    return dl_check_parts(what, "shard_ways", (uint32_t)o->shard_ways, dl_n_replicas(s), "the data ways", err);
}

static enum dl_status check_secondary(const struct dl_zero_options *o, const struct dl_check *what,
                                      struct dl_error *err)
{
    const struct dl_setting *const s = what->setting;
    const int64_t whole = o->shard_ways ? o->shard_ways : dl_n_replicas(s);
    if (!o->secondary_ways && o->scatter_bits)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "scatter_bits"),
                       "needs secondary_ways: quantised gradients go among these neighbours first");
    if (!o->secondary_ways) return DL_OK;
    if (!o->reshard)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "secondary_ways"),
                       "parameters that stay gathered (reshard false) need no second copy; leave one of both out");
    if (o->secondary_ways % s->expert_ways)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "secondary_ways"),
                       "must be a multiple of the expert ways, %u, got %lld", s->expert_ways,
                       (long long)o->secondary_ways);
    return dl_check_parts(what, "secondary_ways", (uint32_t)o->secondary_ways, (double)whole,
                          o->shard_ways ? "shard_ways" : "the data ways", err);
}

/* Limits on matrices mean nothing where layers are gathered. */
static enum dl_status check_modules(const struct dl_zero_options *o, const struct dl_check *what, struct dl_error *err)
{
    const char *const limit = o->live_parameters > 0     ? "live_parameters"
                              : o->reuse_parameters > 0  ? "reuse_parameters"
                              : o->bucket_parameters > 0 ? "bucket_parameters"
                                                         : NULL;
    const bool is_known = what->setting->software; /* not where a strategy is only read */
    if (!limit || !is_known || dl_zero_gathers_modules(o, what->setting)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, limit),
                   "needs stage 3, no prefetch, and software with gathers_modules; leave it out");
}

static bool gathers_before_use(int64_t stage, const struct dl_software *software)
{
    return stage == 3 || (stage == 2 && software && software->gathers_stage_2);
}

/* Broadcasts of whole tensors are waited for one by one; stage 3 gathers before each use anyway. */
static enum dl_status check_overlap(const struct dl_zero_options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_software *const software = what->setting->software;
    const char *const where = dl_check_place(what, "overlap");
    if (!o->overlap) return DL_OK;
    if (gathers_before_use(o->stage, software))
        return dl_fail(err, DL_IMPOSSIBLE, where, "stage %lld gathers before each use; leave it out",
                       (long long)o->stage);
    if (!software || !software->deals_tensors) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, where, "the software %s broadcasts whole tensors after the update; leave it out",
                   software->name);
}

/* DeepSpeed's pipeline refuses more than stage 1: its micro-batches would exchange gradients every time. */
static enum dl_status check_pipeline(const struct dl_zero_options *o, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_software *const software = what->setting->software;
    if (!software || dl_n_stages(what->setting) == 1 || o->stage <= software->zero_in_pipeline) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "stage"),
                   "must be at most %u beside a pipeline with the software %s, got %lld", software->zero_in_pipeline,
                   software->name, (long long)o->stage);
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct dl_zero_options *const o = options;
    if (what->setting->streams_weights)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "the devices stream weights and keep no states that could be cut; leave zero out");
    if (check_modules(o, what, err) || check_pipeline(o, what, err) || check_overlap(o, what, err)) return err->status;
    const char *const only_3 = o->prefetch >= 0    ? "prefetch"
                               : !o->reshard       ? "reshard"
                               : o->secondary_ways ? "secondary_ways"
                                                   : NULL;
    if (o->stage < 3 && only_3)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, only_3),
                       "stage %lld gathers nothing before its use; leave it out or set stage to 3",
                       (long long)o->stage);
    if (!o->reshard && dl_n_stages(what->setting) > 1)
        return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "reshard"),
                       "must be true in a pipeline, where forwards and backwards alternate");
    return check_shards(o, what, err) ? err->status : check_secondary(o, what, err);
}

/* ---- gradients ---- */

/* Every replica gets all sums, though it needs only those of its part. */
static bool sums_whole(const struct dl_zero_options *o, const struct dl_setting *s)
{
    return o->stage == 1 && s->software->gradients_whole;
}

/* A sum over all replicas, or where shards accumulate a reduce-scatter first, in every micro-batch, and the sum at the
 * end. What is scattered before the sum, in stage 3 always, is here only summed across shards, or waited for. */
static enum dl_status sum(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                          struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const bool of_experts = !(ev->members.digits & DL_ALONG_EXPERTS);
    const uint32_t n_shards = dl_shards(s, of_experts);
    const bool scatters_only = ev->op == DL_REDUCESCATTER, scatters_here = o->stage < 3 && !dl_keeps_shards(s);
    struct dl_event scatter = *ev, across = *ev;
    if (sums_whole(o, s)) return dl_emit(below, ev, err);
    scatter.op = DL_REDUCESCATTER;
    scatter.members = dl_sharers(dl_stack_setting(below), of_experts);
    across.members.digits = DL_ALONG_COPIES;
    across.bytes /= n_shards;
    if ((scatters_only || scatters_here) && n_shards > 1 && dl_emit(below, &scatter, err)) return err->status;
    if (scatters_only) return DL_OK;
    if (dl_ranks_count(&s->ranks, DL_ALONG_COPIES) > 1) return dl_emit(below, &across, err);
    if (o->stage < 3 || ev->async) return DL_OK;
    return dl_emit(below, &(struct dl_event){.kind = DL_EV_WAIT, .pass = DL_GRADIENT, .handle = DL_EVERY_CALL}, err);
}

/* Of stage 3, in software that keeps them: all in one collective, whose pieces the host puts together. */
static enum dl_status gather_vectors(const struct dl_event *of, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const double n_shards = dl_shards(s, false), part_s = s->software->vector_part_host_s;
    const struct dl_event all = {.pass = DL_OPTIMIZER,
                                 .op = DL_ALLGATHER,
                                 .handle = DL_EVERY_CALL,
                                 .parts_host_s = of->n_vectors * n_shards * part_s};
    if (n_shards == 1 || part_s == 0 || of->n_vectors == 0) return DL_OK;
    return dl_zero_exchange(all, (struct dl_zero_set){0}, of->vector_parameters * dl_precision_bytes(s->precision),
                            below, err);
}

/* Every replica updates its part; in stages 1 and 2 it then gives it to the others. */
static enum dl_status update(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    struct dl_event part = *ev;
    part.parameters_inside /= dl_shards(s, false);
    part.parameters_outside /= dl_shards(s, false);
    part.parameters_expert /= dl_shards(s, true);
    if (dl_zero_n_owners(o, ev, s, false)) part.n_tensors = ceil(part.n_tensors / dl_shards(s, false));
    if (dl_emit(below, &part, err)) return err->status;
    if (o->stage == 3) return gather_vectors(ev, below, err);
    return dl_zero_gather_after_update(o, ev, below, err);
}

/* As the software does it: some makes stage 3 of stage 2 (see dl_job_suit), whose parameters stay for the backward. */
static struct dl_zero_options suited(const struct dl_zero_options *o, const struct dl_setting *s)
{
    struct dl_zero_options out = *o;
    out.stage = s->zero_stage;
    out.reshard = o->reshard && out.stage == o->stage;
    return out;
}

/* Others bring parameters when this does. */
static enum dl_status pass_on(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    if (ev->kind != DL_EV_LAYER) return dl_emit(below, ev, err);
    struct dl_event told = *ev;
    told.gathered_ahead = dl_zero_gathers_ahead(o, dl_stack_setting(below));
    return dl_emit(below, &told, err);
}

static struct dl_module_walk *walk_of(struct dl_stack *below) { return &((struct state *)dl_stack_state(below))->walk; }

static enum dl_status rewrite_work(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                                   struct dl_error *err)
{
    if (ev->kind == DL_EV_UPDATE) return update(o, ev, below, err);
    if (ev->kind == DL_EV_COLLECTIVE && ev->pass == DL_GRADIENT) return sum(o, ev, below, err);
    if (ev->kind == DL_EV_COMPUTE && dl_zero_prepare(o, ev, walk_of(below), below, err)) return err->status;
    if (pass_on(o, ev, below, err)) return err->status;
    if (o->overlap && ev->kind == DL_EV_LAYER) return dl_zero_gather_updated(o, ev, below, err);
    if (o->stage < 3) return DL_OK;
    if (ev->kind == DL_EV_LAYER || ev->kind == DL_EV_LAYER_DONE)
        if (dl_zero_prepare(o, ev, walk_of(below), below, err)) return err->status;
    if (ev->kind != DL_EV_LAYER_DONE || ev->pass != DL_BACKWARD) return DL_OK;
    return dl_zero_scatters_at(ev, dl_stack_setting(below)) ? dl_zero_scatter(o, ev, below, err) : DL_OK;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_zero_options as_done = suited(options, s);
    struct state *const state = dl_stack_state(below);
    const struct dl_zero_gathers gathers = {.modules = dl_zero_rules(&as_done, ev, s),
                                            .one_by_one = dl_zero_gathers_modules(&as_done, s),
                                            .ahead = dl_zero_gathers_ahead(&as_done, s),
                                            .stays = !as_done.reshard,
                                            .bits = (double)as_done.gather_bits,
                                            .scatter_bits = (double)as_done.scatter_bits};
    if (ev->kind == DL_EV_ALLOC) return dl_zero_alloc(&gathers, ev, &state->chunk_bytes, below, err);
    if (rewrite_work(&as_done, ev, below, err)) return err->status;
    return ev->kind == DL_EV_LAYER || ev->kind == DL_EV_LAYER_DONE ? dl_zero_layer(&gathers, ev, below, err) : DL_OK;
}

/* Stage 3 looks ahead. */
static uint32_t place(const void *options, const void *state, const struct dl_event *layer, const struct dl_setting *s)
{
    const bool is_of_chunk = layer->pass == DL_HOLD && dl_accumulated(s) == DL_ACCUMULATES_CHUNK;
    const bool brings = ((const struct dl_zero_options *)options)->overlap && layer->first_micro;
    (void)state;
    return s->zero_stage < 3 && !is_of_chunk && !brings ? 0 : DL_OWN_PLACE;
}

static void tell(const void *options, void (*say)(void *user, const char *words), void *user)
{
    const struct dl_zero_options *const o = options;
    char words[80];
    snprintf(words, sizeof words, "parameters gathered in %lld bits", (long long)o->gather_bits);
    if (o->gather_bits) say(user, words);
    if (o->overlap) say(user, "parameters gathered beside forwards");
    snprintf(words, sizeof words, "gradients scattered in %lld bits", (long long)o->scatter_bits);
    if (o->scatter_bits) say(user, words);
}

static const char *cut_more(json_t *entry, const struct dl_setting *s, uint32_t step, struct dl_arena *arena)
{
    const uint32_t stage = step + 1;
    if (stage <= s->zero_stage || dl_copies(s, false) == 1) return NULL;
    json_object_set_new(entry, "stage", json_integer(stage));
    if (gathers_before_use(stage, s->software)) json_object_del(entry, "overlap");
    return dl_arena_format(arena, "zero stage %u", stage);
}

static const struct dl_relief relief = {.rank = 2, .n_steps = 3, .change = cut_more};

const struct dl_strategy dl_strategy_zero = {
    .name = "zero",
    .doc = "optimizer states, gradients and parameters sharded over the replicas",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct dl_zero_options),
    .state_size = sizeof(struct state),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .place = place,
    .relief = &relief,
    .tell = tell,
};
