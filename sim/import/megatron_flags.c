/* megatron_flags.c - the flags of Megatron-LM that become a part of a workload, a strategy or the software. */
#include <stddef.h>

#include "sim/import/megatron.h"

const struct dl_megatron dl_megatron_defaults = {.hidden_dropout = -1,
                                                 .attention_dropout = -1,
                                                 .sgd_momentum = -1,
                                                 .offload_fraction = -1,
                                                 .wide_first = -1,
                                                 .wide_last = -1};

#define AT(member) offsetof(struct dl_megatron, member)
#define COUNT(name, member)                                                                                            \
    {                                                                                                                  \
        name, DL_FLAG_COUNT, AT(member), NULL                                                                          \
    }
#define SWITCH(name, member)                                                                                           \
    {                                                                                                                  \
        name, DL_FLAG_SWITCH, AT(member), NULL                                                                         \
    }
#define CHOICE(name, member, choices)                                                                                  \
    {                                                                                                                  \
        name, DL_FLAG_CHOICE, AT(member), choices                                                                      \
    }
#define WORD(name, member)                                                                                             \
    {                                                                                                                  \
        name, DL_FLAG_WORD, AT(member), NULL                                                                           \
    }
#define WORDS(name, member)                                                                                            \
    {                                                                                                                  \
        name, DL_FLAG_WORDS, AT(member), NULL                                                                          \
    }

static const char *const positions[] = {"learned_absolute", "rope", "none", "yarn", "relative", NULL};
static const char *const norms[] = {"LayerNorm", "RMSNorm", NULL};
static const char *const context_kinds[] = {"p2p", "a2a", "all_gather", "allgather", NULL};
static const char *const dispatchers[] = {"allgather", "alltoall", "flex", NULL};
static const char *const shardings[] = {"no_shard", "optim", "optim_grads", "optim_grads_params", NULL};
static const char *const recomputes[] = {"full", "selective", NULL};
static const char *const recompute_methods[] = {"uniform", "block", NULL};
static const char *const fp8_formats[] = {"e4m3", "hybrid", NULL};
static const char *const fp8_recipes[] = {"delayed", "tensorwise", "blockwise", "mxfp8", NULL};
static const char *const fp4_formats[] = {"e2m1", NULL};
static const char *const fp4_recipes[] = {"nvfp4", NULL};
static const char *const optimizers[] = {"adam", "sgd", NULL};
static const char *const attentions[] = {"auto", "flash", "fused", "unfused", "local", NULL};
static const char *const implementations[] = {"local", "transformer_engine", NULL};
static const char *const loss_kinds[] = {"native", "te", NULL};
static const char *const graph_kinds[] = {"none", "local", "transformer_engine", NULL};
static const char *const specs[] = {"local", NULL};
static const char *const fp32_only[] = {"fp32", NULL};
static const char *const gradient_types[] = {"fp32", "bf16", NULL};

