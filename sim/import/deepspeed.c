/* deepspeed.c - a configuration of DeepSpeed (deepspeed.ai/docs/config-json) as a strategy. It says nothing of the
 * model. */
#include <string.h>
#include <strings.h>

#include "sim/import/formats.h"
#include "sim/import/reasons.h"
#include "sim/import/strategy_made.h"

static const char taken[] =
    "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps fp16.enabled bf16.enabled "
    "bfloat16.enabled optimizer.type optimizer.params.momentum zero_optimization.stage zero_optimization.overlap_comm "
    "zero_optimization.reduce_bucket_size zero_optimization.stage3_max_live_parameters "
    "zero_optimization.stage3_max_reuse_distance zero_optimization.offload_optimizer.device "
    "zero_optimization.offload_optimizer.ratio zero_optimization.offload_param.device zero_optimization.cpu_offload "
    "zero_optimization.zero_quantized_weights zero_optimization.zero_hpz_partition_size "
    "zero_optimization.zero_quantized_gradients "
    "zero_optimization.mics_shard_size "
    "activation_checkpointing.cpu_checkpointing tensor_parallel.autotp_size pipeline.stages "
    "sequence_parallel_size";

static const struct dl_reason reasons[] = {
    {false, false, "logging and profiling: no part of a step",
     "steps_per_print wall_clock_breakdown dump_state memory_breakdown tensorboard wandb csv_monitor comet "
     "flops_profiler "
     "comms_logger monitor_config data_efficiency.seed"},
    {false, false, "values of the optimizer: time and memory do not depend on them",
     "scheduler gradient_clipping optimizer.legacy_fusion prescale_gradients "
     "gradient_predivide_factor fp16.loss_scale fp16.initial_scale_power fp16.loss_scale_window fp16.hysteresis "
     "fp16.consecutive_hysteresis fp16.min_loss_scale fp16.auto_cast seed optimizer.params.*"},
    {false, false, "checkpoints: no part of a step",
     "checkpoint zero_optimization.stage3_gather_16bit_weights_on_model_save "
     "zero_optimization.stage3_gather_fp16_weights_on_model_save zero_optimization.load_from_fp32_weights "
     "zero_optimization.elastic_checkpoint"},
    {false, false, "checks and choices at the start",
     "zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization.ignore_unused_parameters "
     "zero_optimization.memory_efficient_linear train_steps "
     "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory"},
    {false, true, "how collectives and copies are made: dlsim has one way for them",
     "zero_optimization.allgather_partitions zero_optimization.allgather_bucket_size zero_optimization.reduce_scatter "
     "zero_optimization.contiguous_gradients zero_optimization.round_robin_gradients zero_optimization.sub_group_size "
     "zero_optimization.stage3_prefetch_bucket_size zero_optimization.stage3_param_persistence_threshold "
     "zero_optimization.stage3_model_persistence_threshold "
     "zero_optimization.zero_quantized_nontrainable_weights "
     "zero_optimization.mics_hierarchical_params_gather zero_optimization.use_multi_rank_bucket_allreduce "
     "zero_optimization.offload_optimizer.* zero_optimization.offload_param.* communication_data_type "
     "seq_parallel_communication_data_type sparse_gradients aio pipeline.* use_data_before_expert_parallel_ "
     "tensor_parallel.* bf16.immediate_grad_update bf16.check_grad_overflow"},
    {false, true, "what is recomputed is in the model's code: set recompute", "activation_checkpointing.*"},
    {false, true, "how many bytes a gradient has is in the software file: gradient_bytes", "data_types.*"},
    {true, true, "dlsim simulates training steps of one kind",
     "curriculum_learning data_efficiency elasticity "
     "progressive_layer_drop eigenvalue hybrid_engine autotuning"},
    {true, true, "dlsim has no such model", "sparse_attention compression_training quantize_training"},
    {true, true, "another way to train in 16 bits: use bf16 or fp16", "amp torch_autocast zenflow"},
};

static bool recognises(const char *text, size_t bytes)
{
    static const char *const marks[] = {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"};
    json_t *const config = json_loadb(text, bytes, 0, NULL);
    bool is_one = false;
    for (size_t i = 0; i < DL_COUNT(marks); i++) is_one |= json_object_get(config, marks[i]) != NULL;
    json_decref(config);
    return is_one;
}

struct reading {
    struct dl_json config;
    struct dl_arena *arena;
    struct dl_imported *out;
    struct dl_error *err;
};

/* ---- values ---- */

static const char left_to_trainer[] = "auto";

static bool is_auto(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), left_to_trainer) == 0;
}

