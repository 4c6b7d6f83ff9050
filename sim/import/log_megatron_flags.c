/* log_megatron_flags.c - the block of arguments in a log of Megatron-LM as the flags that were given, which the reader
 * of its launch scripts takes.
 *
 * The rule to remember: the block has every argument, most of them at their defaults, so a flag is made only of what is
 * set, and only where what it belongs to is set. */
#include <string.h>

#include "sim/import/log_megatron.h"
#include "sim/import/log_text.h"
#include "sim/import/megatron.h"

/* ---- what an argument means ---- */

/* Switches that turn off what the argument says is on. */
static const struct {
    const char *flag, *argument;
} negations[] = {{"disable-bias-linear", "add_bias_linear"},
                 {"no-position-embedding", "add_position_embedding"},
                 {"no-scatter-gather-tensors-in-pipeline", "scatter_gather_tensors_in_pipeline"}};

/* Arguments that are not called like their flags. */
static const struct {
    const char *flag, *argument;
} others[] = {{"fp8-format", "fp8"},
              {"fp4-format", "fp4"},
              {"num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size"},
              {"microbatch-group-size-per-virtual-pipeline-stage", "microbatch_group_size_per_vp_stage"}};

/* What flags belong to, by what they begin with: they mean nothing where that argument is not set. */
static const struct {
    const char *beginning, *argument;
} owners[] = {{"num-query-groups", "group_query_attention"},
              {"microbatch-group-size-", "virtual_pipeline_model_parallel_size"},
              {"recompute-method", "recompute_granularity"},
              {"recompute-num-layers", "recompute_method"},
              {"recompute-modules", "recompute_granularity"},
              {"fp8-recipe", "fp8"},
              {"fp8-param", "fp8"},
              {"fp4-recipe", "fp4"},
              {"num-layers-at-", "first_last_layers_bf16"},
              {"optimizer-offload-fraction", "optimizer_cpu_offload"},
              {"sgd-momentum", NULL}, /* its default is printed with Adam, too */
              {"main-", "use_precision_aware_optimizer"},
              {"exp-avg", "use_precision_aware_optimizer"},
              {"megatron-fsdp-main", "use_megatron_fsdp"},
              {"cuda-graph-scope", "cuda_graph_impl"},
              {"moe-", "num_experts"},
              {"expert-tensor", "num_experts"},
              {"q-lora-rank", "multi_latent_attention"},
              {"kv-lora-rank", "multi_latent_attention"},
              {"qk-head-dim", "multi_latent_attention"},
              {"qk-pos-emb", "multi_latent_attention"},
              {"v-head-dim", "multi_latent_attention"}};

/* Words of the block that the command line has others for. */
static const struct {
    const char *printed, *word;
} words[] = {{"float32", "fp32"}, {"bfloat16", "bf16"}};

/* What may be set and that no flag stands for: such a run is another one. */
static const char *const rest[] = {"hybrid_override_pattern",
                                   "hybrid_layer_pattern",
                                   "is_hybrid_model",
                                   "heterogeneous_layers_config_path",
                                   "experimental_attention_variant",
                                   "window_size",
                                   "export_kd_teacher_load",
                                   "perform_rl_step",
                                   "moe_latent_size",
                                   "moe_use_upcycling",
                                   "fine_grained_activation_offloading",
                                   "hierarchical_context_parallel_sizes",
                                   "fp4_param",
                                   "fp4_param_gather"};

static const char *argument_of(const char *flag, struct dl_arena *arena)
{
    for (size_t i = 0; i < DL_COUNT(others); i++)
        if (strcmp(others[i].flag, flag) == 0) return others[i].argument;
    char *const name = dl_arena_string(arena, flag);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    return name;
}

static bool is_set(const struct dl_log_reader *r, const char *argument)
{
    static const char *const unset[] = {"False", "0", "none", "[]", "no_shard"};
    for (size_t i = 0; i < DL_COUNT(unset); i++)
        if (dl_log_is(r, argument, unset[i])) return false;
    return dl_log_get(r, argument) != NULL;
}

static bool has_owner(const struct dl_log_reader *r, const char *flag)
{
    for (size_t i = 0; i < DL_COUNT(owners); i++)
        if (strncmp(owners[i].beginning, flag, strlen(owners[i].beginning)) == 0)
            return owners[i].argument && is_set(r, owners[i].argument);
    return true;
}

