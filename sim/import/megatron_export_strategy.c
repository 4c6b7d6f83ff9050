/* megatron_export_strategy.c - a strategy as Megatron's flags of the training. */
#include <string.h>

#include "sim/import/megatron_export.h"

static const char no_flag[] = "Megatron-LM has no flag for it";

/* NULL: the stack has no such entry. */
static json_t *entry_of(const struct dl_megatron_export *x, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(x->strategy.value, "stack"), i, entry)
    {
        if (dl_megatron_is((struct dl_json){.value = entry}, "name", name)) return entry;
    }
    return NULL;
}

static int64_t ways_of(const struct dl_megatron_export *x, const char *name)
{
    return dl_megatron_count((struct dl_json){.value = entry_of(x, name)}, "ways", 1);
}

static int64_t replicas_of(const struct dl_megatron_export *x)
{
    const int64_t others = ways_of(x, "tensor") * ways_of(x, "pipeline") * ways_of(x, "context");
    return x->devices ? x->devices / others : 1;
}

/* ---- entries of the stack ---- */

static const char *with_blocks(const struct dl_megatron_export *x, const char *layout, char kind, int64_t n)
{
    return n ? dl_arena_format(x->arena, "%s%c*%lld", layout, kind, (long long)n) : layout;
}

/* Parts of the model with so many blocks each, as a layout; the last of all blocks predict further tokens. */
static void put_layout(struct dl_megatron_export *x, struct dl_json entry, const json_t *counts)
{
    const int64_t all_further = dl_megatron_count(x->workload, "mtp_layers", 0);
    const size_t parts = json_array_size(counts), stages = (size_t)dl_megatron_count(entry, "ways", 1);
    const char *layout = "E";
    int64_t rest = -all_further; /* layers that are not dealt yet */
    bool are_together = true;
    for (size_t i = 0; i < parts; i++) rest += json_integer_value(json_array_get(counts, i));
    for (size_t i = 0; i < parts; i++) {
        const int64_t n = json_integer_value(json_array_get(counts, i)), layers = n < rest ? n : rest;
        layout = with_blocks(x, dl_arena_format(x->arena, "%s%s", layout, i ? "|" : ""), 't', layers);
        layout = with_blocks(x, layout, 'm', n - layers);
        are_together &= n == layers || (n - layers == all_further && i + stages >= parts);
        rest -= layers;
    }
    dl_words_add(&x->flags, dl_arena_format(x->arena, "--pipeline-model-parallel-layout '%sL'", layout), 0);
    if (!are_together)
        dl_megatron_without(x, entry, "layers_per_stage",
                            "Megatron-LM has modules of mtp_layers in one part, the last of its stage");
}

/* Where dlsim deals all blocks alike. */
static void leave_further(struct dl_megatron_export *x, struct dl_json entry)
{
    if (dl_megatron_count(x->workload, "mtp_layers", 0) && dl_megatron_count(entry, "ways", 1) > 1)
        dl_megatron_without(x, entry, "ways",
                            "Megatron-LM deals layers alone, and has modules of mtp_layers on the last part; list the "
                            "blocks in layers_per_stage, and a layout says it");
}

static void put_pipeline(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"ways", "schedule", "chunks", "group", "split", "layers_per_stage", NULL};
    const int64_t chunks = dl_megatron_count(e, "chunks", 1);
    const json_t *const listed = json_object_get(e.value, "layers_per_stage");
    const bool one = chunks == 1 && (!json_object_get(e.value, "schedule") || dl_megatron_is(e, "schedule", "1f1b"));
    dl_megatron_put(x, "--pipeline-model-parallel-size %lld", (long long)dl_megatron_count(e, "ways", 1));
    if (!one && !(chunks > 1 && dl_megatron_is(e, "schedule", "interleaved")))
        dl_megatron_without(x, e, "schedule", "Megatron-LM has 1f1b, and interleaved where a stage has several parts");
    if (listed)
        put_layout(x, e, listed);
    else if (chunks > 1)
        dl_megatron_put(x, "--num-virtual-stages-per-pipeline-rank %lld", (long long)chunks);
    if (!listed) leave_further(x, e);
    if (json_object_get(e.value, "group"))
        dl_megatron_put(x, "--microbatch-group-size-per-virtual-pipeline-stage %lld",
                        (long long)dl_megatron_count(e, "group", 1));
    if (dl_megatron_is(e, "split", "count_ends"))
        dl_megatron_put(x, "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
    else if (json_object_get(e.value, "split") && !dl_megatron_is(e, "split", "even"))
        dl_megatron_without(x, e, "split", "list the blocks in layers_per_stage, and a layout says it");
    dl_megatron_without_others(x, e, known, "list the blocks in layers_per_stage, and a layout says it");
}

