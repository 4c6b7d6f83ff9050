/* torchtitan_strategy.c - degrees, batch and recomputation of torchtitan's configurations as a strategy. */
#include <string.h>

#include "sim/import/reasons.h"
#include "sim/import/strategy_made.h"
#include "sim/import/torchtitan.h"
#include "strategies/schedule.h"

/* ---- the stack ---- */

static const struct dl_titan_word schedules[] = {
    {"1F1B", "1f1b"},
    {"Interleaved1F1B", "interleaved"},
    {"GPipe", "gpipe"},
    {"ZBVZeroBubble", "zbv"},
};

/* PyTorch divides micro-batches into as many equal rounds as there are whole groups of the stages, and refuses numbers
 * that do not divide so (torch/distributed/pipelining/schedules.py, ScheduleInterleaved1F1B). */
static void set_group(const struct dl_torchtitan *r, json_t *pipeline)
{
    const int64_t micros = r->batch / r->microbatch, rounds = micros / r->pipeline;
    if (rounds && micros % rounds == 0 && micros / rounds != r->pipeline)
        dl_put_count(pipeline, "group", micros / rounds);
}

/* Looped schedules have two parts of a stage unless the layers of a part are said. */
static enum dl_status add_pipeline(const struct dl_torchtitan *r, json_t *strategy)
{
    if (r->pipeline == 1) return DL_OK;
    json_t *const pipeline = dl_strategy_entry(strategy, "pipeline");
    const char *const schedule =
        dl_titan_word(r, "parallelism.pipeline_parallel_schedule", schedules, DL_COUNT(schedules));
    const int64_t each = dl_titan_count(r, "parallelism.pipeline_parallel_layers_per_stage", 0);
    const int64_t layers = json_integer_value(json_object_get(r->out->workload, "layers"));
    int64_t chunks = dl_schedule_named(schedule)->min_chunks;
    if (each && !layers)
        return dl_fail(r->err, DL_IMPOSSIBLE,
                       dl_key_at(r->config, "parallelism.pipeline_parallel_layers_per_stage", r->arena).where,
                       "needs a model that is shipped, to know how many layers there are");
    if (each) chunks = (layers + each * r->pipeline - 1) / (each * r->pipeline);
    dl_put_count(pipeline, "ways", r->pipeline);
    dl_put_word(pipeline, "schedule", schedule);
    if (chunks > 1) dl_put_count(pipeline, "chunks", chunks);
    if (dl_schedule_named(schedule)->has_groups) set_group(r, pipeline);
    dl_put_word(pipeline, "split", "count_ends"); /* torchtitan counts the embedding and the head as a layer each */
    return DL_OK;
}

/* Its tensor parallelism divides tokens where activations would be whole. */
static void add_tensor(const struct dl_torchtitan *r, json_t *strategy)
{
    if (r->tensor == 1) return;
    json_t *const tensor = dl_strategy_entry(strategy, "tensor");
    dl_put_count(tensor, "ways", r->tensor);
    json_object_set_new(tensor, "sequence", json_true());
    if (dl_titan_truth(r, "parallelism.enable_async_tensor_parallel"))
        dl_put_count(tensor, "overlap_chunks", r->tensor);
}

static void add_context(const struct dl_torchtitan *r, json_t *strategy)
{
    static const struct dl_titan_word methods[] = {{"allgather", "allgather"}, {"alltoall", "ring"}};
    if (r->context == 1) return;
    json_t *const context = dl_strategy_entry(strategy, "context");
    dl_put_count(context, "ways", r->context);
    dl_put_word(context, "kind",
                dl_titan_word(r, "parallelism.context_parallel_rotate_method", methods, DL_COUNT(methods)));
    json_object_set_new(context, "zigzag", json_true()); /* its default load balancing */
}

