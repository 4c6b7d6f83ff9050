/* torchtitan.c - a TOML configuration of torchtitan as a strategy, and its model as a workload where that is shipped.
 */
#include <string.h>

#include "sim/core/inherit.h"
#include "sim/import/formats.h"
#include "sim/import/reasons.h"
#include "sim/import/strategy_made.h"
#include "sim/import/toml.h"
#include "sim/import/torchtitan.h"

static const char taken[] =
    "model.name model.flavor model.converters optimizer.name training.local_batch_size training.batch_size "
    "training.global_batch_size training.seq_len training.enable_cpu_offload training.mixed_precision_param "
    "training.mixed_precision_reduce parallelism.data_parallel_replicate_degree "
    "parallelism.data_parallel_shard_degree parallelism.fsdp_reshard_after_forward "
    "parallelism.tensor_parallel_degree parallelism.enable_async_tensor_parallel parallelism.pipeline_parallel_degree "
    "parallelism.pipeline_parallel_schedule parallelism.pipeline_parallel_microbatch_size "
    "parallelism.pipeline_parallel_layers_per_stage parallelism.context_parallel_degree "
    "parallelism.context_parallel_rotate_method parallelism.expert_parallel_degree "
    "parallelism.expert_tensor_parallel_degree activation_checkpoint.mode activation_checkpoint.selective_ac_option "
    "compile.enable training.compile";

static const struct dl_reason reasons[] = {
    {false, false, "logging and profiling: no part of a step", "job.* profiling.* metrics.* memory_estimation.*"},
    {false, false, "checkpoints: no part of a step", "checkpoint.*"},
    {false, false, "data and tokens: what a step computes does not depend on them",
     "model.tokenizer_path model.hf_assets_path model.tokenizer_backend training.dataset training.dataset_path "
     "training.dataloader.*"},
    {false, false, "values of the optimizer: time and memory do not depend on them",
     "optimizer.lr optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.weight_decay lr_scheduler.* "
     "training.max_norm training.seed"},
    {false, false, "how long the training takes: see --tokens and --samples of dlsim run",
     "training.steps validation.*"},
    {false, false, "checks and choices at the start",
     "comm.* experimental.* debug.* fault_tolerance.enable model.print_after_conversion training.gc_freq "
     "training.gc_debug "
     "training.debug_moe_force_load_balance"},
    {false, true, "how kernels are made: the software file says it",
     "compile.* training.deterministic optimizer.implementation optimizer.fused float8.* mx.* "
     "quantize.* parallelism.disable_loss_parallel parallelism.enable_compiled_autograd "
     "optimizer.early_step_in_backward"},
    {false, true, "which matrices are recomputed: dlsim has attention alone or whole blocks",
     "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns activation_checkpoint.early_stop "
     "activation_checkpoint.preserve_rng_state activation_checkpoint.determinism_check activation_checkpoint.debug"},
    {true, true, "list the blocks in layers_per_stage of dlsim's strategy instead",
     "parallelism.pipeline_parallel_split_points parallelism.module_fqns_per_model_part "
     "parallelism.pipeline_parallel_first_stage_less_layers parallelism.pipeline_parallel_last_stage_less_layers "
     "parallelism.pipeline_parallel_schedule_csv"},
    {true, true, "replicas that come and go: dlsim has a fixed number", "fault_tolerance.*"},
};

static bool recognises(const char *text, size_t bytes)
{
    static const char *const marks[] = {"[training]", "[parallelism]"};
    bool is_one = bytes > 0;
    for (size_t i = 0; i < DL_COUNT(marks); i++) is_one &= strstr(text, marks[i]) != NULL;
    return is_one;
}

/* ---- values ---- */

int64_t dl_titan_count(const struct dl_torchtitan *r, const char *name, int64_t absent)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (!at.value) return absent;
    static const json_int_t most = 1000000000;
    const json_int_t value = json_integer_value(at.value);
    if (!json_is_integer(at.value) || (value < 1 && value != absent) || value > most)
        dl_fail(r->err, DL_RANGE, at.where, "must be a whole number from 1 on, got %s",
                dl_shown_value(at.value, r->arena));
    else
        return value;
    dl_go_on(r->err);
    return absent;
}

bool dl_titan_truth(const struct dl_torchtitan *r, const char *name)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (at.value && !json_is_boolean(at.value)) dl_wrong_type(at, "true or false", r->err);
    dl_go_on(r->err);
    return json_is_true(at.value);
}