/* Without the name of an enumeration (AttnBackend.auto), a module (torch.float32), brackets and blanks of a list. */
static const char *word_of(const char *text, struct dl_arena *arena)
{
    const char *const dot = strrchr(text, '.');
    char *const word = dl_arena_string(arena, dot ? dot + 1 : text);
    size_t n = 0;
    for (const char *c = word; *c; c++)
        if (!strchr("[]' ", *c)) word[n++] = *c;
    word[n] = 0;
    for (size_t i = 0; i < DL_COUNT(words); i++)
        if (strcmp(words[i].printed, word) == 0) return words[i].word;
    return word;
}

/* Of a list, with blanks between them. */
static const char *words_of(const char *text, struct dl_arena *arena)
{
    char *const list = dl_arena_string(arena, text);
    for (char *c = list; *c; c++)
        if (strchr("[]',", *c)) *c = ' ';
    return list;
}

static bool is_choice(const char *const *choices, const char *word)
{
    for (; *choices; choices++)
        if (strcmp(*choices, word) == 0) return true;
    return false;
}

/* ---- the list ---- */

static const char *add(const char *list, const char *flag, const char *value, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s --%s%s%s", list, flag, value ? " " : "", value ? value : "");
}

static const char *add_flag(struct dl_log_reader *r, const char *list, const struct dl_megatron_flag *flag)
{
    const char *const argument = argument_of(flag->name, r->arena);
    const bool may_be_0 = flag->kind == DL_FLAG_NUMBER && dl_log_is(r, argument, "0");
    if ((!is_set(r, argument) && !may_be_0) || !has_owner(r, flag->name)) return list;
    const char *const text = dl_log_get(r, argument);
    switch (flag->kind) {
    case DL_FLAG_SWITCH: return dl_log_is_true(r, argument) ? add(list, flag->name, NULL, r->arena) : list;
    case DL_FLAG_COUNT: return dl_log_count(r, argument) ? add(list, flag->name, text, r->arena) : list;
    case DL_FLAG_CHOICE:
        if (is_choice(flag->choices, word_of(text, r->arena)))
            return add(list, flag->name, word_of(text, r->arena), r->arena);
        dl_log_leave(r, argument);
        return list;
    case DL_FLAG_WORDS: return add(list, flag->name, words_of(text, r->arena), r->arena);
    default:
        return add(list, flag->name, dl_arena_format(r->arena, "'%s'", dl_log_until(text, "'", r->arena)), r->arena);
    }
}

static const char *list_flags(struct dl_log_reader *r)
{
    const int64_t devices = dl_log_count(r, "world_size");
    const char *list =
        devices ? dl_arena_format(r->arena, "torchrun --nproc_per_node %lld pretrain_gpt.py", (long long)devices)
                : "pretrain_gpt.py";
    for (size_t i = 0; i < dl_megatron_flag_count(); i++) list = add_flag(r, list, dl_megatron_flag_get(i));
    for (size_t i = 0; i < DL_COUNT(negations); i++)
        if (dl_log_is(r, negations[i].argument, "False")) list = add(list, negations[i].flag, NULL, r->arena);
    return list;
}

/* ---- the documents ---- */

static void take(struct dl_log_reader *r, struct dl_imported *from)
{
    r->log.strategy = json_incref(from->strategy);
    r->log.workload = json_incref(from->workload);
    r->log.own_software = json_incref(from->software);
    for (size_t i = 0; i < from->n_left_out; i++)
        if (from->left_out[i].matters && r->log.n_rest < DL_LOG_RESTS)
            r->log.rest[r->log.n_rest++] = (struct dl_log_rest){from->left_out[i].key, from->left_out[i].value};
}

void dl_megatron_import(struct dl_log_reader *r)
{
    const char *const list = list_flags(r);
    const struct dl_foreign file = {list, strlen(list), "arguments", "megatron"};
    const struct dl_import_format *format;
    struct dl_imported imported = {0};
    struct dl_error err = {0};
    if (dl_import(&file, r->arena, &imported, &format, &err))
        r->log.refusal = dl_arena_string(r->arena, err.text);
    else
        take(r, &imported);
    dl_imported_release(&imported);
    for (size_t i = 0; i < DL_COUNT(rest); i++)
        if (is_set(r, rest[i])) dl_log_leave(r, rest[i]);
}