static const struct dl_megatron_flag flags[] = {
    COUNT("num-layers", layers),
    COUNT("encoder-num-layers", encoder_layers),
    COUNT("decoder-num-layers", decoder_layers),
    COUNT("hidden-size", hidden),
    COUNT("ffn-hidden-size", ffn),
    COUNT("num-attention-heads", heads),
    SWITCH("group-query-attention", grouped_queries),
    COUNT("num-query-groups", query_groups),
    COUNT("kv-channels", kv_channels),
    COUNT("seq-length", seq),
    COUNT("encoder-seq-length", encoder_seq),
    COUNT("decoder-seq-length", decoder_seq),
    {"encoder-pipeline-model-parallel-size", DL_FLAG_NUMBER, AT(encoder_stages), NULL},
    COUNT("max-position-embeddings", max_positions),
    CHOICE("position-embedding-type", positions, positions),
    SWITCH("use-rotary-position-embeddings", rotary),
    SWITCH("no-position-embedding", no_positions),
    CHOICE("normalization", norm, norms),
    SWITCH("swiglu", swiglu),
    SWITCH("squared-relu", squared_relu),
    SWITCH("quick-geglu", quick_geglu),
    SWITCH("disable-bias-linear", no_bias),
    SWITCH("add-qkv-bias", qkv_bias),
    {"hidden-dropout", DL_FLAG_SHARE, AT(hidden_dropout), NULL},
    {"attention-dropout", DL_FLAG_SHARE, AT(attention_dropout), NULL},
    SWITCH("untie-embeddings-and-output-weights", untied),
    SWITCH("qk-layernorm", qk_norm),
    CHOICE("spec", spec, specs),
    WORD("tokenizer-type", tokenizer),
    COUNT("vocab-size", vocab),
    COUNT("padded-vocab-size", padded_vocab),
    COUNT("make-vocab-size-divisible-by", vocab_multiple),
    COUNT("vocab-extra-ids", vocab_extra),
    SWITCH("bert-no-binary-head", no_binary_head),
    SWITCH("multi-latent-attention", latent),
    COUNT("q-lora-rank", q_rank),
    COUNT("kv-lora-rank", kv_rank),
    COUNT("qk-head-dim", qk_head),
    COUNT("qk-pos-emb-head-dim", rope_head),
    COUNT("v-head-dim", value_head),
    COUNT("num-experts", experts),
    COUNT("moe-router-topk", top_k),
    COUNT("mtp-num-layers", mtp_layers),
    COUNT("moe-ffn-hidden-size", expert_ffn),
    COUNT("moe-shared-expert-intermediate-size", shared_ffn),
    COUNT("moe-router-num-groups", router_groups),
    COUNT("moe-router-group-topk", router_top_groups),
    {"moe-expert-capacity-factor", DL_FLAG_NUMBER, AT(capacity), NULL},
    WORD("moe-layer-freq", moe_layers),

    COUNT("micro-batch-size", microbatch),
    COUNT("global-batch-size", global_batch),
    COUNT("tensor-model-parallel-size", tensor),
    COUNT("pipeline-model-parallel-size", pipeline),
    COUNT("context-parallel-size", context),
    COUNT("expert-model-parallel-size", expert),
    COUNT("expert-tensor-parallel-size", expert_tensor),
    SWITCH("sequence-parallel", sequence),
    SWITCH("tp-comm-overlap", tensor_overlap),
    COUNT("num-layers-per-virtual-pipeline-stage", virtual_layers),
    COUNT("num-virtual-stages-per-pipeline-rank", virtual_stages),
    COUNT("microbatch-group-size-per-virtual-pipeline-stage", virtual_group),
    COUNT("decoder-first-pipeline-num-layers", first_layers),
    COUNT("decoder-last-pipeline-num-layers", last_layers),
    SWITCH("account-for-embedding-in-pipeline-split", counts_embedding),
    SWITCH("account-for-loss-in-pipeline-split", counts_loss),
    WORD("pipeline-model-parallel-layout", layout),
    CHOICE("cp-comm-type", context_kind, context_kinds),
    CHOICE("moe-token-dispatcher-type", dispatcher, dispatchers),
    SWITCH("overlap-moe-expert-parallel-comm", expert_overlap),
    SWITCH("moe-pad-expert-input-to-capacity", experts_padded),
    SWITCH("use-tp-pp-dp-mapping", order_pipeline_first),
    SWITCH("use-distributed-optimizer", distributed_optimizer),
    SWITCH("use-megatron-fsdp", megatron_fsdp),
    SWITCH("use-custom-fsdp", custom_fsdp),
    SWITCH("use-torch-fsdp2", torch_fsdp),
    SWITCH("torch-fsdp2-no-reshard-after-forward", torch_fsdp_keeps),
    CHOICE("data-parallel-sharding-strategy", sharding, shardings),
    COUNT("num-distributed-optimizer-instances", optimizer_instances),
    SWITCH("overlap-grad-reduce", grad_overlap),
    SWITCH("overlap-param-gather", param_overlap),
    COUNT("ddp-bucket-size", bucket_parameters),
    CHOICE("recompute-granularity", recompute, recomputes),
    CHOICE("recompute-method", recompute_method, recompute_methods),
    COUNT("recompute-num-layers", recompute_layers),
    WORDS("recompute-modules", recompute_modules),
    SWITCH("recompute-activations", recompute_activations),
    SWITCH("moe-layer-recompute", recompute_experts),
    SWITCH("checkpoint-activations", checkpoint_activations),
    SWITCH("fp16", fp16),
    SWITCH("bf16", bf16),
    CHOICE("fp8-format", fp8, fp8_formats),
    CHOICE("fp8-recipe", fp8_recipe, fp8_recipes),
    SWITCH("first-last-layers-bf16", wide_ends),
    {"num-layers-at-start-in-bf16", DL_FLAG_NUMBER, AT(wide_first), NULL},
    {"num-layers-at-end-in-bf16", DL_FLAG_NUMBER, AT(wide_last), NULL},
    CHOICE("fp4-format", fp4, fp4_formats),
    CHOICE("fp4-recipe", fp4_recipe, fp4_recipes),
    SWITCH("fp8-hybrid", fp8_hybrid),
    SWITCH("fp8-e4m3", fp8_e4m3),
    SWITCH("fp8-param-gather", fp8_gather),
    CHOICE("optimizer", optimizer, optimizers),
    {"sgd-momentum", DL_FLAG_SHARE, AT(sgd_momentum), NULL},
    SWITCH("optimizer-cpu-offload", offload_optimizer),
    {"optimizer-offload-fraction", DL_FLAG_SHARE, AT(offload_fraction), NULL},
    COUNT("cpu-offloading-num-layers", offload_layers),
    SWITCH("enable-cuda-graph", graphs),
    SWITCH("external-cuda-graph", external_graphs),
    CHOICE("cuda-graph-impl", graph_kind, graph_kinds),
    WORDS("cuda-graph-scope", graph_scope),
    WORDS("cuda-graph-modules", graph_scope),

    CHOICE("attention-backend", attention, attentions),
    SWITCH("use-flash-attn", flash),
    CHOICE("transformer-impl", implementation, implementations),
    SWITCH("cross-entropy-loss-fusion", loss_fusion),
    SWITCH("defer-embedding-wgrad-compute", gradients_deferred),
    {"wgrad-deferral-limit", DL_FLAG_NUMBER, AT(deferral_limit), NULL},
    SWITCH("deterministic-mode", deterministic),
    SWITCH("moe-grouped-gemm", grouped_experts),
    SWITCH("moe-use-legacy-grouped-gemm", legacy_groups),
    CHOICE("cross-entropy-fusion-impl", loss_kind, loss_kinds),
    SWITCH("grad-reduce-in-bf16", bf16_gradients),
    SWITCH("accumulate-allreduce-grads-in-fp32", fp32_gradients),
    SWITCH("fp32-residual-connection", fp32_residual),
    SWITCH("no-scatter-gather-tensors-in-pipeline", no_scatter),
    SWITCH("no-overlap-p2p-communication", no_send_overlap),
    SWITCH("use-precision-aware-optimizer", precision_aware),
    CHOICE("main-grads-dtype", gradient_type, gradient_types),
    CHOICE("main-params-dtype", parameter_type, fp32_only),
    CHOICE("exp-avg-dtype", moment_type, gradient_types),
    CHOICE("exp-avg-sq-dtype", moment2_type, gradient_types),
    CHOICE("megatron-fsdp-main-params-dtype", parameter_type, fp32_only),
    CHOICE("megatron-fsdp-main-grads-dtype", gradient_type, gradient_types),
};

size_t dl_megatron_flag_count(void) { return DL_COUNT(flags); }

const struct dl_megatron_flag *dl_megatron_flag_get(size_t index) { return &flags[index]; }
