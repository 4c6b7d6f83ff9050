/* megatron_software.c - flags that change the software: what of shipped megatron-core is otherwise. */
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

/* As software megatron-bridge has it. */
static const char te_loss[] = "[{\"operation\": \"logits_to_fp32\", \"launches\": 0, \"moves\": 0},"
                              " {\"operation\": \"cross_entropy\", \"pass\": \"forward\", \"launches\": 3,"
                              "  \"moves\": 0.75, \"saved_bytes\": -1},"
                              " {\"operation\": \"cross_entropy\", \"pass\": \"input_gradient\", \"launches\": 1,"
                              "  \"moves\": 0.5}, \"...\"]";

/* The loss of Transformer Engine writes the gradient of logits over them (pytorch/cross_entropy.py). Compiled functions
 * of Megatron-Core do not work in place, though written so: Inductor makes another copy of the logits in fp32 (a note
 * in core/fusions/fused_cross_entropy.py, which compiles smaller functions since 2026 for that reason). */
static void put_loss(const struct dl_megatron *m, json_t *software)
{
    static const int copy_bytes = 4;
    if (!m->loss_fusion) return;
    if (m->loss_kind == DL_LOSS_TE)
        json_object_set_new(software, "kernels", json_loads(te_loss, 0, NULL));
    else
        json_object_set_new(software, "logit_workspace_bytes", json_integer(copy_bytes));
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

json_t *dl_megatron_software(struct dl_megatron_reading *r)
{
    const struct dl_megatron *const m = r->m;
    static const int short_bytes = 2, wide_bytes = 4;
    json_t *const software = json_object();
    if (is_unfused(m)) json_object_set_new(software, "attention", json_string("unfused"));
    if (has_short_gradients(m)) json_object_set_new(software, "gradient_bytes", json_integer(short_bytes));
    if (m->fp32_residual) json_object_set_new(software, "residual_bytes", json_integer(wide_bytes));
    if (m->no_scatter) json_object_set_new(software, "scatters_sends", json_false());
    if (m->no_send_overlap) json_object_set_new(software, "sends", json_string("batched"));
    put_loss(m, software);
    put_workspaces(r, software);
    put_deferred(r, software);
    if (!json_object_size(software)) {
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