/* A number; `absent` where there is none, or where it is left to the program that trains. */
static double number_at(const struct reading *r, const char *name, double absent)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (!at.value || json_is_null(at.value) || is_auto(at.value)) return absent;
    static const double most = 1e15;
    const double value = json_number_value(at.value);
    if (!json_is_number(at.value))
        dl_wrong_type(at, "a number", r->err);
    else if (!(value >= 0 && value <= most))
        dl_fail(r->err, DL_RANGE, at.where, "must be from 0 to %g", most);
    else
        return value;
    dl_go_on(r->err);
    return absent;
}

static bool truth_at(const struct reading *r, const char *name)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (at.value && is_auto(at.value))
        dl_fail(r->err, DL_TYPE, at.where, "must be true or false: 'auto' leaves it to the program that trains");
    else if (at.value && !json_is_boolean(at.value))
        dl_wrong_type(at, "true or false", r->err);
    dl_go_on(r->err);
    return json_is_true(at.value);
}

/* A whole number from 1 on; 0: absent. */
static int64_t count_at(const struct reading *r, const char *name)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    static const double most = 1e9;
    const double value = at.value ? json_number_value(at.value) : 1;
    if (at.value && is_auto(at.value))
        dl_fail(r->err, DL_TYPE, at.where,
                "must be a number: 'auto' leaves it to the program that trains; write what that fills in");
    else if (at.value &&
             (!json_is_number(at.value) || !(value >= 1 && value <= most) || value != (double)(int64_t)value))
        dl_fail(r->err, DL_RANGE, at.where, "must be a whole number from 1 on, got %s",
                dl_shown_value(at.value, r->arena));
    else if (at.value)
        return (int64_t)value;
    dl_go_on(r->err);
    return 0;
}

/* ---- batch ---- */

/* train_batch_size = micro-batch x accumulation x replicas; two of them say the third, all three the replicas. */
static enum dl_status set_batch(const struct reading *r, json_t *strategy)
{
    const size_t told = r->err->n_told;
    const int64_t all = count_at(r, "train_batch_size"), micro = count_at(r, "train_micro_batch_size_per_gpu");
    const int64_t steps = count_at(r, "gradient_accumulation_steps"),
                  tensor = count_at(r, "tensor_parallel.autotp_size");
    const int64_t stages = count_at(r, "pipeline.stages"), parts = count_at(r, "sequence_parallel_size");

    static const int64_t most_ways = 1 << 14;
    if (dl_stop_if_told(r->err, told)) return r->err->status;
    if (tensor > most_ways || stages > most_ways || parts > most_ways)
        return dl_fail(r->err, DL_RANGE, r->config.where, "must not divide a model over more than %lld ranks each way",
                       (long long)most_ways);
    if (!micro)
        return dl_fail(r->err, DL_KEY, dl_key_at(r->config, "train_micro_batch_size_per_gpu", r->arena).where,
                       "must be given: samples of a micro-batch");
    const int64_t others = (tensor ? tensor : 1) * (stages ? stages : 1) * (parts ? parts : 1);
    const int64_t of_replica = micro * (steps ? steps : 1);
    if (all && steps && all % of_replica)
        return dl_fail(r->err, DL_IMPOSSIBLE, dl_key_at(r->config, "train_batch_size", r->arena).where,
                       "must be a multiple of micro-batch x accumulation = %lld, got %lld", (long long)of_replica,
                       (long long)all);
    if (all && steps && all / of_replica <= INT32_MAX / others)
        dl_put_count(strategy, "devices", all / of_replica * others);
    else
        dl_leave_out(r->out,
                     (struct dl_left_out){"devices", NULL,
                                          "not in the file: one replica is assumed; set devices, and global_batch",
                                          true},
                     r->arena);
    dl_put_count(strategy, "global_batch", all ? all : of_replica);
    dl_put_count(strategy, "microbatch", micro);
    return DL_OK;
}

/* ---- precision and optimizer ---- */

