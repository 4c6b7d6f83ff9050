#include "sim/program/program.h"

#include <math.h>

const char *const dl_flop_counts[] = {"causal", "full", NULL};

const char *dl_ground_name(enum dl_ground ground)
{
    static const char *const names[DL_N_GROUNDS] = {[DL_GROUND_NONE] = "none",
                                                    [DL_GROUND_MEASURED] = "measured",
                                                    [DL_GROUND_INTERPOLATED] = "interpolated",
                                                    [DL_GROUND_MODELLED] = "modelled"};
    return names[ground];
}

void dl_template_add(struct dl_template *t, const struct dl_instruction *instruction)
{
    DL_GROW(t->instructions, t->n_instructions, t->capacity);
    t->instructions[t->n_instructions++] = *instruction;
}

void dl_template_release(struct dl_template *t)
{
    if (t->timed) dl_template_release(t->timed);
    dl_free(t->timed);
    dl_free(t->instructions);
    dl_free(t->memory.items);
    dl_free(t->parts);
    *t = (struct dl_template){0};
}

static void add_part(struct dl_template *t, struct dl_part part)
{
    DL_GROW(t->parts, t->n_parts, t->parts_capacity);
    t->parts[t->n_parts++] = part;
}

static void add_to_segment(struct dl_segment *s, const struct dl_instruction *i)
{
    s->by_cause[i->cause] += i->device_s;
    s->seconds += i->device_s;
    s->flop += i->flop;
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) s->counted_flop[count] += i->counted_flop[count];
    s->by_ground[i->ground] += i->device_s;
}

static void add_to_part(struct dl_part *part, const struct dl_instruction *i)
{
    part->host_s += i->host_s;
    part->behind_host_s = fmax(part->behind_host_s, part->host_s) + i->device_s;
    add_to_segment(&part->segment, i);
}

/* Host and device have begun together, and the host has launched for so long. */
static void add_to_total(struct dl_segment *total, const struct dl_instruction *i, double launched_s)
{
    const double wait_s = fmax(launched_s - total->seconds, 0);
    total->by_cause[DL_CAUSE_HOST] += wait_s;
    total->seconds += wait_s;
    add_to_segment(total, i);
}

/* Beside the kernel: it begins before that. */
static const struct dl_instruction *played_beside(const struct dl_template *t, size_t kernel)
{
    const struct dl_instruction *const next = kernel + 1 < t->n_instructions ? &t->instructions[kernel + 1] : NULL;
    return next && next->in_step && next->is_beside ? next : NULL;
}

static void play(struct dl_template *t, const struct dl_instruction *at)
{
    add_part(t, (struct dl_part){.kind = DL_TOGETHER, .host_s = at->host_s, .in_step = at->in_step});
}

static void fuse_work(struct dl_template *t, size_t i)
{
    const struct dl_instruction *const at = &t->instructions[i], *const beside = played_beside(t, i);
    if (beside) play(t, beside);
    if (!t->n_parts || t->parts[t->n_parts - 1].kind != DL_DO) add_part(t, (struct dl_part){.kind = DL_DO, .first = i});
    add_to_part(&t->parts[t->n_parts - 1], at);
    t->parts[t->n_parts - 1].end = i + 1;
}

static void fuse(struct dl_template *t, size_t i)
{
    const struct dl_instruction *const at = &t->instructions[i];
    if (at->kind != DL_DO) {
        add_part(t, (struct dl_part){.kind = at->kind, .call = at->call, .host_s = at->host_s});
    } else if (!at->in_step) {
        fuse_work(t, i);
    } else if (at->cause != DL_CAUSE_INTERFERENCE) { /* that comes about by itself */
        if (!at->is_beside) play(t, at);
        add_part(t, (struct dl_part){.kind = DL_TOGETHER_DONE, .in_step = at->in_step});
    }
}

void dl_template_fuse(struct dl_template *t)
{
    double launched_s = 0;
    t->n_parts = 0;
    t->total = (struct dl_segment){0};
    for (size_t i = 0; i < t->n_instructions; i++) {
        launched_s += t->instructions[i].host_s;
        fuse(t, i);
        if (t->instructions[i].kind == DL_DO) add_to_total(&t->total, &t->instructions[i], launched_s);
    }
}

void dl_template_time_all(struct dl_template *t)
{
    for (size_t i = 0; i < t->n_instructions; i++) t->instructions[i].in_step = NULL;
    dl_template_fuse(t);
}

static bool plays(const struct dl_template *t)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (t->parts[i].kind == DL_TOGETHER) return true;
    return false;
}

void dl_template_add_timed(struct dl_template *t)
{
    if (!plays(t)) return;
    t->timed = dl_alloc(sizeof *t->timed);
    for (size_t i = 0; i < t->n_instructions; i++) dl_template_add(t->timed, &t->instructions[i]);
    dl_template_time_all(t->timed);
}

void dl_program_release(struct dl_program *p)
{
    dl_free(p->items);
    dl_free(p->sequence);
    dl_free(p->begin.items);
    dl_template_release(&p->end);
    *p = (struct dl_program){0};
}
