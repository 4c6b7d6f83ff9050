/* job_check.c - what must fit the model: refusals of strategies, and what they ask for these. */
#include <math.h>

#include "strategies/job.h"

const char *dl_check_place(const struct dl_check *check, const char *key)
{
    return dl_json_member((struct dl_json){.where = check->where}, key, check->arena).where;
}

enum dl_status dl_check_parts(const struct dl_check *check, const char *key, uint32_t parts, double whole,
                              const char *what, struct dl_error *err)
{
    if (fmod(whole, parts) == 0) return DL_OK;
    const double most = fmin(whole, UINT32_MAX);
    double below = fmin(parts, most), above = parts;
    while (below > 1 && fmod(whole, below) != 0) below--;
    while (above < most && fmod(whole, above) != 0) above++;
    const char *const where = dl_check_place(check, key);
    if (above > most)
        return dl_fail(err, DL_IMPOSSIBLE, where, "must divide %s, %.0f, got %u; %.0f would do", what, whole, parts,
                       below);
    return dl_fail(err, DL_IMPOSSIBLE, where, "must divide %s, %.0f, got %u; %.0f or %.0f would do", what, whole, parts,
                   below, above);
}

enum dl_status dl_check_ways(const struct dl_check *check, uint32_t ways, double whole, const char *what,
                             struct dl_error *err)
{
    return dl_check_parts(check, "ways", ways, whole, what, err);
}

enum dl_status dl_check_heads(const struct dl_check *check, const char *key, uint32_t parts,
                              const struct dl_layer *layer, struct dl_error *err)
{
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (dl_kernel_is_core_attention(k) && k->by.batch & DL_BY_INNER &&
            dl_check_parts(check, key, parts, k->batch / check->model->samples, "the heads", err))
            return err->status;
    }
    if (layer->state_groups > 0 &&
        dl_check_parts(check, key, parts, layer->state_groups, "the groups of heads of the state space", err))
        return err->status;
    if (layer->key_heads == 0) return DL_OK;
    return dl_check_parts(check, key, parts, layer->key_heads,
                          check->setting->is_line ? "the heads of keys and values, or be a multiple of these"
                                                  : "the heads of keys and values",
                          err);
}

const struct dl_kernel *dl_check_find_attention(const struct dl_check *check)
{
    return dl_model_find(check->model, dl_kernel_is_core_attention);
}

static struct dl_check check_of(const struct dl_job *job, const struct dl_stack *level, const struct dl_model *model,
                                struct dl_arena *arena)
{
    return (struct dl_check){
        .where = level->where, .setting = &job->setting, .model = model, .stack = job->stack, .arena = arena};
}

static enum dl_status check_wide(const struct dl_setting *s, const struct dl_model *model, struct dl_error *err)
{
    const uint32_t asked = s->wide_first_blocks + s->wide_last_blocks, n_blocks = dl_model_blocks(model);
    if (asked <= n_blocks) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, s->wide_first_blocks > n_blocks ? s->wide_first_where : s->wide_last_where,
                   "%s has %u blocks, of which %u cannot be wide", model->name, n_blocks, asked);
}

static const char *list_operands(const struct dl_operand_rules *operands, struct dl_arena *arena)
{
    char *text = "";
    for (size_t i = 0; i < operands->n; i++)
        text = dl_arena_format(arena, "%s%s%s", text, i ? ", " : "", dl_precision_names[operands->rules[i].precision]);
    return text;
}

/* Casts would be free, and the narrower precision always the faster one. A job that is not yet suited has none. */
static enum dl_status check_operands(const struct dl_setting *s, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_software *const by = s->software;
    if (!by || !dl_precision_is_quantised(s->precision) || dl_operand_rule_for(&by->operands, s->precision))
        return DL_OK;
    const char *const has = by->operands.n ? list_operands(&by->operands, arena) : "none";
    return dl_fail(err, DL_IMPOSSIBLE, s->precision_where,
                   "software %s does not say what it costs to quantise to %s (operands: %s); add an entry to its "
                   "operands, or use a wider precision",
                   by->name, dl_precision_name(s->precision), has);
}

enum dl_status dl_job_check(const struct dl_job *job, const struct dl_model *model, struct dl_arena *arena,
                            struct dl_error *err)
{
    const size_t told = err->n_told;
    if (check_wide(&job->setting, model, err) && !dl_go_on(err)) return err->status;
    if (check_operands(&job->setting, arena, err) && !dl_go_on(err)) return err->status;
    for (const struct dl_stack *level = job->stack; level->strategy; level++) {
        const struct dl_check what = check_of(job, level, model, arena);
        if (level->strategy->check && level->strategy->check(level->options, &what, err) && !dl_go_on(err)) break;
    }
    return dl_stop_if_told(err, told);
}

enum dl_status dl_job_check_blocks(const struct dl_job *job, const struct dl_model *model, uint32_t n_blocks,
                                   struct dl_arena *arena, struct dl_error *err)
{
    for (const struct dl_stack *level = job->stack; level->strategy; level++) {
        const struct dl_check what = check_of(job, level, model, arena);
        if (level->strategy->check_blocks && level->strategy->check_blocks(level->options, &what, n_blocks, err)) break;
    }
    return err->status;
}