/* Its default is that tensor ranks have whole experts each; without ranks for experts they cut all of them. */
static enum dl_status add_expert(const struct dl_torchtitan *r, json_t *strategy)
{
    const int64_t ways = dl_titan_count(r, "parallelism.expert_parallel_degree", 1);
    const int64_t tensor = dl_titan_count(r, "parallelism.expert_tensor_parallel_degree", 1);
    if (ways == 1) return DL_OK;
    if (tensor > 1 && tensor != r->tensor)
        return dl_fail(r->err, DL_IMPOSSIBLE,
                       dl_key_at(r->config, "parallelism.expert_tensor_parallel_degree", r->arena).where,
                       "must be that of other layers, %lld, or 1; got %lld", (long long)r->tensor, (long long)tensor);
    json_t *const expert = dl_strategy_entry(strategy, "expert");
    dl_put_count(expert, "ways", ways);
    if (tensor < r->tensor) json_object_set_new(expert, "over_tensor", json_true());
    if (r->context > 1) json_object_set_new(expert, "over_context", json_true()); /* it takes no others */
    return DL_OK;
}

/* fully_shard keeps parameters between forward and backward in a pipeline unless it is told otherwise: stage 2 there.
 */
static void add_data(const struct dl_torchtitan *r, json_t *strategy)
{
    static const struct dl_titan_word policies[] = {{"default", ""}, {"always", "always"}, {"never", "never"}};
    const char *const policy = dl_titan_word(r, "parallelism.fsdp_reshard_after_forward", policies, DL_COUNT(policies));
    const bool keeps = *policy ? policy == policies[2].here : r->pipeline > 1;
    json_t *const data = dl_strategy_entry(strategy, "data");
    json_object_set_new(data, "overlap", json_true());
    if (r->shard == 1) return;
    json_t *const zero = dl_strategy_entry(strategy, "zero");
    dl_put_count(zero, "stage", keeps && r->pipeline > 1 ? 2 : 3);
    if (keeps && r->pipeline == 1) json_object_set_new(zero, "reshard", json_false());
    if (r->replicate > 1 && r->shard > 1) dl_put_count(zero, "shard_ways", r->shard);
    if (!dl_titan_truth(r, "training.enable_cpu_offload")) return;
    json_t *const offload = dl_strategy_entry(strategy, "offload");
    dl_put_count(offload, "optimizer", 1);
    dl_put_count(offload, "parameters", 1);
}

/* ---- keys ---- */

static void set_precision(const struct dl_torchtitan *r, json_t *strategy)
{
    static const struct dl_titan_word types[] = {{"bfloat16", "bf16"}, {"float32", "fp32"}};
    static const struct dl_titan_word sums[] = {{"float32", ""}};
    static const struct dl_titan_word converters[] = {
        {"float8", "fp8"}, {"mx", "mxfp8"}, {"quantize.linear.float8", "fp8"}, {"quantize.linear.mx", "mxfp8"}};
    const struct dl_json list = dl_key_at(r->config, "model.converters", r->arena);
    dl_put_word(strategy, "precision", dl_titan_word(r, "training.mixed_precision_param", types, DL_COUNT(types)));
    dl_titan_word(r, "training.mixed_precision_reduce", sums, DL_COUNT(sums));
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const char *const name = json_string_value(json_array_get(list.value, i));
        size_t k = 0;
        while (k < DL_COUNT(converters) && !(name && strcmp(converters[k].word, name) == 0)) k++;
        if (k == DL_COUNT(converters))
            dl_fail(r->err, DL_RANGE, list.where, "must be float8 or mx, got %s", dl_shown_value(list.value, r->arena));
        else
            dl_put_word(strategy, "precision", converters[k].here);
    }
}

/* Every nth layer recomputed is a share of the blocks of a part. */
static void recompute_some(const struct dl_torchtitan *r, json_t *strategy, int64_t every)
{
    const json_t *const pipeline = json_array_get(json_object_get(strategy, "stack"), 0);
    const int64_t layers = json_integer_value(json_object_get(r->out->workload, "layers"));
    const int64_t chunks = r->pipeline > 1 ? json_integer_value(json_object_get(pipeline, "chunks")) : 1;
    const int64_t blocks = layers / (r->pipeline * (chunks ? chunks : 1)) / every;
    json_t *const recompute = dl_strategy_entry(strategy, "recompute");
    dl_put_word(recompute, "mode", "full");
    if (blocks)
        dl_put_count(recompute, "layers", blocks);
    else
        dl_titan_differs(r, "activation_checkpoint.selective_ac_option", NULL,
                         "without a shipped model the number of blocks is not known: all are recomputed");
}

