/* megatron_strategy.c - how Megatron's flags spread a training over devices, as a strategy. */
#include <string.h>

#include "sim/import/megatron.h"
#include "sim/import/strategy_made.h"
#include "strategies/schedule.h"

static int64_t or_one(int64_t given) { return given ? given : 1; }

static int64_t ranks_of_replica(const struct dl_megatron *m)
{
    return or_one(m->tensor) * or_one(m->pipeline) * or_one(m->context);
}

static int64_t replicas_of(const struct dl_megatron *m) { return m->devices / ranks_of_replica(m); }

/* Tensor ranks that divide each expert; all do where no flag says it. */
static int64_t expert_tensor(const struct dl_megatron *m)
{
    return m->experts && m->expert_tensor ? m->expert_tensor : or_one(m->tensor);
}

/* Others have experts of their own. */
static bool is_over_tensor(const struct dl_megatron *m) { return or_one(m->tensor) > expert_tensor(m); }
static int64_t experts_of_tensor(const struct dl_megatron *m)
{
    return is_over_tensor(m) ? or_one(m->tensor) / expert_tensor(m) : 1;
}

/* Groups of experts count context ranks before data ranks, and tensor ranks before these (megatron/core/
 * parallel_state.py: the generator of their ranks has no context). */
static int64_t expert_ways_beyond_tensor(const struct dl_megatron *m)
{
    return or_one(m->expert) / experts_of_tensor(m);
}

static bool is_over_context(const struct dl_megatron *m)
{
    const int64_t ways = expert_ways_beyond_tensor(m);
    return m->experts && or_one(m->context) > 1 && ways > 1 && ways % or_one(m->context) == 0;
}

/* Ranks of a replica that have experts of their own. */
static int64_t expert_ranks_of_replica(const struct dl_megatron *m)
{
    return experts_of_tensor(m) * (is_over_context(m) ? or_one(m->context) : 1);
}

/* ---- entries of the stack ---- */

static void add_tensor(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    if (or_one(m->tensor) == 1) {
        if (m->sequence)
            dl_megatron_leave(r, "--sequence-parallel", NULL, false, "Megatron-LM turns it off without tensor ranks");
        return;
    }
    json_t *const tensor = dl_strategy_entry(strategy, "tensor");
    dl_put_count(tensor, "ways", m->tensor);
    if (m->sequence) json_object_set_new(tensor, "sequence", json_true());
    if (m->tensor_overlap) dl_put_count(tensor, "overlap_chunks", m->tensor); /* a ring exchange: a part of each rank */
}

/* By the choice of the flag. */
static const char *const context_kinds[] = {NULL, "ring", "alltoall", "allgather", "allgather"};

/* Megatron-LM gives every rank a part from the front of a sequence and one from its end. */
static void add_context(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    if (or_one(m->context) == 1) return;
    json_t *const context = dl_strategy_entry(strategy, "context");
    dl_put_count(context, "ways", m->context);
    if (m->context_kind) json_object_set_new(context, "kind", json_string(context_kinds[m->context_kind]));
    if (m->model == DL_MEGATRON_GPT && m->context_kind != DL_CONTEXT_A2A)
        json_object_set_new(context, "zigzag", json_true());
}

static enum dl_status check_expert_tensor(const struct dl_megatron_reading *r, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const int64_t tensor = or_one(m->tensor), apart = experts_of_tensor(m), expert = or_one(m->expert);
    if (tensor % expert_tensor(m))
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "expert-tensor-parallel-size"),
                       "must divide that of other layers, %lld, got %lld", (long long)tensor,
                       (long long)m->expert_tensor);
    if (is_over_tensor(m) && expert % apart)
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "expert-tensor-parallel-size"),
                       "%lld of %lld tensor ranks needs an --expert-model-parallel-size that is a multiple of %lld, as "
                       "so many of them have experts of their own then; got %lld",
                       (long long)m->expert_tensor, (long long)tensor, (long long)apart, (long long)expert);
    return DL_OK;
}

