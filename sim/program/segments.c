#include "sim/program/segments.h"

#include <math.h>

/* ---- what is priced ---- */

bool dl_may_be_priced(const struct dl_instruction *i, const struct dl_comm *calls)
{
    const bool has_call = i->kind == DL_WAIT || i->kind == DL_START;
    return has_call && i->call != DL_EVERY_CALL && dl_comm_may_be_priced(&calls[i->call]);
}

/* The start that a wait is for, if it is in this template, and the kernels since. */
static const struct dl_instruction *start_of(const struct dl_template *t, size_t wait, double *beside_s)
{
    *beside_s = 0;
    for (size_t i = wait; i-- > 0;) {
        const struct dl_instruction *const before = &t->instructions[i];
        if (before->kind == DL_START && before->call == t->instructions[wait].call) return before;
        if (before->kind == DL_DO && before->cause != DL_CAUSE_HOST) *beside_s += before->device_s;
    }
    return NULL;
}

/* What is longer than the work beside it, which has had less of the device meanwhile. */
static void add_exposed(const struct dl_comm *comm, double longer_s, double taken_s, struct dl_priced_work *out)
{
    const char *const name = comm->op == DL_COPY ? dl_path_copy_name(comm->path) : dl_op_name(comm->op);
    out->items[out->n++] = (struct dl_instruction){.name = name, .cause = comm->cause, .device_s = longer_s};
    if (taken_s > longer_s)
        out->items[out->n++] =
            (struct dl_instruction){.name = name, .cause = DL_CAUSE_INTERFERENCE, .device_s = taken_s - longer_s};
}

static void price_wait(const struct dl_template *t, size_t at, const struct dl_comm *comm, struct dl_priced_work *out)
{
    double beside_s;
    const struct dl_instruction *const start = start_of(t, at, &beside_s);
    out->is_beside = beside_s > 0;
    add_exposed(comm, fmax(comm->alone_s - beside_s, 0), out->is_beside ? comm->taken_s : 0, out);
    if (start) out->items[0].host_s = start->host_s;
}

/* The first of those on its channel that are under way at the start of the one that is waited for. */
static size_t first_in_line(const struct dl_template *t, size_t wait, const struct dl_comm *calls)
{
    const uint32_t call = t->instructions[wait].call;
    size_t first = wait;
    bool found = false;
    for (size_t i = wait; i-- > 0;) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (!dl_may_be_priced(at, calls) || calls[at->call].channel != calls[call].channel) continue;
        if (found && at->kind == DL_WAIT) break;
        if (at->kind != DL_START || (!found && at->call != call)) continue;
        found = true;
        first = i;
    }
    return first;
}

/* Those of one channel go one after the other, beside all work. */
static void price_queued(const struct dl_template *t, size_t at, const struct dl_comm *calls,
                         struct dl_priced_work *out)
{
    const struct dl_comm *const comm = &calls[t->instructions[at].call];
    double passed_s = 0, free_s = 0, end_s = 0, taken_s = 0;
    for (size_t i = first_in_line(t, at, calls); i < at; i++) {
        const struct dl_instruction *const before = &t->instructions[i];
        dl_priced_work(t, i, calls, out);
        for (size_t k = 0; k < out->n; k++) passed_s += out->items[k].device_s;
        if (before->kind != DL_START || !dl_may_be_priced(before, calls) ||
            calls[before->call].channel != comm->channel)
            continue;
        free_s = fmax(free_s, passed_s) + calls[before->call].alone_s;
        taken_s += calls[before->call].taken_s;
        if (&calls[before->call] == comm) end_s = free_s;
    }
    out->n = 0;
    add_exposed(comm, fmax(end_s - passed_s, 0), passed_s > 0 ? taken_s : 0, out);
    out->is_beside = passed_s > 0;
}

void dl_priced_work(const struct dl_template *t, size_t at, const struct dl_comm *calls, struct dl_priced_work *out)
{
    const struct dl_instruction *const i = &t->instructions[at];
    out->n = 0;
    out->is_beside = false;
    if (i->kind == DL_DO)
        out->items[out->n++] = *i;
    else if (i->kind == DL_WAIT && dl_may_be_priced(i, calls) && dl_comm_is_queued(&calls[i->call]))
        price_queued(t, at, calls, out);
    else if (i->kind == DL_WAIT && dl_may_be_priced(i, calls))
        price_wait(t, at, &calls[i->call], out);
}

