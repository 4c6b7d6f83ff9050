#include "sim/plan/counts.h"

static void count_in(const struct dl_template *t, double times, double *starts)
{
    for (size_t i = 0; i < t->n_instructions && times > 0; i++)
        if (t->instructions[i].kind == DL_START)
            starts[t->instructions[i].call] += times * (double)dl_template_times(t, i);
}

static void count_stage(const struct dl_program *program, double *starts)
{
    count_in(&program->end, 1, starts);
    for (uint32_t i = 0; i < program->n_chunks * DL_N_TEMPLATES; i++)
        count_in(program->items[i], program->uses[i], starts);
}

void dl_plan_count(const struct dl_lowered *l, const struct dl_setting *setting, struct dl_plan_counts *out)
{
    const uint32_t n_stages = dl_n_stages(setting);
    *out = (struct dl_plan_counts){
        .lowered = l, .ranks = &setting->ranks, .in_lockstep = dl_in_lockstep(setting), .n_stages = n_stages};
    out->starts = dl_alloc(n_stages * l->n_calls * sizeof *out->starts);
    for (uint32_t stage = 0; stage < n_stages; stage++)
        count_stage(&l->programs[stage], &out->starts[stage * l->n_calls]);
}

void dl_plan_counts_release(struct dl_plan_counts *c) { dl_free(c->starts); }

struct dl_played dl_plan_of_start(const struct dl_plan_counts *c, size_t call)
{
    const struct dl_comm *const comm = &c->lowered->calls[call];
    const double n_members = dl_ranks_count(c->ranks, c->in_lockstep);
    return (struct dl_played){n_members, n_members / dl_ranks_count(c->ranks, comm->members.digits) * comm->n_bundles};
}

void dl_played_add(struct dl_played *sum, const struct dl_played *more, double times)
{
    sum->collectives += times * more->collectives;
    sum->bundles += times * more->bundles;
}

struct dl_played dl_plan_of_call(const struct dl_plan_counts *c, size_t call, const double *n_groups)
{
    const struct dl_played one = dl_plan_of_start(c, call);
    struct dl_played sum = {0};
    for (uint32_t stage = 0; stage < c->n_stages; stage++)
        dl_played_add(&sum, &one, dl_plan_starts(c, stage, call) * n_groups[stage]);
    return sum;
}

struct dl_played dl_plan_of_calls(const struct dl_plan_counts *c, const bool *calls, const double *n_groups)
{
    struct dl_played sum = {0};
    for (size_t i = 0; i < c->lowered->n_calls; i++) {
        if (!calls[i]) continue;
        const struct dl_played of_call = dl_plan_of_call(c, i, n_groups);
        dl_played_add(&sum, &of_call, 1);
    }
    return sum;
}

void dl_plan_tell(struct dl_lowered *l, const struct dl_comm *comm, double n, double n_priced)
{
    size_t i = 0;
    while (i < l->n_kinds && (l->kinds[i].cause != comm->cause || l->kinds[i].op != comm->op)) i++;
    if (i == l->n_kinds) l->kinds[l->n_kinds++] = (struct dl_planned_kind){.cause = comm->cause, .op = comm->op};
    l->kinds[i].n += n;
    l->kinds[i].n_priced += n_priced;
    l->n_timed_alone += n_priced;
}