static void leave_part_of_context(const struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    if (or_one(m->context) == 1 || expert_ways_beyond_tensor(m) == 1 || is_over_context(m)) return;
    dl_megatron_leave(r, "--expert-model-parallel-size", dl_arena_format(r->arena, "%lld", (long long)m->expert), true,
                      "over a part of the context ranks; dlsim has experts over all of them or, as here, over data "
                      "ranks");
}

static enum dl_status add_expert(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    if (check_expert_tensor(r, err)) return err->status;
    const bool is_whole = or_one(m->expert) == 1; /* no tokens travel */
    if (is_whole && !(m->experts && m->experts_padded)) return DL_OK;
    json_t *const expert = dl_strategy_entry(strategy, "expert");
    dl_put_count(expert, "ways", or_one(m->expert));
    if (m->experts_padded) json_object_set_new(expert, "even", json_true());
    if (is_whole) return DL_OK;
    if (is_over_tensor(m)) json_object_set_new(expert, "over_tensor", json_true());
    if (is_over_tensor(m) && m->expert_tensor > 1) dl_put_count(expert, "tensor_ways", m->expert_tensor);
    if (is_over_context(m)) json_object_set_new(expert, "over_context", json_true());
    leave_part_of_context(r);
    if (m->dispatcher == DL_DISPATCH_FLEX) json_object_set_new(expert, "dispatch", json_string("to_nodes"));
    if (m->expert_overlap) json_object_set_new(expert, "overlap", json_true());
    if (m->dispatcher <= DL_DISPATCH_ALLGATHER)
        dl_megatron_leave(r, "--moe-token-dispatcher-type", m->dispatcher ? "allgather" : "allgather by default", true,
                          "dlsim sends tokens to their experts (alltoall); here all ranks get all tokens");
    return DL_OK;
}

static bool is_fsdp(const struct dl_megatron *m) { return m->megatron_fsdp || m->custom_fsdp || m->torch_fsdp; }

static int64_t zero_stage(const struct dl_megatron *m)
{
    if (m->torch_fsdp) return 3;
    if (!is_fsdp(m)) return m->distributed_optimizer;
    return m->sharding ? m->sharding - DL_SHARD_NOTHING : 0;
}

static void add_data(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    static const int64_t fp32_bytes = 4, bf16_bytes = 2;
    if (replicas_of(m) * or_one(m->context) == 1) return;
    json_t *const data = dl_strategy_entry(strategy, "data");
    if (m->grad_overlap || m->torch_fsdp) json_object_set_new(data, "overlap", json_true());
    if (m->bucket_parameters)
        dl_put_count(data, "bucket_bytes", m->bucket_parameters * (m->bf16_gradients ? bf16_bytes : fp32_bytes));
}

static enum dl_status add_zero(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const int64_t stage = zero_stage(m), copies = or_one(m->optimizer_instances);
    if (m->sharding && !is_fsdp(m))
        dl_megatron_leave(r, "--data-parallel-sharding-strategy", NULL, false,
                          "it is read with --use-megatron-fsdp only");
    const bool overlaps = m->param_overlap && stage && !is_fsdp(m);
    if (m->param_overlap && !overlaps)
        dl_megatron_leave(r, "--overlap-param-gather", NULL, false,
                          is_fsdp(m) ? "with FSDP dlsim has what the software does"
                                     : "Megatron-LM has it with --use-distributed-optimizer only");
    if (!stage) return DL_OK;
    json_t *const zero = dl_strategy_entry(strategy, "zero");
    dl_put_count(zero, "stage", stage);
    if (overlaps) json_object_set_new(zero, "overlap", json_true());
    if (m->torch_fsdp_keeps) json_object_set_new(zero, "reshard", json_false());
    if (m->fp8_gather) dl_put_count(zero, "gather_bits", 8);
    if (copies == 1) return DL_OK;
    if (replicas_of(m) % copies)
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "num-distributed-optimizer-instances"),
                       "must divide the replicas, %lld; got %lld", (long long)replicas_of(m), (long long)copies);
    dl_put_count(zero, "shard_ways", replicas_of(m) / copies);
    return DL_OK;
}

