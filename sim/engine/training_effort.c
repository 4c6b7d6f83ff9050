/* training_effort.c - exchanges over replicas that are too much to be simulated message by message are timed. */
#include "sim/collective/effort.h"
#include "sim/collective/fold.h"
#include "sim/engine/training_parts.h"

static void count_in(const struct dl_template *template, uint32_t times, uint32_t *n_starts)
{
    for (size_t i = 0; i < template->planned.n && times; i++)
        if (template->planned.items[i].kind == DL_START) n_starts[template->planned.items[i].call] += times;
}

static void count_starts(const struct dl_training *t, uint32_t stage, uint32_t *n_starts)
{
    const struct dl_program *const p = &t->request.step.programs[stage];
    for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++) count_in(p->items[i], p->uses[i], n_starts);
    count_in(&p->end, 1, n_starts);
}

/* Groups are alike. Flows of rings and trees are few. Those by source or round cross all links of their messages. */
static double effort_of(struct dl_training *t, const struct chosen *chosen)
{
    const struct dl_collective *const c = &chosen->choices[0].collective;
    const enum dl_fold_kind kind = dl_fold_kind(c);
    struct dl_effort effort;
    if ((kind != DL_FOLD_ROUNDS && kind != DL_FOLD_SOURCES) || dl_effort_of(c, &effort, t->err)) return 0;
    if (kind == DL_FOLD_SOURCES) effort.messages = effort.in_flight = c->group->n, effort.links *= c->group->n;
    return dl_effort_together(&effort, chosen->n_groups);
}

static double choose_all(struct dl_training *t, uint32_t stage, uint32_t *n_starts)
{
    double sum = 0;
    count_starts(t, stage, n_starts);
    for (size_t i = 0; i < t->request.step.n_calls && !t->err->status; i++) {
        const struct dl_comm *const call = &t->request.step.calls[i];
        if (!n_starts[i] || call->channel != DL_CHANNEL_REPLICAS) continue;
        struct chosen *const chosen = dl_training_chosen(t, dl_training_replicas(t, stage), call, 0);
        if (t->err->status) break;
        if (!chosen->n_starts) chosen->effort = effort_of(t, chosen);
        chosen->n_starts += n_starts[i];
        sum += n_starts[i] * chosen->effort;
        t->result.n_over_replicas += (double)n_starts[i] * t->n_replicas * t->n_members;
        n_starts[i] = 0;
    }
    return sum;
}

static void time_unfolded(struct dl_training *t, uint32_t stage)
{
    const struct communicator *const at = dl_training_replicas(t, stage);
    for (size_t i = 0; i < at->n_chosen && !t->err->status; i++) {
        if (at->chosen[i].effort == 0) continue;
        dl_training_time(t, &at->chosen[i]);
        t->result.n_timed_alone += (double)at->chosen[i].n_starts * t->n_replicas * t->n_members;
    }
}

void dl_training_limit_effort(struct dl_training *t)
{
    uint32_t *const n_starts = dl_alloc(t->request.step.n_calls * sizeof *n_starts);
    double sum = 0;
    for (uint32_t stage = 0; stage < t->n_stages && !t->err->status; stage++) sum += choose_all(t, stage, n_starts);
    dl_free(n_starts);
    const bool is_beyond = sum > t->request.most_effort,
               links_change = t->request.scenario && t->request.scenario->n_changes;
    t->result.plays_beyond = is_beyond && links_change;
    for (uint32_t stage = 0; stage < t->n_stages && is_beyond && !links_change; stage++) time_unfolded(t, stage);
}

bool dl_training_plays_beyond(const struct dl_training *t) { return t->result.plays_beyond; }