const char *dl_titan_word(const struct dl_torchtitan *r, const char *name, const struct dl_titan_word *words, size_t n)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (!at.value) return words[0].here;
    const char *const given = json_string_value(at.value);
    const char **const all = dl_arena_alloc(r->arena, n * sizeof *all);
    char hint[DL_HINT];
    for (size_t i = 0; i < n; i++) {
        all[i] = words[i].word;
        if (given && strcmp(words[i].word, given) == 0) return words[i].here;
    }
    dl_fail(r->err, DL_RANGE, at.where, "must be one of %s, got %s", dl_joined(all, n, hint),
            dl_shown_value(at.value, r->arena));
    dl_go_on(r->err);
    return words[0].here;
}

void dl_titan_differs(const struct dl_torchtitan *r, const char *key, const char *value, const char *why)
{
    dl_leave_out(r->out, (struct dl_left_out){.key = key, .value = value, .why = why, .matters = true}, r->arena);
}

/* ---- the model ---- */

/* Flavors that are shipped, by name/flavor. */
static const struct dl_titan_word models[] = {
    {"llama3/8B", "llama3-8b"},          {"llama3/70B", "llama3-70b"},       {"llama3/405B", "llama3-405b"},
    {"deepseek_v3/671B", "deepseek-v3"}, {"qwen3/30B-A3B", "qwen3-30b-a3b"}, {"qwen3/235B-A22B", "qwen3-235b-a22b"},
};

const char *dl_titan_text(const struct dl_torchtitan *r, const char *name, const char *absent)
{
    const struct dl_json at = dl_key_at(r->config, name, r->arena);
    if (at.value && !json_is_string(at.value)) dl_wrong_type(at, "a string", r->err);
    dl_go_on(r->err);
    return json_is_string(at.value) ? json_string_value(at.value) : absent;
}

static enum dl_status make_workload(const struct dl_torchtitan *r, const char *where)
{
    const char *const flavor = dl_arena_format(r->arena, "%s/%s", dl_titan_text(r, "model.name", "llama3"),
                                               dl_titan_text(r, "model.flavor", "debugmodel"));
    static const int64_t usual_seq = 2048; /* torchtitan's default */
    const char *shipped = NULL;
    for (size_t i = 0; i < DL_COUNT(models); i++)
        if (strcmp(models[i].word, flavor) == 0) shipped = models[i].here;
    if (!shipped) {
        dl_titan_differs(r, "model.flavor", flavor,
                         "no such model is shipped: run with --workload, and its seq as seq_len says");
        return DL_OK;
    }
    json_t *const workload =
        json_pack("{ss ss ss}", "schema", "dlsim/workload/1", "source",
                  dl_arena_format(r->arena, "%s, %s: %s", where, r->out->what, flavor), "like", shipped);
    r->out->workload = workload;
    dl_put_count(workload, "seq", dl_titan_count(r, "training.seq_len", usual_seq));
    const struct dl_json doc = {workload, where, NULL};
    return r->err->status ? r->err->status : dl_json_inherit(doc, "workloads/models", "workload", r->arena, r->err);
}

static enum dl_status read_config(struct dl_torchtitan *r, const char *where)
{
    static const struct dl_known_keys known = {"torchtitan", taken, reasons, DL_COUNT(reasons)};
    const size_t told = r->err->n_told;
    if (dl_check_keys(r->config, &known, r->arena, r->out, r->err)) return r->err->status;
    if (make_workload(r, where) && !dl_go_on(r->err)) return r->err->status;
    if (dl_titan_strategy(r) && !dl_go_on(r->err)) return r->err->status;
    return dl_stop_if_told(r->err, told);
}

static enum dl_status read(const char *text, const char *where, struct dl_arena *arena, struct dl_imported *out,
                           struct dl_error *err)
{
    out->what = "a configuration of torchtitan";
    struct dl_torchtitan r = {.arena = arena, .out = out, .err = err};
    r.config = (struct dl_json){dl_toml_read(text, where, arena, err), where, NULL};
    if (r.config.value) read_config(&r, where);
    json_decref(r.config.value);
    return err->status;
}

const struct dl_import_format dl_import_torchtitan = {
    .name = "torchtitan",
    .doc = "a TOML configuration of torchtitan, as a strategy",
    .recognises = recognises,
    .read = read,
};
