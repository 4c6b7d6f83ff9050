/* transformer_check.c - keys of a transformer that do not go together. */
#include "workloads/transformer.h"
#include "workloads/workloads.h"

/* Keys that mean nothing without another. */
static enum dl_status check_companions(const struct dl_transformer *o, const struct dl_build *build,
                                       struct dl_error *err)
{
    static const struct {
        const char *key, *needs;
    } companions[] = {
        {"top_k", "experts"},
        {"expert_ffn", "experts"},
        {"expert_hidden", "experts"},
        {"shared_experts", "experts"},
        {"shared_ffn", "shared_experts"},
        {"dense_layers", "experts"},
        {"moe_every", "experts"},
        {"capacity_factor", "experts"},
        {"routes_by_gemms", "capacity_factor"},
        {"q_rank", "kv_rank"},
        {"rope_size", "kv_rank"},
        {"value_size", "kv_rank"},
        {"experts", "top_k"},
        {"full_attention_every", "window"},
        {"joint_qk_norm", "qk_norm"},
        {"state_heads", "pattern"},
        {"state_head_size", "pattern"},
        {"state_size", "pattern"},
        {"state_groups", "state_heads"},
        {"state_window", "state_heads"},
        {"state_chunk", "state_heads"},
        {"expert_groups", "experts"},
        {"expert_groups", "top_groups"},
        {"top_groups", "expert_groups"},
        {"encoder_seq", "encoder_layers"},
        {"encoder_layers", "encoder_seq"},
    };
    for (size_t i = 0; i < DL_COUNT(companions); i++)
        if (json_object_get(build->doc.value, companions[i].key) &&
            !json_object_get(build->doc.value, companions[i].needs))
            return dl_refuse(build, companions[i].key, err, "means nothing without the key '%s'", companions[i].needs);
    if (o->ffn_dropout && !o->dropout)
        return dl_refuse(build, "ffn_dropout", err, "means nothing where 'dropout' is false");
    if (o->kv_rank && o->kv_heads)
        return dl_refuse(build, "kv_heads", err, "means nothing beside 'kv_rank': latent attention has none");
    if (o->kv_rank && o->qk_norm)
        return dl_refuse(build, "qk_norm", err,
                         "means nothing beside 'kv_rank': latent attention has norms of its own");
    if (o->parallel_norms && (o->post_norms || o->layer_scale))
        return dl_refuse(build, o->post_norms ? "post_norms" : "layer_scale", err,
                         "means nothing beside 'parallel_norms': no model has both");
    if (o->parallel_norms && (o->kv_rank || o->experts))
        return dl_refuse(build, "parallel_norms", err, "means nothing beside '%s': no model has both",
                         o->experts ? "experts" : "kv_rank");
    if (o->kv_rank && json_object_get(build->doc.value, "qkv_bias"))
        return dl_refuse(build, "qkv_bias", err,
                         "means nothing beside 'kv_rank': latent attention has biases if all do");
    return DL_OK;
}

static enum dl_status check_encoder(const struct dl_build *build, struct dl_error *err)
{
    static const char *const others[] = {"pattern", "patch", "mtp_layers", "window", "parallel_norms", "kv_rank"};
    for (size_t i = 0; json_object_get(build->doc.value, "encoder_layers") && i < DL_COUNT(others); i++)
        if (json_object_get(build->doc.value, others[i]))
            return dl_refuse(build, others[i], err, "means nothing beside 'encoder_layers': no model has both");
    return DL_OK;
}

static enum dl_status check_patches(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    if (!o->patch) return DL_OK;
    if (o->seq < 2)
        return dl_refuse(build, "seq", err, "must be at least 2 beside 'patch': a patch and the class token");
    if (o->tied_embedding)
        return dl_refuse(build, "tied_embedding", err, "must be false beside 'patch': there is no embedding of words");
    if (o->head_transform || o->token_types || o->mtp_layers)
        return dl_refuse(build,
                         o->token_types  ? "token_types"
                         : o->mtp_layers ? "mtp_layers"
                                         : "head_transform",
                         err, "means nothing beside 'patch': it is for words");
    return DL_OK;
}

static enum dl_status check_further(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    if (!o->mtp_wide || o->mtp_layers) return DL_OK;
    return dl_refuse(build, "mtp_wide", err, "means nothing without 'mtp_layers'");
}

static enum dl_status check_groups(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    if (!o->expert_groups) return DL_OK;
    if (o->experts % o->expert_groups)
        return dl_refuse(build, "expert_groups", err, "must divide experts, %lld, got %lld", (long long)o->experts,
                         (long long)o->expert_groups);
    if (o->top_groups > o->expert_groups)
        return dl_refuse(build, "top_groups", err, "must be at most expert_groups, %lld, got %lld",
                         (long long)o->expert_groups, (long long)o->top_groups);
    const int64_t in_reach = o->experts / o->expert_groups * o->top_groups;
    if (o->top_k > in_reach)
        return dl_refuse(build, "top_k", err, "must be at most the %lld experts of top_groups groups, got %lld",
                         (long long)in_reach, (long long)o->top_k);
    return DL_OK;
}

enum dl_status dl_transformer_check(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    const bool attends = !o->pattern || dl_pattern_has(o, '*');
    if (attends && !o->heads) return dl_fail(err, DL_KEY, build->doc.where, "needs the key 'heads'");
    if (check_companions(o, build, err) || check_encoder(build, err) || check_patches(o, build, err) ||
        dl_pattern_check(o, build, err))
        return err->status;
    if (attends && !o->head_size && o->hidden % o->heads)
        return dl_refuse(build, "heads", err, "%lld heads do not divide hidden, %lld; or give head_size",
                         (long long)o->heads, (long long)o->hidden);
    if (o->kv_heads && o->heads % o->kv_heads)
        return dl_refuse(build, "kv_heads", err, "must divide heads, %lld, got %lld", (long long)o->heads,
                         (long long)o->kv_heads);
    if (o->top_k > o->experts)
        return dl_refuse(build, "top_k", err, "must be at most experts, %lld, got %lld", (long long)o->experts,
                         (long long)o->top_k);
    if (check_groups(o, build, err) || check_further(o, build, err)) return err->status;
    if (o->window && !o->causal)
        return dl_refuse(build, "window", err,
                         "is for tokens that attend to earlier ones only; this model is not causal");
    if (o->dense_layers > o->layers)
        return dl_refuse(build, "dense_layers", err, "must be at most layers, %lld, got %lld", (long long)o->layers,
                         (long long)o->dense_layers);
    return DL_OK;
}
