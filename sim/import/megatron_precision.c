/* megatron_precision.c - what Megatron-LM's flags say of the precision of GEMMs, and of blocks that stay wide. */
#include "sim/import/megatron.h"
#include "sim/import/strategy_made.h"

static bool has_fp8(const struct dl_megatron *m) { return m->fp8 || m->fp8_hybrid || m->fp8_e4m3; }

static const char *precision_of(const struct dl_megatron *m)
{
    if (m->fp4) return "nvfp4";
    if (m->fp8_recipe == DL_RECIPE_MXFP8 && m->fp8) return "mxfp8";
    if (has_fp8(m)) return "fp8";
    return m->bf16 ? "bf16" : m->fp16 ? "fp16" : "fp32";
}

/* Megatron-LM says nothing of them in bf16. */
static void set_wide_blocks(const struct dl_megatron *m, json_t *strategy)
{
    const int64_t by_default = 1;
    if (!m->wide_ends || !(m->fp4 || has_fp8(m))) return;
    const int64_t first = m->wide_first < 0 ? by_default : (int64_t)m->wide_first;
    const int64_t last = m->wide_last < 0 ? by_default : (int64_t)m->wide_last;
    if (first) dl_put_count(strategy, "wide_first_blocks", first);
    if (last) dl_put_count(strategy, "wide_last_blocks", last);
}

/* As Megatron-LM does (training/arguments.py, validate_args). */
enum dl_status dl_megatron_precision(const struct dl_megatron_reading *r, json_t *strategy, struct dl_error *err)
{
    if (r->m->fp4 && has_fp8(r->m))
        return dl_fail(err, DL_IMPOSSIBLE, dl_megatron_place(r, "fp4-format"),
                       "GEMMs are in fp4 or in fp8; leave out --fp4-format or --fp8-format");
    json_object_set_new(strategy, "precision", json_string(precision_of(r->m)));
    set_wide_blocks(r->m, strategy);
    return DL_OK;
}