static void set_precision(const struct reading *r, json_t *strategy)
{
    const bool fp16 = truth_at(r, "fp16.enabled"),
               bf16 = truth_at(r, "bf16.enabled") || truth_at(r, "bfloat16.enabled");
    dl_put_word(strategy, "precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
}

static const struct {
    const char *type, *optimizer;
    bool is_one_bit; /* gradients are sent by sign */
} optimizers[] = {
    {"Adam", "adam", false},      {"AdamW", "adam", false},
    {"FusedAdam", "adam", false}, {"DeepSpeedCPUAdam", "adam", false},
    {"Lamb", "lamb", false},      {"FusedLamb", "lamb", false},
    {"OneBitAdam", "adam", true}, {"OneBitLamb", "lamb", true},
    {"SGD", "sgd", false},
};

static enum dl_status set_optimizer(const struct reading *r, json_t *strategy)
{
    const struct dl_json type = dl_key_at(r->config, "optimizer.type", r->arena);
    const char *const name = type.value ? json_string_value(type.value) : optimizers[0].type;
    const char *names[DL_COUNT(optimizers)];
    char all[DL_HINT];
    for (size_t i = 0; i < DL_COUNT(optimizers); i++) {
        names[i] = optimizers[i].type;
        if (!name || strcasecmp(names[i], name)) continue;
        const bool moves = number_at(r, "optimizer.params.momentum", 0) > 0;
        dl_put_word(strategy, "optimizer", moves ? "momentum" : optimizers[i].optimizer);
        if (optimizers[i].is_one_bit)
            dl_put_word(dl_strategy_entry(strategy, "quantized_allreduce"), "method", "one_bit");
        return DL_OK;
    }
    return dl_fail(r->err, DL_RANGE, type.where, "must be one of %s", dl_joined(names, DL_COUNT(names), all));
}

/* ---- the stack ---- */

static void add_ways(const struct reading *r, json_t *strategy)
{
    const int64_t tensor = count_at(r, "tensor_parallel.autotp_size"), stages = count_at(r, "pipeline.stages");
    const int64_t parts = count_at(r, "sequence_parallel_size");
    if (stages > 1) dl_put_count(dl_strategy_entry(strategy, "pipeline"), "ways", stages);
    if (tensor > 1) dl_put_count(dl_strategy_entry(strategy, "tensor"), "ways", tensor);
    if (parts <= 1) return;
    json_t *const context = dl_strategy_entry(strategy, "context"); /* DeepSpeed-Ulysses */
    dl_put_count(context, "ways", parts);
    dl_put_word(context, "kind", "alltoall");
}

static void put_number(const struct reading *r, json_t *entry, const char *key, const char *name)
{
    const double value = number_at(r, name, 0);
    if (value > 0) json_object_set_new(entry, key, json_real(value));
}

static void leave_out(const struct reading *r, const char *name, const char *why, bool matters)
{
    const json_t *const value = dl_key_at(r->config, name, r->arena).value;
    dl_leave_out(r->out, (struct dl_left_out){name, dl_shown_value(value, r->arena), why, matters}, r->arena);
}

/* DeepSpeed sends gradients among the devices of a node first, which the file does not tell; a second copy does. */
static void add_zero_plus_plus(const struct reading *r, int64_t stage, json_t *zero)
{
    static const char weights[] = "zero_optimization.zero_quantized_weights",
                      gradients[] = "zero_optimization.zero_quantized_gradients",
                      copy[] = "zero_optimization.zero_hpz_partition_size", no_effect[] = "no effect below stage 3";
    const double near = number_at(r, copy, 1);
    const bool has_copy = near > 1, packs_weights = truth_at(r, weights), packs_gradients = truth_at(r, gradients);
    if (stage < 3) {
        if (packs_weights) leave_out(r, weights, no_effect, false);
        if (packs_gradients) leave_out(r, gradients, no_effect, false);
        if (has_copy) leave_out(r, copy, no_effect, false);
        return;
    }
    if (packs_weights) dl_put_count(zero, "gather_bits", 8);
    if (has_copy) dl_put_count(zero, "secondary_ways", (int64_t)near);
    if (packs_gradients && has_copy) dl_put_count(zero, "scatter_bits", 4); /* coalesced_collectives.py */
    if (packs_gradients && !has_copy)
        leave_out(r, gradients, "without zero_hpz_partition_size dlsim knows no neighbours: gradients go unpacked",
                  true);
}

static enum dl_status add_zero(const struct reading *r, json_t *strategy)
{
    static const double gradient_bytes = 2; /* as they are sent */
    const int64_t stage = (int64_t)number_at(r, "zero_optimization.stage", 0);
    const struct dl_json overlap = dl_key_at(r->config, "zero_optimization.overlap_comm", r->arena);
    const double bucket = number_at(r, "zero_optimization.reduce_bucket_size", 0);
    json_t *const data = dl_strategy_entry(strategy, "data");
    if (stage < 0 || stage > 3)
        return dl_fail(r->err, DL_RANGE, dl_key_at(r->config, "zero_optimization.stage", r->arena).where,
                       "must be 0 to 3, got %lld", (long long)stage);
    if (overlap.value ? truth_at(r, "zero_optimization.overlap_comm") : stage == 3)
        json_object_set_new(data, "overlap", json_true());
    if (bucket > 0 && stage < 3) json_object_set_new(data, "bucket_bytes", json_real(bucket * gradient_bytes));
    json_t *const zero = stage ? dl_strategy_entry(strategy, "zero") : NULL;
    add_zero_plus_plus(r, stage, zero);
    if (!stage) return DL_OK;
    dl_put_count(zero, "stage", stage);
    if (stage == 3) {
        put_number(r, zero, "live_parameters", "zero_optimization.stage3_max_live_parameters");
        put_number(r, zero, "reuse_parameters", "zero_optimization.stage3_max_reuse_distance");
        if (bucket > 0) json_object_set_new(zero, "bucket_parameters", json_real(bucket));
    }
    const double shard = number_at(r, "zero_optimization.mics_shard_size", 0);
    if (shard > 0) dl_put_count(zero, "shard_ways", (int64_t)shard);
    return DL_OK;
}

/* Where a part of the states is. */
static const struct {
    const char *device;
    bool is_host;
} devices[] = {{"none", false}, {"cpu", true}};

static bool is_on_host(const struct reading *r, const char *name)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    const char *const device = at.value ? json_string_value(at.value) : devices[0].device;
    for (size_t i = 0; i < DL_COUNT(devices); i++)
        if (device && strcmp(devices[i].device, device) == 0) return devices[i].is_host;
    dl_fail(r->err, DL_RANGE, at.where, "must be none or cpu: dlsim has no disks beside devices");
    dl_go_on(r->err);
    return false;
}