bool dl_template_is_single(const struct dl_template *t)
{
    return t->n_instructions < 2 || (t->n_instructions == 2 && dl_may_be_priced(&t->instructions[1], t->calls));
}

/* ---- sums ---- */

static inline void add_to_segment(struct dl_segment *s, const struct dl_instruction *i)
{
    s->by_cause[i->cause] += i->device_s;
    s->seconds += i->device_s;
    s->flop += i->flop;
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) s->counted_flop[count] += i->counted_flop[count];
    s->by_ground[i->ground] += i->device_s;
}

/* Host and device have begun together, and the host has launched for so long. */
static inline void add_to_total(struct dl_segment *total, const struct dl_instruction *i, double launched_s)
{
    const double wait_s = fmax(launched_s - total->seconds, 0);
    total->by_cause[DL_CAUSE_HOST] += wait_s;
    total->seconds += wait_s;
    add_to_segment(total, i);
}

void dl_template_sum(struct dl_template *t, const struct dl_comm *calls)
{
    double launched_s = 0;
    struct dl_priced_work work;
    struct dl_segment total = {0};
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (at->kind == DL_DO) { /* most are: no copy of it */
            launched_s += at->host_s;
            add_to_total(&total, at, launched_s);
            continue;
        }
        if (!dl_may_be_priced(at, calls)) launched_s += at->host_s;
        if (at->kind != DL_WAIT) continue;
        dl_priced_work(t, i, calls, &work);
        for (size_t k = 0; k < work.n; k++) {
            launched_s += work.items[k].host_s;
            add_to_total(&total, &work.items[k], launched_s);
        }
    }
    t->total = total;
}

/* ---- parts ---- */

static void add_part(struct dl_parts *p, struct dl_part part)
{
    DL_GROW(p->items, p->n, p->capacity);
    p->items[p->n++] = part;
}

static struct dl_part *begin_segment(struct dl_parts *p, size_t at)
{
    add_part(p, (struct dl_part){.kind = DL_DO, .first = at});
    return &p->items[p->n - 1];
}

static inline void add_work(struct dl_part *part, const struct dl_instruction *work, size_t at)
{
    part->host_s += work->host_s;
    part->behind_host_s = fmax(part->behind_host_s, part->host_s) + work->device_s;
    part->end = at + 1;
    add_to_segment(&part->segment, work);
}

static bool is_planned(const struct dl_plan *plan, const struct dl_comm *calls, uint32_t call, bool on_group)
{
    return plan->calls && plan->calls[call] && (on_group || calls[call].op == DL_COPY);
}

/* Of lockstep groups that the plan has, or of others; returns whether collectives are simulated. */
static bool fuse(const struct dl_template *t, const struct dl_plan *plan, bool on_group, struct dl_parts *out)
{
    bool any = false;
    struct dl_priced_work work;
    struct dl_part *open = NULL; /* the segment that work is added to */
    out->n = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (at->kind == DL_DO) {
            if (!open) open = begin_segment(out, i);
            add_work(open, at, i);
            continue;
        }
        const bool may_be_priced = dl_may_be_priced(at, t->calls),
                   is_simulated = may_be_priced && is_planned(plan, t->calls, at->call, on_group);
        any |= is_simulated && t->calls[at->call].op != DL_COPY;
        if (!may_be_priced || is_simulated) {
            add_part(out, (struct dl_part){.kind = at->kind, .call = at->call, .host_s = at->host_s});
            open = NULL;
            continue;
        }
        if (at->kind != DL_WAIT) continue;
        dl_priced_work(t, i, t->calls, &work);
        for (size_t k = 0; k < work.n; k++) {
            if (!open) open = begin_segment(out, i);
            add_work(open, &work.items[k], i);
        }
    }
    return any;
}

void dl_template_fuse(struct dl_template *t, const struct dl_comm *calls, const struct dl_plan *plan)
{
    t->calls = calls;
    t->priced.n = 0;
    if (fuse(t, plan, true, &t->planned) && plan->lockstep_groups) fuse(t, plan, false, &t->priced);
}
