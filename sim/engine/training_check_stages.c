/* training_check_stages.c - two stages that hold the same must come to the same exchanges with each other, in an
 * order in which nobody waits for ever: a stage is in one of them at a time. */
#include "sim/engine/training_parts.h"

struct stage {
    uint32_t *calls; /* between stages, in the order in which it comes to them */
    size_t n, capacity, next;
};

static void list_calls(const struct dl_training *t, const struct dl_template *template, struct stage *out)
{
    for (size_t i = 0; i < template->planned.n; i++) {
        const struct dl_part *const part = &template->planned.items[i];
        if (part->kind != DL_START || t->request.step.calls[part->call].channel != DL_CHANNEL_STAGES) continue;
        DL_GROW(out->calls, out->n, out->capacity);
        out->calls[out->n++] = part->call;
    }
}

/* Most programs have some only at their end. */
static void list_all(const struct dl_training *t, const struct dl_program *p, struct stage *out)
{
    for (uint32_t i = 0; i < p->n_blocks; i++) list_calls(t, p->items[p->blocks[i]], out);
    const bool any = out->n > 0;
    out->n = 0;
    for (uint32_t i = 0; any && i < p->n_sequence; i++) list_calls(t, dl_item_block(p, &p->sequence[i]), out);
    list_calls(t, &p->end, out);
}

static const struct dl_comm *next_call(const struct dl_training *t, const struct stage *s)
{
    return s->next < s->n ? &t->request.step.calls[s->calls[s->next]] : NULL;
}

static uint32_t with_stage(const struct dl_comm *call, uint32_t stage)
{
    return call->members.pair[call->members.pair[0] == stage];
}

/* Whether the stage and the one that it wants to meet do. */
static bool meets(const struct dl_training *t, struct stage *stages, uint32_t stage, struct dl_error *err)
{
    const struct dl_comm *const call = next_call(t, &stages[stage]);
    if (!call || with_stage(call, stage) >= t->n_stages) return false;
    struct stage *const other = &stages[with_stage(call, stage)];
    const struct dl_comm *const answer = next_call(t, other);
    if (!answer || !dl_members_equal(&answer->members, &call->members)) return false;
    if (answer->op != call->op || answer->bytes != call->bytes)
        dl_fail(err, DL_STALLED, "run", "stage %u exchanges %.17g bytes with stage %u, which exchanges %.17g", stage,
                call->bytes, with_stage(call, stage), answer->bytes);
    stages[stage].next++;
    other->next++;
    return true;
}

static void play_pairs(const struct dl_training *t, struct stage *stages, struct dl_error *err)
{
    for (bool moved = true; moved && !err->status;) {
        moved = false;
        for (uint32_t i = 0; i < t->n_stages; i++) moved |= meets(t, stages, i, err);
    }
    for (uint32_t i = 0; i < t->n_stages && !err->status; i++)
        if (stages[i].next < stages[i].n)
            dl_fail(err, DL_STALLED, "run", "stage %u comes to exchange %u with stage %u, which does not come to it", i,
                    stages[i].calls[stages[i].next], with_stage(next_call(t, &stages[i]), i));
}

static bool has_calls(const struct dl_step *s)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].channel == DL_CHANNEL_STAGES) return true;
    return false;
}

enum dl_status dl_training_check_stages(const struct dl_training *t, struct dl_error *err)
{
    if (!has_calls(&t->request.step)) return DL_OK;
    struct stage *const stages = dl_alloc(t->n_stages * sizeof *stages);
    for (uint32_t i = 0; i < t->n_stages; i++) list_all(t, &t->request.step.programs[i], &stages[i]);
    play_pairs(t, stages, err);
    for (uint32_t i = 0; i < t->n_stages; i++) dl_free(stages[i].calls);
    dl_free(stages);
    return err->status;
}