static void add_offload(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    if (!m->offload_optimizer && !m->offload_layers) return;
    json_t *const offload = dl_strategy_entry(strategy, "offload");
    if (m->offload_optimizer)
        json_object_set_new(offload, "optimizer", json_real(m->offload_fraction < 0 ? 1 : m->offload_fraction));
    if (m->offload_layers)
        json_object_set_new(offload, "activations", json_real((double)m->offload_layers / (double)or_one(m->layers)));
}

static const char whole_step[] = "full_iteration"; /* of --cuda-graph-scope */

static void add_graphs(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    const bool by_kind = m->graph_kind > DL_GRAPH_NONE;
    if (!m->graphs && !m->external_graphs && !by_kind) return;
    const bool is_step = m->graph_scope && strcmp(m->graph_scope, whole_step) == 0;
    json_object_set_new(dl_strategy_entry(strategy, "graphs"), "scope",
                        json_string(is_step ? "step" : "outside_experts"));
}

/* ---- keys of the strategy ---- */

static bool is_among(const json_t *names, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(names, i, item) if (strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* A name that is there already is not added again. Parts that only experts have are nothing in a model without. */
static void add_module(const struct dl_megatron_reading *r, const char *name, json_t *modules)
{
    static const char *const of_experts[] = {"moe", "moe_act", "shared_experts"};
    bool is_of_experts = false;
    for (size_t i = 0; i < DL_COUNT(of_experts); i++) is_of_experts |= strcmp(of_experts[i], name) == 0;
    if (is_of_experts && !r->m->experts)
        dl_megatron_leave(r, "--recompute-modules", name, false,
                          "only blocks with experts have it, and the model has none");
    else if (!is_among(modules, name))
        json_array_append_new(modules, json_string(name));
}

/* --recompute-modules, and what stood for one of them before there were these: Megatron-Core adds it to their default
 * (megatron/core/transformer/transformer_config.py). */
static void add_modules(const struct dl_megatron_reading *r, json_t *strategy)
{
    static const char default_modules[] = "core_attn";
    json_t *const modules = json_array();
    const char *rest = r->m->recompute_modules ? r->m->recompute_modules : default_modules;
    for (size_t n; *(rest += strspn(rest, " ")); rest += n) {
        n = strcspn(rest, " ");
        add_module(r, dl_arena_format(r->arena, "%.*s", (int)n, rest), modules);
    }
    if (r->m->recompute_experts) add_module(r, "moe", modules);
    if (json_array_size(modules) == 0) {
        json_object_set_new(strategy, "recompute", json_string("none"));
        json_decref(modules);
        return;
    }
    json_t *const entry = dl_strategy_entry(strategy, "recompute");
    json_object_set_new(entry, "mode", json_string("selective"));
    json_object_set_new(entry, "modules", modules);
}

static void set_recompute(const struct dl_megatron_reading *r, json_t *strategy)
{
    const struct dl_megatron *const m = r->m;
    const bool full = m->recompute == DL_GRANULARITY_FULL || m->checkpoint_activations;
    const bool selective = m->recompute == DL_GRANULARITY_SELECTIVE || m->recompute_activations || m->recompute_experts;
    if (!full && selective && (m->recompute_modules || m->recompute_experts)) {
        add_modules(r, strategy);
        return;
    }
    const int64_t n = or_one(m->recompute_layers);
    const bool by_block = m->recompute_method == DL_METHOD_BLOCK;
    if (!full || (!by_block && n == 1)) {
        json_object_set_new(strategy, "recompute", json_string(full ? "full" : selective ? "selective" : "none"));
        return;
    }
    json_t *const recompute = dl_strategy_entry(strategy, "recompute");
    json_object_set_new(recompute, "mode", json_string("full"));
    dl_put_count(recompute, by_block ? "layers" : "every", n);
}

/* As many as a product of four of them may be. */
static enum dl_status check_ways(const struct dl_megatron_reading *r, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    static const int64_t most = 1 << 14;
    const struct {
        const char *flag;
        int64_t ways;
    } all[] = {{"tensor-model-parallel-size", m->tensor},
               {"pipeline-model-parallel-size", m->pipeline},
               {"context-parallel-size", m->context},
               {"expert-model-parallel-size", m->expert}};
    const size_t told = err->n_told;
    for (size_t i = 0; i < DL_COUNT(all); i++) {
        if (all[i].ways <= most) continue;
        dl_fail(err, DL_RANGE, dl_megatron_place(r, all[i].flag), "must be at most %lld, got %lld", (long long)most,
                (long long)all[i].ways);
        if (!dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}

/* The fewest that hold all experts, where the launch command does not say it. */
static void assume_devices(const struct dl_megatron_reading *r)
{
    struct dl_megatron *const m = r->m;
    if (m->devices) return;
    m->devices = ranks_of_replica(m) * or_one(or_one(m->expert) / expert_ranks_of_replica(m));
    dl_megatron_leave(r, "devices", dl_arena_format(r->arena, "%lld", (long long)m->devices), true,
                      "not in the file: the fewest that the flags allow; say --devices N, or set devices");
}

static bool interleaves(const struct dl_megatron *m)
{
    if (!m->layout) return m->virtual_layers || m->virtual_stages > 1;
    const struct dl_megatron_layout layout = dl_megatron_layout_of(m->layout);
    const bool has_several = (int64_t)json_array_size(layout.blocks) > or_one(m->pipeline);
    json_decref(layout.blocks);
    return has_several;
}

/* Megatron-Core refuses the same, in forward_backward_pipelining_with_interleaving. */
static enum dl_status check_groups(const struct dl_megatron_reading *r, int64_t batch, struct dl_error *err)
{
    static const char flag[] = "microbatch-group-size-per-virtual-pipeline-stage";
    static const int64_t most = 1000000; /* as of a strategy file; a run refuses more micro-batches */
    const struct dl_megatron *const m = r->m;
    const int64_t stages = or_one(m->pipeline), group = m->virtual_group ? m->virtual_group : stages;
    const int64_t of_each = m->microbatch * replicas_of(m), micros = batch / of_each;
    if (stages == 1 || !interleaves(m)) return DL_OK;
    if (group < stages || group > most)
        return dl_fail(err, DL_RANGE, dl_megatron_place(r, flag), "must be from the stages, %lld, to %lld, got %lld",
                       (long long)stages, (long long)most, (long long)group);
    if (micros > most) return DL_OK;
    const int64_t nearest = dl_schedule_nearest_in_groups((uint32_t)group, (uint32_t)stages, (uint32_t)micros);
    if (nearest == micros) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "global-batch-size"),
                   "%lld micro-batches of a replica cannot be interleaved in groups of %lld (--%s), of which the last "
                   "may have as few as the stages, %lld; nearest: %lld",
                   (long long)micros, (long long)group, flag, (long long)stages, (long long)(nearest * of_each));
}

/* What dlsim would refuse of the strategy is refused by its flag. */
static enum dl_status check_batch(const struct dl_megatron_reading *r, int64_t batch, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const int64_t replicas = replicas_of(m);
    const int64_t holders = replicas * expert_ranks_of_replica(m);
    if (m->experts && holders % or_one(m->expert))
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "expert-model-parallel-size"),
                       "must divide the ranks that have tokens of their own for experts, %lld; got %lld",
                       (long long)holders, (long long)m->expert);
    if (batch % (m->microbatch * replicas))
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "global-batch-size"),
                       "must be a multiple of micro-batch x replicas = %lld, got %lld",
                       (long long)(m->microbatch * replicas), (long long)batch);
    return check_groups(r, batch, err);
}

