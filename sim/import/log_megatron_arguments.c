/* log_megatron_arguments.c - what the arguments of Megatron-LM say of a step. */
#include <string.h>

#include "sim/import/log_megatron.h"

const struct dl_log_option dl_megatron_options[DL_MEGATRON_OPTIONS] = {
    {"world_size", "devices"},
    {"data_parallel_size", "dp"},
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_model_parallel_size", "pp"},
    {"context_parallel_size", "cp"},
    {"expert_model_parallel_size", "ep"},
    {"virtual_pipeline_model_parallel_size", "vpp"},
    {"global_batch_size", "global_batch"},
    {"micro_batch_size", "microbatch"},
    {"num_layers", "layers"},
    {"hidden_size", "hidden"},
    {"ffn_hidden_size", "ffn"},
    {"num_attention_heads", "heads"},
    {"seq_length", "seq"},
    {"padded_vocab_size", "vocab"},
    {"num_experts", "experts"},
    {"moe_router_topk", NULL},
    {"moe_ffn_hidden_size", NULL},
    {"num_layers_per_virtual_pipeline_stage", NULL},
    {"vocab_size", NULL},
    {"make_vocab_size_divisible_by", NULL},
    {"group_query_attention", NULL},
    {"num_query_groups", NULL},
    {"sequence_parallel", NULL},
    {"use_distributed_optimizer", NULL},
    {"overlap_grad_reduce", NULL},
    {"recompute_granularity", NULL},
    {"recompute_method", NULL},
    {"recompute_num_layers", NULL},
    {"checkpoint_activations", NULL},
    {"fp8", NULL},
    {"fp16", NULL},
    {"bf16", NULL},
    {"use_flash_attn", NULL},
    {"attention_backend", NULL},
    {"transformer_impl", NULL},
    {"swiglu", NULL},
    {"normalization", NULL},
    {"untie_embeddings_and_output_weights", NULL},
    {"optimizer", NULL},
    /* What no key of a row stands for: told as left out where they are not as usual. */
    {"multi_latent_attention", NULL},
    {"moe_layer_freq", NULL},
    {"moe_shared_expert_intermediate_size", NULL},
    {"mtp_num_layers", NULL},
    {"expert_tensor_parallel_size", NULL},
    {"decoder_first_pipeline_num_layers", NULL},
    {"decoder_last_pipeline_num_layers", NULL},
    {"account_for_embedding_in_pipeline_split", NULL},
    {"use_torch_fsdp2", NULL},
    {"use_megatron_fsdp", NULL},
    {"cpu_offloading", NULL},
    {"optimizer_cpu_offload", NULL},
    {"recompute_modules", NULL},
};

/* ---- the model ---- */

static void say_model(struct dl_log_reader *r)
{
    const bool is_llama = dl_log_is_true(r, "swiglu") && dl_log_is(r, "normalization", "RMSNorm");
    if (dl_log_is_true(r, "group_query_attention")) dl_log_say(r, "kv_heads", dl_log_count(r, "num_query_groups"));
    if (dl_log_count(r, "num_experts")) {
        dl_log_say(r, "top_k", dl_log_count(r, "moe_router_topk"));
        dl_log_say(r, "expert_ffn", dl_log_count(r, "moe_ffn_hidden_size"));
    }
    if (!dl_log_count(r, "num_layers")) return;
    dl_log_say_text(r, "style", is_llama ? "llama" : "gpt");
    if (dl_log_get(r, "untie_embeddings_and_output_weights"))
        json_object_set_new(r->log.row, "tied_embedding",
                            json_integer(!dl_log_is_true(r, "untie_embeddings_and_output_weights")));
}

/* Rounded up, so that each tensor rank has as many rows of the embedding. */
static void say_vocab(struct dl_log_reader *r)
{
    const int64_t vocab = dl_log_count(r, "vocab_size"), tp = dl_log_count(r, "tensor_model_parallel_size"),
                  multiple = dl_log_count(r, "make_vocab_size_divisible_by") * (tp ? tp : 1);
    if (dl_log_count(r, "padded_vocab_size") || !vocab) return;
    dl_log_say(r, "vocab", multiple ? (vocab + multiple - 1) / multiple * multiple : vocab);
}

/* ---- how it ran ---- */

static void say_chunks(struct dl_log_reader *r)
{
    const int64_t layers = dl_log_count(r, "num_layers"), pp = dl_log_count(r, "pipeline_model_parallel_size"),
                  each = dl_log_count(r, "num_layers_per_virtual_pipeline_stage");
    if (layers && pp && each && !dl_log_count(r, "virtual_pipeline_model_parallel_size"))
        dl_log_say(r, "vpp", layers / pp / each);
}