static void put_tensor(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"ways", "sequence", "overlap_chunks", "grid", NULL};
    const int64_t ways = dl_megatron_count(e, "ways", 1), parts = dl_megatron_count(e, "overlap_chunks", 1);
    dl_megatron_put(x, "--tensor-model-parallel-size %lld", (long long)ways);
    if (dl_megatron_true(e, "sequence", false)) dl_megatron_put(x, "--sequence-parallel");
    if (parts == ways && ways > 1)
        dl_megatron_put(x, "--tp-comm-overlap");
    else if (parts > 1)
        dl_megatron_without(x, e, "overlap_chunks", "--tp-comm-overlap has as many parts as tensor ranks");
    if (json_object_get(e.value, "grid") && !dl_megatron_is(e, "grid", "1d"))
        dl_megatron_without(x, e, "grid", "Megatron-LM divides layers in one dimension");
    dl_megatron_without_others(x, e, known, no_flag);
}

static void put_context(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"ways", "kind", "zigzag", NULL};
    const bool alltoall = dl_megatron_is(e, "kind", "alltoall");
    dl_megatron_put(x, "--context-parallel-size %lld", (long long)dl_megatron_count(e, "ways", 1));
    if (alltoall) dl_megatron_put(x, "--cp-comm-type a2a");
    if (dl_megatron_is(e, "kind", "allgather")) dl_megatron_put(x, "--cp-comm-type all_gather");
    if (dl_megatron_true(e, "zigzag", false) == alltoall)
        dl_megatron_without(x, e, "zigzag", "Megatron-LM gives each rank two parts of a sequence, but for a2a");
    dl_megatron_without_others(x, e, known, no_flag);
}

/* It needs a capacity, which the workload may have said. */
static void put_even(struct dl_megatron_export *x)
{
    dl_megatron_put(x, "--moe-pad-expert-input-to-capacity");
    if (!json_object_get(x->workload.value, "capacity_factor")) dl_megatron_put(x, "--moe-expert-capacity-factor 1");
}

static void put_expert(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"ways",        "dispatch",     "overlap", "over_tensor",
                                        "tensor_ways", "over_context", "even",    NULL};
    const int64_t ways = dl_megatron_count(e, "ways", 1), tensor_ways = dl_megatron_count(e, "tensor_ways", 1);
    const bool over_tensor = dl_megatron_true(e, "over_tensor", false);
    const bool is_beyond = ways > (over_tensor ? ways_of(x, "tensor") / tensor_ways : 1) && ways_of(x, "context") > 1;
    dl_megatron_put(x, "--expert-model-parallel-size %lld", (long long)ways);
    if (over_tensor) dl_megatron_put(x, "--expert-tensor-parallel-size %lld", (long long)tensor_ways);
    if (dl_megatron_true(e, "even", false)) put_even(x);
    if (is_beyond && !dl_megatron_true(e, "over_context", false))
        dl_megatron_without(x, e, "over_context", "Megatron-LM has experts over context ranks before those of data");
    dl_megatron_put(x, "--moe-token-dispatcher-type %s",
                    dl_megatron_is(e, "dispatch", "to_nodes") ? "flex" : "alltoall");
    if (dl_megatron_true(e, "overlap", false)) dl_megatron_put(x, "--overlap-moe-expert-parallel-comm");
    dl_megatron_without_others(x, e, known, no_flag);
}

static void put_data(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"overlap", "bucket_bytes", "exchange", NULL};
    static const int64_t gradient_bytes = 4;
    const int64_t bucket = dl_megatron_count(e, "bucket_bytes", 0);
    if (dl_megatron_true(e, "overlap", false)) dl_megatron_put(x, "--overlap-grad-reduce");
    if (bucket) dl_megatron_put(x, "--ddp-bucket-size %lld", (long long)(bucket / gradient_bytes));
    if (json_object_get(e.value, "exchange") && !dl_megatron_is(e, "exchange", "allreduce"))
        dl_megatron_without(x, e, "exchange", no_flag);
    dl_megatron_without_others(x, e, known, no_flag);
}

static void put_param_overlap(struct dl_megatron_export *x, struct dl_json e, int64_t stage)
{
    if (stage == 1)
        dl_megatron_put(x, "--overlap-param-gather");
    else
        dl_megatron_without(x, e, "overlap", "Megatron-LM has stage 2 by FSDP, which gathers in its own way");
}

