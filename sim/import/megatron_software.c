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