static void set_recompute(const struct dl_torchtitan *r, json_t *strategy)
{
    static const struct dl_titan_word modes[] = {{"selective", "selective"}, {"none", "none"}, {"full", "full"}};
    static const char whole_number[] = "0123456789";
    const char *const mode = dl_titan_word(r, "activation_checkpoint.mode", modes, DL_COUNT(modes));
    const char *const option = dl_titan_text(r, "activation_checkpoint.selective_ac_option", "2");
    const bool by_layers = *option && strspn(option, whole_number) == strlen(option) && strlen(option) < 6;
    if (mode == modes[0].here && by_layers) {
        int64_t every = 0;
        for (const char *at = option; *at; at++) every = 10 * every + (*at - '0');
        recompute_some(r, strategy, every ? every : 1);
        return;
    }
    if (mode == modes[0].here) {
        json_t *const by_op = dl_strategy_entry(strategy, "recompute");
        dl_put_word(by_op, "mode", "full");
        dl_put_word(by_op, "keeps", "alternate_gemms");
        return;
    }
    dl_put_word(strategy, "recompute", mode);
}

static void set_batch(struct dl_torchtitan *r, json_t *strategy)
{
    static const int64_t usual = 8; /* torchtitan's default */
    r->batch = dl_titan_count(r, "training.local_batch_size", dl_titan_count(r, "training.batch_size", usual));
    r->microbatch = r->pipeline > 1 ? dl_titan_count(r, "parallelism.pipeline_parallel_microbatch_size", 1) : r->batch;
    const int64_t whole = dl_titan_count(r, "training.global_batch_size", -1);
    const int64_t replicas = r->shard > 0 ? r->shard * r->replicate : r->replicate;
    const int64_t others = r->tensor * r->pipeline * r->context;
    if (r->shard > 0 && others <= INT32_MAX && replicas <= INT32_MAX / others)
        dl_put_count(strategy, "devices", replicas * others);
    else
        dl_titan_differs(r, "devices", NULL,
                         "data_parallel_shard_degree -1 takes all that are left: set devices, and global_batch");
    dl_put_count(strategy, "global_batch", whole > 0 ? whole : r->batch * replicas);
    dl_put_count(strategy, "microbatch", r->microbatch);
}

/* The software file has blocks compiled. */
static void set_software(const struct dl_torchtitan *r, json_t *strategy)
{
    dl_put_word(strategy, "software", "torchtitan");
    if (!dl_titan_truth(r, "compile.enable") && !dl_titan_truth(r, "training.compile"))
        dl_titan_differs(r, "compile.enable", "false", "the software torchtitan compiles blocks; fsdp does not");
}

enum dl_status dl_titan_strategy(struct dl_torchtitan *r)
{
    static const struct dl_titan_word optimizers[] = {{"AdamW", "adam"}, {"Adam", "adam"}};
    r->tensor = dl_titan_count(r, "parallelism.tensor_parallel_degree", 1);
    r->pipeline = dl_titan_count(r, "parallelism.pipeline_parallel_degree", 1);
    r->context = dl_titan_count(r, "parallelism.context_parallel_degree", 1);
    r->shard = dl_titan_count(r, "parallelism.data_parallel_shard_degree", -1);
    r->replicate = dl_titan_count(r, "parallelism.data_parallel_replicate_degree", 1);
    static const int64_t most = 1 << 14; /* of each: their product must be a number of devices */
    if (r->err->status) return r->err->status;
    if (r->tensor > most || r->pipeline > most || r->context > most || r->shard > most || r->replicate > most)
        return dl_fail(r->err, DL_RANGE, dl_key_at(r->config, "parallelism", r->arena).where,
                       "degrees must be at most %lld", (long long)most);
    json_t *const strategy = r->out->strategy = dl_strategy_made(r->out, r->config.where, "torchtitan's", r->arena);
    set_software(r, strategy);
    set_batch(r, strategy);
    set_precision(r, strategy);
    dl_put_word(strategy, "optimizer", dl_titan_word(r, "optimizer.name", optimizers, DL_COUNT(optimizers)));
    if (add_pipeline(r, strategy) && !dl_go_on(r->err)) return r->err->status;
    add_tensor(r, strategy);
    add_context(r, strategy);
    if (add_expert(r, strategy) && !dl_go_on(r->err)) return r->err->status;
    add_data(r, strategy);
    set_recompute(r, strategy);
    return r->err->status;
}
