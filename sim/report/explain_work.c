#include "sim/report/explain_work.h"

#include <string.h>

#include "sim/program/segments.h"

const char *dl_work_kind_name(int kind)
{
    static const char *const names[] = {"forward",       "backward",      "weight gradient",
                                        "last gradient", "first forward", "end of the step"};
    return names[kind];
}

/* Collectives are alike if they are of one sort and size; how long they take beside work may differ. */
static bool are_alike(const struct dl_work_lines *lines, const struct dl_work_line *a, const struct dl_work_line *b)
{
    const struct dl_instruction *const i = &a->what, *const k = &b->what;
    if (i->kind != k->kind || i->cause != k->cause || !a->collective != !b->collective) return false;
    const struct dl_comm *const calls = lines->calls;
    if (i->kind == DL_START)
        return dl_comm_alike(&calls[i->call], &calls[k->call]) && calls[i->call].cause == calls[k->call].cause;
    if (a->collective) return dl_comm_alike(a->collective, b->collective);
    return a->kind == b->kind && i->device_s == k->device_s && i->flop == k->flop && i->bytes == k->bytes &&
           strcmp(i->name, k->name) == 0;
}

static void add_line(struct dl_work_lines *lines, const struct dl_work_line *line)
{
    if (line->what.kind != DL_START && line->what.device_s <= 0 && !line->collective) return;
    for (size_t k = 0; k < lines->n; k++) {
        if (!are_alike(lines, &lines->items[k], line)) continue;
        lines->items[k].n += line->n;
        lines->items[k].seconds += line->seconds;
        lines->items[k].is_beside |= line->is_beside;
        return;
    }
    DL_GROW(lines->items, lines->n, lines->capacity);
    lines->items[lines->n++] = *line;
}

/* What is taken from kernels beside a collective is no collective, nor is what goes to nodes first. One that comes
 * again costs the same each time. */
static void add_instruction(struct dl_work_lines *lines, const struct dl_template *t, size_t at, int kind, double n)
{
    const struct dl_instruction *const i = &t->instructions[at];
    const bool may_be_priced = dl_may_be_priced(i, lines->calls);
    const struct dl_comm *const call = may_be_priced ? &lines->calls[i->call] : NULL;
    const struct dl_comm *const comm = call && !call->once && call->op != DL_COPY ? call : NULL;
    struct dl_priced_work work;
    if (i->kind == DL_START && !may_be_priced)
        add_line(lines, &(struct dl_work_line){.what = *i, .kind = kind, .n = n});
    dl_priced_work(t, at, lines->calls, &work);
    for (size_t k = 0; k < work.n; k++)
        add_line(lines, &(struct dl_work_line){.what = work.items[k],
                                               .collective = k ? NULL : comm,
                                               .kind = kind,
                                               .n = n,
                                               .seconds = n * work.items[k].device_s,
                                               .is_beside = !k && work.is_beside});
}

/* What launches that block take is an instruction. */
static double launching_s(const struct dl_template *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].kind == DL_DO && t->instructions[i].cause == DL_CAUSE_HOST)
            sum += (double)dl_template_times(t, i) * t->instructions[i].device_s;
    return sum;
}

static void add_wait(struct dl_work_lines *lines, const struct dl_template *t, int kind, double n)
{
    const double rounding = 1e-12; /* of two sums of the same in another order */
    struct dl_work_wait wait = {kind, t->total.by_cause[DL_CAUSE_HOST] - launching_s(t), 0, n};
    for (size_t i = 0; i < t->n_instructions; i++)
        wait.host_s += (double)dl_template_times(t, i) * t->instructions[i].host_s;
    if (wait.seconds <= rounding * t->total.seconds) return;
    for (size_t i = 0; i < lines->n_waits; i++) {
        struct dl_work_wait *const known = &lines->waits[i];
        if (known->kind != kind || known->seconds != wait.seconds) continue;
        known->n += n;
        return;
    }
    DL_GROW(lines->waits, lines->n_waits, lines->waits_capacity);
    lines->waits[lines->n_waits++] = wait;
}

static void add_template(struct dl_work_lines *lines, const struct dl_template *t, int kind, double n)
{
    if (n <= 0) return;
    for (size_t i = 0; i < t->n_instructions; i++)
        add_instruction(lines, t, i, kind, n * (double)dl_template_times(t, i));
    add_wait(lines, t, kind, n);
}

void dl_work_lines_collect(const struct dl_run_report *r, struct dl_work_lines *out)
{
    *out = (struct dl_work_lines){.calls = r->lowered->calls};
    for (uint32_t stage = 0; stage < r->lowered->schedule.stages; stage++) {
        const struct dl_program *const program = &r->lowered->programs[stage];
        for (uint32_t i = 0; i < program->n_chunks * DL_N_TEMPLATES; i++)
            add_template(out, program->items[i], (int)(i % DL_N_TEMPLATES), program->uses[i]);
        add_template(out, &program->end, DL_WORK_END, 1);
    }
}

/* A micro-batch crosses from stage to stage forwards and backwards. */
double dl_work_count_sends(const struct dl_schedule *s)
{
    double sum = 0;
    for (uint32_t micro = 0; micro < s->micros; micro++) {
        const uint32_t *const stage_of = &s->stage_of[micro % s->n_paths * s->n_positions];
        for (uint32_t i = 0; i + 1 < s->n_positions; i++) sum += stage_of[i] != stage_of[i + 1] ? 2 : 0;
    }
    return sum;
}
