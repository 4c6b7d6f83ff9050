/* training_check.c - what must hold before a step is simulated: exchanges are waited for after they are started. The
 * replicas of a stage go through one program, so that all of them start the same exchanges in one order. */
#include <string.h>

#include "sim/engine/training_parts.h"
#include "sim/program/segments.h"

struct calls {
    const struct dl_step *step;
    uint8_t *started; /* by the stage so far */
    struct dl_error *err;
};

/* What it takes longer than the work since its start is known if that is in its template. */
static enum dl_status check_queued(const struct calls *c, const struct dl_template *t, size_t at, uint32_t stage)
{
    const uint32_t call = t->instructions[at].call;
    for (size_t i = at; i-- > 0;)
        if (t->instructions[i].kind == DL_START && t->instructions[i].call == call) return DL_OK;
    return dl_fail(c->err, DL_STALLED, "run", "stage %u waits for %s %u, which it has not started in the same block",
                   stage, c->step->calls[call].op == DL_COPY ? "copy" : "exchange", call);
}

/* One at a time, and none beyond its template: who comes to it goes on with it. */
static enum dl_status check_lockstep(const struct calls *c, const struct dl_template *t, uint32_t stage)
{
    const struct dl_instruction *open = NULL;
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (!dl_may_be_priced(at, c->step->calls)) continue;
        const bool is_start = at->kind == DL_START;
        if (dl_comm_is_queued(&c->step->calls[at->call])) {
            if (!is_start && check_queued(c, t, i, stage)) return c->err->status;
            continue;
        }
        if (is_start ? open != NULL : !open || open->call != at->call)
            return dl_fail(c->err, DL_STALLED, "run", "stage %u %s exchange %u in lockstep %s", stage,
                           is_start ? "starts" : "waits for", at->call,
                           is_start ? "before it has waited for the one before" : "but has not just started it");
        open = is_start ? at : NULL;
    }
    if (!open) return DL_OK;
    return dl_fail(c->err, DL_STALLED, "run", "stage %u starts exchange %u in lockstep and does not wait for it", stage,
                   open->call);
}

/* What is read ahead was started by the item before. */
static bool may_wait(const struct calls *c, uint32_t call)
{
    return c->started[call] || c->step->calls[call].channel == DL_CHANNEL_AHEAD;
}

static enum dl_status check_calls(const struct calls *c, const struct dl_template *t, uint32_t stage)
{
    const size_t n_calls = c->step->n_calls;
    for (size_t i = 0; i < t->planned.n; i++) {
        const struct dl_part *const part = &t->planned.items[i];
        if (part->kind == DL_START && part->call >= n_calls)
            return dl_fail(c->err, DL_STALLED, "run", "stage %u starts exchange %u, but there are only %zu", stage,
                           part->call, n_calls);
        if (part->kind == DL_START) c->started[part->call] = true;
        if (part->kind == DL_WAIT && part->call != DL_EVERY_CALL && (part->call >= n_calls || !may_wait(c, part->call)))
            return dl_fail(c->err, DL_STALLED, "run", "stage %u waits for exchange %u, which it has not started", stage,
                           part->call);
    }
    return DL_OK;
}

/* The stage before does the same in this block: it was looked at there. */
static bool is_as_before(const struct dl_program *programs, uint32_t stage, uint32_t i)
{
    const struct dl_program *const p = &programs[stage], *const before = p - (stage > 0);
    return stage > 0 && i < before->n_blocks &&
           before->items[before->blocks[i]]->instructions == p->items[p->blocks[i]]->instructions;
}

/* A template that comes again finds at least what was started when it came first. */
static enum dl_status check_stage(const struct dl_training *t, const struct calls *c, uint32_t stage)
{
    const struct dl_program *const program = &t->request.step.programs[stage];
    for (uint32_t i = 0; i < program->n_blocks && !c->err->status; i++) {
        const struct dl_template *const template = program->items[program->blocks[i]];
        if (!check_calls(c, template, stage) && !is_as_before(t->request.step.programs, stage, i))
            check_lockstep(c, template, stage);
    }
    return c->err->status || check_calls(c, &program->end, stage) ? c->err->status
                                                                  : check_lockstep(c, &program->end, stage);
}

enum dl_status dl_training_check_exchanges(const struct dl_training *t, struct dl_error *err)
{
    const struct dl_step *const s = &t->request.step;
    const struct calls c = {.step = s, .started = dl_alloc(s->n_calls), .err = err};
    for (uint32_t stage = 0; stage < t->n_stages && !err->status; stage++) {
        memset(c.started, 0, s->n_calls);
        check_stage(t, &c, stage);
    }
    dl_free(c.started);
    return err->status;
}