/* With the method "block" only some layers of a part are recomputed, which an entry of the stack says. */
static void say_recomputation(struct dl_log_reader *r, json_t *stack)
{
    const int64_t layers = dl_log_count(r, "recompute_num_layers");
    const char *const what = dl_log_get(r, "recompute_granularity");
    if (what && layers && dl_log_is(r, "recompute_method", "block"))
        json_array_append_new(
            stack, json_pack("{s:s, s:s, s:I}", "name", "recompute", "mode", what, "layers", (json_int_t)layers));
    else
        dl_log_say_text(r, "recompute", what ? what : dl_log_is_true(r, "checkpoint_activations") ? "full" : NULL);
}

static void say_stack(struct dl_log_reader *r)
{
    json_t *const stack = json_array();
    say_recomputation(r, stack);
    if (dl_log_get(r, "overlap_grad_reduce"))
        json_array_append_new(
            stack, json_pack("{s:s, s:b}", "name", "data", "overlap", dl_log_is_true(r, "overlap_grad_reduce")));
    if (json_array_size(stack)) json_object_set(r->log.row, "stack", stack);
    json_decref(stack);
}

static void say_numbers(struct dl_log_reader *r)
{
    const char *const fp8 = dl_log_get(r, "fp8");
    const bool has_fp8 = fp8 && !dl_log_is(r, "fp8", "false");
    dl_log_say_text(r, "precision",
                    has_fp8                         ? "fp8"
                    : dl_log_is_true(r, "bf16")     ? "bf16"
                    : dl_log_is_true(r, "fp16")     ? "fp16"
                    : dl_log_is(r, "fp16", "false") ? "fp32"
                                                    : NULL);
}

/* Versions are told apart by the arguments that they have. */
static void find_software(struct dl_log_reader *r)
{
    const bool has_engine = dl_log_get(r, "transformer_impl"), is_flash = dl_log_is_true(r, "use_flash_attn");
    r->log.software = has_engine || !dl_log_get(r, "tensor_model_parallel_size") ? "megatron-core"
                      : dl_log_get(r, "sequence_parallel")                       ? "megatron-2022"
                                                                                 : "megatron-2021";
    if (dl_log_is(r, "transformer_impl", "local") || (!has_engine && dl_log_get(r, "use_flash_attn")))
        dl_log_say_text(r, "attention", is_flash ? "flash" : "unfused");
    if (dl_log_is(r, "attention_backend", "AttnBackend.unfused")) dl_log_say_text(r, "attention", "unfused");
}

/* Each with what it is where nothing is left out. */
static void leave_rest(struct dl_log_reader *r)
{
    static const struct {
        const char *name, *usual;
    } rest[] = {{"multi_latent_attention", "False"},
                {"moe_layer_freq", "1"},
                {"moe_shared_expert_intermediate_size", "0"},
                {"mtp_num_layers", "0"},
                {"decoder_first_pipeline_num_layers", "0"},
                {"decoder_last_pipeline_num_layers", "0"},
                {"account_for_embedding_in_pipeline_split", "False"},
                {"use_torch_fsdp2", "False"},
                {"use_megatron_fsdp", "False"},
                {"cpu_offloading", "False"},
                {"optimizer_cpu_offload", "False"}};
    for (size_t i = 0; i < DL_COUNT(rest); i++)
        if (!dl_log_is(r, rest[i].name, rest[i].usual)) dl_log_leave(r, rest[i].name);
    if (dl_log_count(r, "num_experts") && dl_log_get(r, "expert_tensor_parallel_size") &&
        dl_log_count(r, "expert_tensor_parallel_size") != dl_log_count(r, "tensor_model_parallel_size"))
        dl_log_leave(r, "expert_tensor_parallel_size");
}

void dl_megatron_finish(struct dl_log_reader *r)
{
    dl_log_say_options(r);
    dl_log_say(r, "global_batch", dl_log_batch(&r->log)); /* that of a ramp comes from its steps */
    say_model(r);
    say_vocab(r);
    say_chunks(r);
    say_stack(r);
    say_numbers(r);
    if (dl_log_count(r, "tensor_model_parallel_size") > 1) dl_log_say(r, "sp", dl_log_is_true(r, "sequence_parallel"));
    dl_log_say(r, "zero", dl_log_is_true(r, "use_distributed_optimizer"));
    find_software(r);
    leave_rest(r);
    r->log.says_layout =
        dl_log_count(r, "tensor_model_parallel_size") && dl_log_count(r, "pipeline_model_parallel_size");
}