static void put_zero(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"stage", "overlap", "shard_ways", "gather_bits", NULL};
    const int64_t stage = dl_megatron_count(e, "stage", 1), shard = dl_megatron_count(e, "shard_ways", 0);
    const int64_t bits = dl_megatron_count(e, "gather_bits", 0);
    dl_megatron_put(x, "--use-distributed-optimizer");
    if (stage > 1)
        dl_megatron_put(x, "--use-megatron-fsdp --data-parallel-sharding-strategy %s",
                        stage == 2 ? "optim_grads" : "optim_grads_params");
    if (dl_megatron_true(e, "overlap", false)) put_param_overlap(x, e, stage);
    if (shard && replicas_of(x) % shard == 0)
        dl_megatron_put(x, "--num-distributed-optimizer-instances %lld", (long long)(replicas_of(x) / shard));
    else if (shard)
        dl_megatron_without(x, e, "shard_ways", "it does not divide the replicas");
    if (bits == 8)
        dl_megatron_put(x, "--fp8-param-gather");
    else if (bits)
        dl_megatron_without(x, e, "gather_bits", "Megatron-LM has 8 bits, by --fp8-param-gather");
    dl_megatron_without_others(x, e, known, no_flag);
}

static void put_modules(struct dl_megatron_export *x, struct dl_json e)
{
    const json_t *const modules = json_object_get(e.value, "modules");
    const char *words = modules ? " --recompute-modules" : "";
    for (size_t i = 0; i < json_array_size(modules); i++)
        words = dl_arena_format(x->arena, "%s %s", words, json_string_value(json_array_get(modules, i)));
    dl_megatron_put(x, "--recompute-granularity selective%s", words);
}

static void put_recompute(struct dl_megatron_export *x, struct dl_json e)
{
    const int64_t layers = dl_megatron_count(e, "layers", 0), every = dl_megatron_count(e, "every", 1);
    const char *const key = json_object_get(e.value, "mode") ? "mode" : "recompute"; /* of an entry, of a strategy */
    if (dl_megatron_is(e, key, "selective")) put_modules(x, e);
    if (!dl_megatron_is(e, key, "full")) return;
    dl_megatron_put(x, "--recompute-granularity full --recompute-method %s --recompute-num-layers %lld",
                    layers ? "block" : "uniform", (long long)(layers ? layers : every));
    static const char *const kept[] = {"keeps", "kept_results", "kept_before_bias"};
    for (size_t i = 0; i < DL_COUNT(kept); i++)
        if (json_object_get(e.value, kept[i]) && !json_is_false(json_object_get(e.value, kept[i])))
            dl_megatron_without(x, e, kept[i], "Megatron-LM keeps the input alone, or recomputes modules");
    if (layers && every > 1) dl_megatron_without(x, e, "every", "Megatron-LM has it or the number of layers");
}

static void put_offload(struct dl_megatron_export *x, struct dl_json e)
{
    static const char *const known[] = {"optimizer", "activations", NULL};
    const double optimizer = json_number_value(json_object_get(e.value, "optimizer"));
    const double activations = json_number_value(json_object_get(e.value, "activations"));
    const int64_t layers = dl_megatron_count(x->workload, "layers", 0);
    const double moved = activations * (double)layers;
    if (optimizer > 0) dl_megatron_put(x, "--optimizer-cpu-offload --optimizer-offload-fraction %.17g", optimizer);
    if (activations > 0 && moved == (double)(int64_t)moved)
        dl_megatron_put(x, "--cpu-offloading-num-layers %lld", (long long)moved);
    else if (activations > 0)
        dl_megatron_without(x, e, "activations", "Megatron-LM has whole layers");
    dl_megatron_without_others(x, e, known, no_flag);
}

static void put_graphs(struct dl_megatron_export *x, struct dl_json e)
{
    dl_megatron_put(x, dl_megatron_is(e, "scope", "step") ? "--cuda-graph-impl local --cuda-graph-scope full_iteration"
                                                          : "--cuda-graph-impl transformer_engine");
}

static const struct {
    const char *name;
    void (*put)(struct dl_megatron_export *x, struct dl_json entry);
} entries[] = {
    {"pipeline", put_pipeline},   {"tensor", put_tensor},   {"context", put_context},
    {"expert", put_expert},       {"data", put_data},       {"zero", put_zero},
    {"recompute", put_recompute}, {"offload", put_offload}, {"graphs", put_graphs},
};

static void put_entry(struct dl_megatron_export *x, struct dl_json e)
{
    for (size_t i = 0; i < DL_COUNT(entries); i++)
        if (dl_megatron_is(e, "name", entries[i].name)) {
            entries[i].put(x, e);
            return;
        }
    dl_megatron_without(x, e, "name", no_flag);
}

/* ---- keys ---- */

