#include "validation/mpi/models/transformer_options.h"

#include <string.h>

#include "workloads/transformer.h"
#include "workloads/workloads.h"

struct reading {
    struct dl_json doc;
    struct dl_arena *arena;
    struct dl_error *err;
};

static enum dl_status refuse(const struct reading *r, const char *key, const char *what)
{
    return dl_fail(r->err, DL_IMPOSSIBLE, dl_json_member(r->doc, key, r->arena).where, "%s to be trained", what);
}

static enum dl_status check_experts(const struct reading *r, const struct dl_transformer *o, bool tensor)
{
    if (!o->experts) return DL_OK;
    if (o->bias) return refuse(r, "bias", "must be false beside experts");
    if (o->shared_experts) return refuse(r, "shared_experts", "must be absent");
    if (o->capacity_factor > 0) return refuse(r, "capacity_factor", "must be absent");
    if (tensor) return refuse(r, "experts", "must not be cut by tensor ranks");
    return DL_OK;
}

static enum dl_status check(const struct reading *r, const struct dl_transformer *o)
{
    if (o->dropout) return refuse(r, "dropout", "must be false");
    if (o->tied_embedding) return refuse(r, "tied_embedding", "must be false");
    if (o->norm != DL_LAYERNORM) return refuse(r, "norm", "must be layernorm");
    if (o->activation > DL_RELU) return refuse(r, "activation", "must be gelu or relu");
    if (o->positions != DL_LEARNED && o->positions != DL_NO_POSITIONS)
        return refuse(r, "positions", "must be learned or none");
    if (o->kv_heads && o->kv_heads != o->heads) return refuse(r, "kv_heads", "must be heads");
    if (o->kv_rank) return refuse(r, "kv_rank", "must be absent");
    if (o->qk_norm) return refuse(r, "qk_norm", "must be false");
    if (o->post_norms) return refuse(r, "post_norms", "must be false");
    if (o->layer_scale) return refuse(r, "layer_scale", "must be false");
    if (o->logit_cap) return refuse(r, "logit_cap", "must be false");
    if (o->head_transform) return refuse(r, "head_transform", "must be false");
    if (o->token_types) return refuse(r, "token_types", "must be absent");
    return DL_OK;
}

/* What is absent is as workloads/transformer.c has it. */
static struct dl_transformer_options complete(const struct dl_transformer *o)
{
    const int64_t ffn = o->ffn ? o->ffn : 4 * o->hidden;
    return (struct dl_transformer_options){.hidden = (size_t)o->hidden,
                                           .ffn = (size_t)ffn,
                                           .heads = (size_t)o->heads,
                                           .head_size = (size_t)(o->head_size ? o->head_size : o->hidden / o->heads),
                                           .seq = (size_t)o->seq,
                                           .vocab = (size_t)o->vocab,
                                           .experts = (size_t)o->experts,
                                           .top_k = (size_t)o->top_k,
                                           .expert_ffn = (size_t)(o->expert_ffn ? o->expert_ffn : ffn),
                                           .dense_layers = (size_t)o->dense_layers,
                                           .moe_every = (size_t)o->moe_every,
                                           .gelu = o->activation == DL_GELU,
                                           .bias = o->bias,
                                           .causal = o->causal,
                                           .learned_positions = o->positions == DL_LEARNED,
                                           .embedding_norm = o->embedding_norm,
                                           .final_norm = o->final_norm};
}

enum dl_status dl_transformer_options_read(struct dl_json doc, bool tensor, struct dl_arena *arena,
                                           struct dl_transformer_options *out, struct dl_error *err)
{
    const struct dl_workload_kind *const kind = &dl_workload_transformer;
    const struct reading r = {doc, arena, err};
    struct dl_transformer o;
    memcpy(&o, kind->defaults, sizeof o);
    const struct dl_json rest = {.value = json_copy(doc.value), .where = doc.where};
    json_object_del(rest.value, "kind");
    dl_read_document(rest, "workload", kind->fields, kind->n_fields, &o, arena, err);
    json_decref(rest.value);
    if (err->status || check(&r, &o) || check_experts(&r, &o, tensor)) return err->status;
    *out = complete(&o);
    return DL_OK;
}