static void add_offload(const struct reading *r, json_t *strategy)
{
    const bool optimizer =
        is_on_host(r, "zero_optimization.offload_optimizer.device") || truth_at(r, "zero_optimization.cpu_offload");
    const bool parameters = is_on_host(r, "zero_optimization.offload_param.device");
    const bool activations = truth_at(r, "activation_checkpointing.cpu_checkpointing");
    if (activations) dl_put_word(strategy, "recompute", "full"); /* it keeps their inputs there */
    if (!optimizer && !parameters && !activations) return;
    json_t *const offload = dl_strategy_entry(strategy, "offload");
    if (optimizer)
        json_object_set_new(offload, "optimizer",
                            json_real(number_at(r, "zero_optimization.offload_optimizer.ratio", 1)));
    if (parameters) json_object_set_new(offload, "parameters", json_real(1));
    if (activations) json_object_set_new(offload, "activations", json_real(1));
}

static enum dl_status read_config(struct reading *r, const char *where)
{
    static const struct dl_known_keys known = {"DeepSpeed", taken, reasons, DL_COUNT(reasons)};
    if (!json_is_object(r->config.value)) return dl_wrong_type(r->config, "an object", r->err);
    if (dl_check_keys(r->config, &known, r->arena, r->out, r->err)) return r->err->status;
    json_t *const strategy = r->out->strategy = dl_strategy_made(r->out, where, "DeepSpeed's", r->arena);
    dl_put_word(strategy, "software", "megatron-deepspeed");
    const size_t told = r->err->n_told;
    const bool is_spread = !set_batch(r, strategy); /* it looks at the ways too */
    if (!is_spread && !dl_go_on(r->err)) return r->err->status;
    set_precision(r, strategy);
    if (is_spread) add_ways(r, strategy);
    if (add_zero(r, strategy) && !dl_go_on(r->err)) return r->err->status;
    if (set_optimizer(r, strategy) && !dl_go_on(r->err)) return r->err->status;
    add_offload(r, strategy);
    return dl_stop_if_told(r->err, told);
}

static enum dl_status read(const char *text, const char *where, struct dl_arena *arena, struct dl_imported *out,
                           struct dl_error *err)
{
    struct reading r = {.arena = arena, .out = out, .err = err};
    out->what = "a configuration of DeepSpeed";
    if (dl_json_parse(text, strlen(text), where, arena, &r.config, err)) return err->status;
    read_config(&r, where);
    json_decref(r.config.value);
    return err->status;
}

const struct dl_import_format dl_import_deepspeed = {
    .name = "deepspeed",
    .doc = "a JSON configuration of DeepSpeed, as a strategy",
    .recognises = recognises,
    .read = read,
};