static const struct {
    const char *key, *value, *flags;
    const char *without_zero; /* NULL: the same flags */
} words[] = {
    {"precision", "fp16", "--fp16", NULL},
    {"precision", "bf16", "--bf16", NULL},
    {"precision", "fp8", "--bf16 --fp8-format hybrid", NULL},
    {"precision", "mxfp8", "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", NULL},
    {"precision", "nvfp4", "--bf16 --fp4-format e2m1", NULL},
    {"precision", "fp32", "", NULL},
    {"optimizer", "adam", "--optimizer adam", NULL},
    {"optimizer", "adam_bf16",
     "--optimizer adam --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
     "--optimizer adam"},
    {"optimizer", "momentum", "--optimizer sgd", NULL},
    {"optimizer", "sgd", "--optimizer sgd --sgd-momentum 0", NULL},
};

/* Megatron-Core refuses the flags of moments in bf16 without --use-distributed-optimizer. */
static const char *flags_of(struct dl_megatron_export *x, size_t word)
{
    if (!words[word].without_zero || entry_of(x, "zero")) return words[word].flags;
    dl_megatron_without(x, x->strategy, words[word].key,
                        "Megatron-LM has moments in bf16 with its distributed optimizer only: zero");
    return words[word].without_zero;
}

static void put_words(struct dl_megatron_export *x)
{
    static const char *const keys[] = {"precision", "optimizer"};
    static const char *const absent[] = {"bf16", "adam"};
    for (size_t k = 0; k < DL_COUNT(keys); k++) {
        const char *const given = json_string_value(json_object_get(x->strategy.value, keys[k]));
        const char *const value = given ? given : absent[k];
        size_t i = 0;
        while (i < DL_COUNT(words) && (strcmp(words[i].key, keys[k]) || strcmp(words[i].value, value))) i++;
        if (i == DL_COUNT(words))
            dl_megatron_without(x, x->strategy, keys[k], no_flag);
        else if (*words[i].flags)
            dl_megatron_put(x, "%s", flags_of(x, i));
    }
}

static void put_wide_blocks(struct dl_megatron_export *x)
{
    const long long first = (long long)dl_megatron_count(x->strategy, "wide_first_blocks", 0),
                    last = (long long)dl_megatron_count(x->strategy, "wide_last_blocks", 0);
    if (first + last == 0) return;
    dl_megatron_put(x, "--first-last-layers-bf16 --num-layers-at-start-in-bf16 %lld --num-layers-at-end-in-bf16 %lld",
                    first, last);
}

/* Where an axis stands among those of several ways. */
static void put_order(struct dl_megatron_export *x)
{
    static const char *const usual[] = {"tensor", "context", "data", "pipeline"};
    static const char *const other[] = {"tensor", "context", "pipeline", "data"};
    const json_t *const order = json_object_get(x->strategy.value, "order");
    size_t at_usual = 0, at_other = 0;
    for (size_t i = 0; i < json_array_size(order); i++) {
        const char *const axis = json_string_value(json_array_get(order, i));
        while (axis && at_usual < DL_COUNT(usual) && strcmp(usual[at_usual], axis)) at_usual++;
        while (axis && at_other < DL_COUNT(other) && strcmp(other[at_other], axis)) at_other++;
    }
    if (at_usual < DL_COUNT(usual)) return;
    if (at_other < DL_COUNT(other))
        dl_megatron_put(x, "--use-tp-pp-dp-mapping");
    else
        dl_megatron_without(x, x->strategy, "order", "Megatron-LM has tensor, context, then data and pipeline");
}

void dl_megatron_export_strategy(struct dl_megatron_export *x)
{
    static const char *const known[] = {
        "workload",  "devices", "global_batch", "microbatch",        "precision",        "optimizer", "order",
        "recompute", "stack",   "software",     "wide_first_blocks", "wide_last_blocks", NULL};
    const struct dl_json stack = dl_json_member(x->strategy, "stack", x->arena);
    const struct dl_json s = x->strategy;
    x->devices = x->devices ? x->devices : dl_megatron_count(s, "devices", 0);
    dl_megatron_put(x, "--micro-batch-size %lld", (long long)dl_megatron_count(s, "microbatch", 1));
    dl_megatron_put(x, "--global-batch-size %lld", (long long)dl_megatron_count(s, "global_batch", 1));
    for (size_t i = 0; i < json_array_size(stack.value); i++) put_entry(x, dl_json_element(stack, i, x->arena));
    put_words(x);
    put_wide_blocks(x);
    put_recompute(x, s);
    put_order(x);
    if (json_object_get(s.value, "software") && !dl_megatron_is(s, "software", "megatron-core"))
        dl_megatron_without(x, s, "software", "flags do not say the version: they are read back as megatron-core");
    dl_megatron_without_others(x, s, known, no_flag);
}