static enum dl_status set_batch(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    if (!m->microbatch) return dl_fail(err, DL_KEY, dl_megatron_place(r, "micro-batch-size"), "must be given");
    if (m->devices > INT32_MAX || m->devices % ranks_of_replica(m))
        return dl_fail(
            err, DL_IMPOSSIBLE, r->where,
            "the launch command starts %lld processes, which tensor x pipeline x context = %lld do not divide",
            (long long)m->devices, (long long)ranks_of_replica(m));
    const int64_t batch = m->global_batch ? m->global_batch : m->microbatch * replicas_of(m);
    if (check_batch(r, batch, err)) return err->status;
    dl_put_count(strategy, "devices", m->devices);
    dl_put_count(strategy, "global_batch", batch);
    dl_put_count(strategy, "microbatch", m->microbatch);
    return DL_OK;
}

/* Megatron-Core's store_param_remainders, which FusedAdam heeds for bf16 parameters only. */
static void leave_remainders(const struct dl_megatron_reading *r)
{
    if (!r->m->precision_aware || !r->m->bf16) return;
    dl_megatron_leave(
        r, "--use-precision-aware-optimizer", NULL, true,
        "with Transformer Engine 2.1 and later, only the 16 bits of fp32 parameters that bf16 ones lack are "
        "kept; dlsim keeps all 32, 2 bytes a parameter more");
}

