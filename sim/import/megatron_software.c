/* megatron_software.c - flags that change the software: what of shipped megatron-core is otherwise. */
#include "sim/core/files.h"
#include "sim/cost/operations.h"
#include "sim/import/megatron.h"

/* Scores in memory: asked for, or the only way of the local implementation without FlashAttention. */
static bool is_unfused(const struct dl_megatron *m)
{
    if (m->attention > DL_BACKEND_AUTO) return m->attention == DL_BACKEND_UNFUSED || m->attention == DL_BACKEND_LOCAL;
    return m->implementation == DL_IMPLEMENTATION_LOCAL && !m->flash;
}

/* Megatron-LM sums in fp32 with bf16, else in the precision of the model. */
static bool has_short_gradients(const struct dl_megatron *m)
{
    if (m->bf16_gradients || m->gradient_type == DL_SUMS_BF16) return true;
    return m->fp16 && !m->fp32_gradients && m->gradient_type != DL_SUMS_FP32;
}

/* Those of megatron-bridge, which has the loss of Transformer Engine, before all that the software has itself. */
static json_t *te_loss(const struct dl_megatron_reading *r, struct dl_error *err)
{
    const char *path;
    struct dl_json bridge;
    size_t i;
    json_t *rule;
    if (dl_find_file("strategies/software", "software", "megatron-bridge", r->arena, &path, err) ||
        dl_json_load(path, r->arena, &bridge, err))
        return NULL;
    json_t *const rules = json_array();
    json_array_foreach(json_object_get(bridge.value, "kernels"), i, rule)
    {
        const char *const name = json_string_value(json_object_get(rule, "operation"));
        const struct dl_operation *const operation = name ? dl_operation_named(name) : NULL;
        if (operation && operation->is_of_loss) json_array_append(rules, rule);
    }
    json_array_append_new(rules, json_string("..."));
    json_decref(bridge.value);
    return rules;
}

/* The loss of Transformer Engine writes the gradient of logits over them (pytorch/cross_entropy.py). Compiled functions
 * of Megatron-Core do not work in place, though written so: Inductor makes another copy of the logits in fp32 (a note
 * in core/fusions/fused_cross_entropy.py, which compiles smaller functions since 2026 for that reason). */
static enum dl_status put_loss(const struct dl_megatron_reading *r, json_t *software, struct dl_error *err)
{
    static const int copy_bytes = 4;
    const struct dl_megatron *const m = r->m;
    if (!m->loss_fusion && m->loss_kind)
        dl_megatron_leave(r, "--cross-entropy-fusion-impl", NULL, false,
                          "means nothing without --cross-entropy-loss-fusion: the loss is not fused");
    if (!m->loss_fusion) return DL_OK;
    json_t *const rules = m->loss_kind == DL_LOSS_TE ? te_loss(r, err) : NULL;
    if (rules) json_object_set_new(software, "kernels", rules);
    if (m->loss_kind != DL_LOSS_TE) json_object_set_new(software, "logit_workspace_bytes", json_integer(copy_bytes));
    return err->status;
}

/* Grouped products of Transformer Engine have workspaces of their own; those of experts one by one, and of the library
 * before it, have not. */
static void put_workspaces(const struct dl_megatron_reading *r, json_t *software)
{
    static const int torch_handles = 2, te_handles = 1;
    static const int64_t handle_bytes = 8 * 4096 * 1024; /* CUBLAS_WORKSPACE_CONFIG=:4096:8 */
    const struct dl_megatron *const m = r->m;
    const bool is_grouped = m->grouped_experts && !m->legacy_groups;
    if (m->experts && !is_grouped) json_object_set_new(software, "group_workspaces", json_integer(0));
    if (m->experts && !m->grouped_experts)
        dl_megatron_leave(r, "--moe-grouped-gemm", "absent", true, "products of experts are priced as groups");
    if (!m->deterministic) return;
    json_object_set_new(software, "gemm_workspaces", json_integer(te_handles));
    json_object_set_new(software, "own_workspace_bytes", json_integer(torch_handles * handle_bytes));
    dl_megatron_leave(r, "--deterministic-mode", NULL, true,
                      "taken for CUBLAS_WORKSPACE_CONFIG=:4096:8; kernels are priced as without it");
}

/* core/tensor_parallel/layers.py: gradients of logits and their inputs of so many micro-batches are kept; 0: of all. */
static void put_deferred(const struct dl_megatron_reading *r, json_t *software)
{
    static const int64_t all = 1000000000;
    const struct dl_megatron *const m = r->m;
    if (!m->gradients_deferred || m->pipeline < 2) return;
    json_object_set_new(software, "deferred_head_gradients",
                        json_integer(m->deferral_limit > 0 ? (int64_t)m->deferral_limit : all));
    dl_megatron_leave(r, "--defer-embedding-wgrad-compute", NULL, true,
                      "what waits is counted in memory; its products are priced in the backward, not in the bubble");
}

json_t *dl_megatron_software(struct dl_megatron_reading *r, struct dl_error *err)
{
    const struct dl_megatron *const m = r->m;
    static const int short_bytes = 2, wide_bytes = 4;
    json_t *const software = json_object();
    if (is_unfused(m)) json_object_set_new(software, "attention", json_string("unfused"));
    if (has_short_gradients(m)) json_object_set_new(software, "gradient_bytes", json_integer(short_bytes));
    if (m->fp32_residual) json_object_set_new(software, "residual_bytes", json_integer(wide_bytes));
    if (m->no_scatter) json_object_set_new(software, "scatters_sends", json_false());
    if (m->no_send_overlap) json_object_set_new(software, "sends", json_string("batched"));
    const bool is_wrong = put_loss(r, software, err) != DL_OK;
    put_workspaces(r, software);
    put_deferred(r, software);
    if (is_wrong || !json_object_size(software)) {
        json_decref(software);
        return NULL;
    }
    json_object_set_new(software, "schema", json_string("dlsim/software/1"));
    json_object_set_new(software, "source",
                        json_string(dl_arena_format(r->arena, "%s, %s: megatron-core with what its flags change",
                                                    r->where, r->out->what)));
    json_object_set_new(software, "like", json_string("megatron-core"));
    json_object_set_new(software, "facts", json_pack("{ss}", "*", "published: the flags"));
    return software;
}
