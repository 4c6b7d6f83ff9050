#include "strategies/played.h"

#include <string.h>

#include "sim/program/segments.h"

/* ---- which of them may meet others ---- */

/* Shifts and tokens that go to nodes first are priced in any case, as is what goes on beside a whole layer. */
static enum dl_status find_out_whether_simulated(struct dl_sink *s, const struct dl_comm *comm, bool *out,
                                                 struct dl_error *err)
{
    const bool may_be = s->request->most_played.collectives > 0 && comm->op != DL_SENDRECV && !comm->once;
    struct dl_sink_groups *const groups = dl_sink_groups(s, comm->members.digits);
    if (groups->all->n == 1) return DL_OK;
    if (!may_be) return dl_sink_check_changes(s, comm, err);
    if (!groups->is_known && dl_in_step_meets(s->request, groups->along, &groups->meets, err)) return err->status;
    groups->is_known = true;
    *out = groups->meets || groups->crosses;
    return DL_OK;
}

/* ---- how many ---- */

static void add(struct dl_played *sum, const struct dl_played *more, double times)
{
    sum->collectives += times * more->collectives;
    sum->bundles += times * more->bundles;
}

/* All that are simulated, or those that meet others on their links. */
enum which { EVERY, MEETING };

/* Those of a lockstep group: each of its members is in one group of a kind. */
static void add_template(const struct dl_template *t, struct dl_sink *s, enum which which, struct dl_played *sum)
{
    const struct dl_ranks *const ranks = &s->request->job->setting.ranks;
    const double n_members = dl_ranks_count(ranks, DL_IN_LOCKSTEP);
    for (size_t i = 0; i < t->n_instructions; i++) {
        const uint32_t call = t->instructions[i].call;
        if (t->instructions[i].kind != DL_START || !s->out->plan.calls[call]) continue;
        const struct dl_comm *const comm = &s->out->calls[call];
        if (which == MEETING && !dl_sink_groups(s, comm->members.digits)->meets) continue;
        sum->collectives += n_members;
        sum->bundles += n_members / dl_ranks_count(ranks, comm->members.digits) * comm->n_bundles;
    }
}

static struct dl_played count_of_group(struct dl_sink *s, uint32_t stage, enum which which)
{
    const struct dl_program *const p = &s->out->programs[stage];
    struct dl_played sum = {0};
    add_template(&p->end, s, which, &sum);
    for (uint32_t i = 0; i < p->n_sequence; i++) add_template(p->sequence[i].block, s, which, &sum);
    return sum;
}

static double count_crossing(const struct dl_sink *s, uint32_t stage)
{
    const uint32_t n_replicas = s->request->job->setting.ways[DL_AXIS_DATA];
    double n = 0;
    for (uint32_t i = 0; i < n_replicas; i++) n += s->crossing[stage * n_replicas + i];
    return n;
}

/* Of all lockstep groups that cross links that change, or of the others. */
static struct dl_played count(struct dl_sink *s, enum which which, bool crossing)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    struct dl_played sum = {0};
    for (uint32_t stage = 0; stage < setting->ways[DL_AXIS_PIPELINE]; stage++) {
        const double n_crossing = count_crossing(s, stage);
        const struct dl_played of_group = count_of_group(s, stage, which);
        add(&sum, &of_group, crossing ? n_crossing : setting->ways[DL_AXIS_DATA] - n_crossing);
    }
    return sum;
}

/* ---- which of them ---- */

/* Templates are in positions and, by copies, in programs. */
static void fuse_all(struct dl_lowered *l)
{
    for (uint32_t i = 0; i < l->n_positions; i++)
        for (int kind = 0; kind < DL_N_TEMPLATES; kind++)
            dl_template_fuse(&l->positions[i].items[kind], l->calls, &l->plan);
    for (uint32_t stage = 0; stage < l->schedule.stages; stage++) {
        struct dl_program *const p = &l->programs[stage];
        for (uint32_t chunk = 0; chunk < p->n_chunks; chunk++)
            memcpy(&p->items[chunk * DL_N_TEMPLATES],
                   l->positions[l->schedule.position_of[stage * p->n_chunks + chunk]].items,
                   DL_N_TEMPLATES * sizeof *p->items);
        dl_template_fuse(&p->end, l->calls, &l->plan);
    }
}

static void price_all(struct dl_lowered *l)
{
    l->plan = (struct dl_plan){0};
    l->n_timed_alone += l->played.collectives;
    l->played = (struct dl_played){0};
}

void dl_lowered_time_all(struct dl_lowered *l)
{
    price_all(l);
    fuse_all(l);
}

static bool is_within(const struct dl_played *played, const struct dl_played *most)
{
    return played->collectives <= most->collectives && played->bundles <= most->bundles;
}

static void limit(struct dl_sink *s)
{
    struct dl_lowered *const l = s->out;
    const struct dl_played crossing = count(s, EVERY, true);
    l->played = count(s, EVERY, false);
    add(&l->played, &crossing, 1);
    if (is_within(&l->played, &s->request->most_played)) return;
    if (crossing.collectives == 0) {
        price_all(l);
        return;
    }
    l->played = crossing;
    l->plays_beyond = !is_within(&crossing, &s->request->most_played);
    l->n_timed_alone = count(s, MEETING, false).collectives; /* of those that meet nobody the time is known */
    l->plan.lockstep_groups = s->crossing;
}

enum dl_status dl_plan_lowered(struct dl_sink *s, struct dl_error *err)
{
    struct dl_lowered *const l = s->out;
    bool *const calls = dl_arena_alloc(s->arena, (l->n_calls + 1) * sizeof *calls);
    for (size_t i = 0; i < l->n_calls; i++)
        if (l->calls[i].channel == DL_CHANNEL_LOCKSTEP && find_out_whether_simulated(s, &l->calls[i], &calls[i], err))
            return err->status;
    l->plan.calls = calls;
    limit(s);
    dl_plan_copies(s, calls);
    fuse_all(l);
    return DL_OK;
}
