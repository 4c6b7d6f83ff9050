#include "sim/plan/plan.h"

#include <assert.h>

#include "sim/plan/copies.h"
#include "strategies/in_step.h"
#include "sim/plan/survey.h"
#include "sim/plan/within.h"
#include "sim/program/segments.h"

/* Groups along the same digits cross the same links. */
struct surveyed {
    dl_digits along;
    bool meets, is_known; /* others on their links */
    bool crosses;         /* links that change on the way */
};

struct planner {
    const struct dl_plan_request *request;
    struct dl_lowered *out;
    struct surveyed groups[DL_MOST_IN_STEP];
    size_t n_groups;
    bool beside_layers; /* some go on beside the work of layers */
    bool *crossing;     /* by lockstep group, stage by stage: of any of its groups */
};

static struct surveyed *groups_of(struct planner *p, const struct dl_comm *comm)
{
    size_t i = 0;
    while (i < p->n_groups && p->groups[i].along != comm->members.digits) i++;
    assert(i < p->n_groups);
    return &p->groups[i];
}

static enum dl_status look_for_changes(struct planner *p, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_setting *const s = &p->request->job->setting;
    dl_digits along[DL_MOST_IN_STEP];
    p->n_groups = dl_in_step_kinds(s, along);
    p->crossing = dl_arena_alloc(arena, dl_n_stages(s) * dl_n_replicas(s) * sizeof *p->crossing);
    for (size_t i = 0; i < p->n_groups && !err->status; i++) {
        p->groups[i].along = along[i];
        if (p->request->n_changing) dl_survey_crosses(p->request, along[i], p->crossing, &p->groups[i].crosses, err);
    }
    return err->status;
}

/* ---- which of them may meet others ---- */

static enum dl_status check_changes(struct planner *p, const struct dl_comm *comm, struct dl_error *err)
{
    if (!groups_of(p, comm)->crosses) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--scenario",
                   "changes links on the way of an exchange (%s, %s) that is timed beforehand and not played",
                   dl_cause_name(comm->cause), dl_op_name(comm->op));
}

bool dl_plan_always_prices(const struct dl_comm *comm) { return comm->op == DL_SENDRECV || comm->once; }

static enum dl_status decide(struct planner *p, const struct dl_comm *comm, bool *out, struct dl_error *err)
{
    const bool may_be = p->request->most_played.collectives > 0 && !dl_plan_always_prices(comm);
    struct surveyed *const groups = groups_of(p, comm);
    if (dl_members_count(&p->request->job->setting.ranks, &comm->members) == 1) return DL_OK;
    if (!may_be) return check_changes(p, comm, err);
    if (!groups->is_known && dl_survey_meets(p->request, groups->along, p->beside_layers, &groups->meets, err))
        return err->status;
    groups->is_known = true;
    *out = groups->meets || groups->crosses;
    return DL_OK;
}

/* ---- which of them ---- */

static void fuse_all(struct dl_lowered *l)
{
    for (uint32_t i = 0; i < l->n_positions; i++)
        for (int kind = 0; kind < DL_N_TEMPLATES; kind++)
            dl_template_fuse(&l->positions[i].items[kind], l->calls, &l->plan);
    for (uint32_t stage = 0; stage < l->schedule.stages; stage++)
        dl_template_fuse(&l->programs[stage].end, l->calls, &l->plan);
}

void dl_plan_nothing(struct dl_lowered *l)
{
    l->plan = (struct dl_plan){0};
    l->n_timed_alone += l->played.collectives;
    l->played = (struct dl_played){0};
    for (size_t i = 0; i < l->n_kinds; i++) l->kinds[i].n_priced = l->kinds[i].n;
    fuse_all(l);
}

static bool is_in_lockstep(const struct dl_comm *comm)
{
    return comm->channel == DL_CHANNEL_LOCKSTEP || comm->channel == DL_CHANNEL_BESIDE;
}

static enum dl_status plan_within(struct planner *p, bool *calls, struct dl_error *err)
{
    const size_t n = p->out->n_calls;
    bool *const meets = dl_alloc((n + 1) * sizeof *meets);
    for (size_t i = 0; i < n; i++) meets[i] = calls[i] && groups_of(p, &p->out->calls[i])->meets;
    const struct dl_plan_choice choice = {
        .request = p->request, .lowered = p->out, .calls = calls, .meets = meets, .lockstep_groups = p->crossing};
    dl_plan_within(&choice, err);
    dl_free(meets);
    return err->status;
}

enum dl_status dl_plan_lowered(const struct dl_plan_request *request, struct dl_arena *arena, struct dl_lowered *l,
                               struct dl_error *err)
{
    struct planner p = {.request = request, .out = l};
    bool *const calls = dl_arena_alloc(arena, (l->n_calls + 1) * sizeof *calls);
    if (look_for_changes(&p, arena, err)) return err->status;
    bool any = false;
    for (size_t i = 0; i < l->n_calls; i++) p.beside_layers |= l->calls[i].channel == DL_CHANNEL_BESIDE;
    for (size_t i = 0; i < l->n_calls; i++) {
        if (is_in_lockstep(&l->calls[i]) && decide(&p, &l->calls[i], &calls[i], err)) return err->status;
        any |= calls[i];
    }
    l->plan.calls = calls;
    l->kinds = dl_arena_alloc(arena, (l->n_calls + 1) * sizeof *l->kinds);
    if (any && plan_within(&p, calls, err)) return err->status;
    dl_plan_copies(request, l, calls);
    fuse_all(l);
    return DL_OK;
}