static enum dl_status set_optimizer(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    const bool sgd = m->optimizer == DL_OPTIMIZER_SGD, first = m->moment_type == DL_SUMS_BF16,
               second = m->moment2_type == DL_SUMS_BF16;
    const char *const adam = first ? "adam_bf16" : "adam";
    if ((first || second) && !m->precision_aware)
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, first ? "exp-avg-dtype" : "exp-avg-sq-dtype"),
                       "must be fp32, as Megatron-Core has it without --use-precision-aware-optimizer; got bf16");
    if (!sgd && first != second)
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, first ? "exp-avg-dtype" : "exp-avg-sq-dtype"),
                       "must be that of the other moment: dlsim has both in one precision");
    leave_remainders(r);
    json_object_set_new(strategy, "optimizer", json_string(!sgd ? adam : m->sgd_momentum == 0 ? "sgd" : "momentum"));
    return DL_OK;
}

static enum dl_status fill_stack(struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    const size_t told = err->n_told;
    if (or_one(r->m->pipeline) > 1 && dl_megatron_pipeline(r, dl_strategy_entry(strategy, "pipeline"), err) &&
        !dl_go_on(err))
        return err->status;
    add_tensor(r, strategy);
    add_context(r, strategy);
    if (add_expert(r, strategy, err) && !dl_go_on(err)) return err->status;
    add_data(r, strategy);
    if (add_zero(r, strategy, err) && !dl_go_on(err)) return err->status;
    set_recompute(r, strategy);
    add_offload(r, strategy);
    add_graphs(r, strategy);
    return dl_stop_if_told(err, told);
}

enum dl_status dl_megatron_strategy(struct dl_megatron_reading *r, struct dl_error *err)
{
    json_t *const strategy = r->out->strategy = dl_strategy_made(r->out, r->where, "Megatron-LM's", r->arena);
    json_object_set_new(strategy, "software", json_string("megatron-core"));
    if (check_ways(r, err)) return err->status;
    assume_devices(r);
    const size_t told = err->n_told;
    if (set_batch(r, strategy, err) && !dl_go_on(err)) return err->status;
    if (dl_megatron_precision(r, strategy, err) && !dl_go_on(err)) return err->status;
    if (set_optimizer(r, strategy, err) && !dl_go_on(err)) return err->status;
    if (r->m->order_pipeline_first)
        json_object_set_new(strategy, "order", json_pack("[ssss]", "tensor", "context", "pipeline", "data"));
    if (fill_stack(r, strategy, err) && !dl_go_on(err)) return err->status;
    return dl_stop_if_told(err, told);
}
