#include "sim/report/shared_nics.h"

#include <math.h>
#include <stdio.h>

#include "sim/plan/plan.h"
#include "sim/report/units.h"

/* Whether the group of any rank along these digits has devices of several nodes. */
static bool leaves_node(const struct dl_run_report *r, dl_digits along)
{
    const struct dl_ranks *const ranks = &r->job->setting.ranks;
    const dl_digits others = dl_ranks_all(ranks) & ~along;
    const uint32_t n = dl_ranks_count(ranks, along), n_groups = dl_ranks_count(ranks, others);
    for (uint32_t group = 0; group < n_groups; group++) {
        const uint32_t first = dl_ranks_offset(ranks, others, group);
        const uint32_t node = dl_topology_node_of(r->topology, r->device_of_rank[first]);
        for (uint32_t i = 1; i < n; i++)
            if (dl_topology_node_of(r->topology, r->device_of_rank[first + dl_ranks_offset(ranks, along, i)]) != node)
                return true;
    }
    return false;
}

static bool is_priced_in_lockstep(const struct dl_lowered *l, size_t call)
{
    const enum dl_channel channel = l->calls[call].channel;
    const bool is_simulated = l->plan.calls && l->plan.calls[call];
    return (channel == DL_CHANNEL_LOCKSTEP || channel == DL_CHANNEL_BESIDE) && !is_simulated;
}

struct on_nics {
    bool causes[DL_N_CAUSES]; /* that have such collectives */
    bool may_be_simulated;    /* all of these, by an engine that has links */
};

static struct on_nics find_on_nics(const struct dl_run_report *r)
{
    const struct dl_lowered *const l = r->lowered;
    struct on_nics found = {.may_be_simulated = true};
    for (size_t i = 0; i < l->n_calls; i++) {
        const struct dl_comm *const comm = &l->calls[i];
        if (!is_priced_in_lockstep(l, i)) continue;
        if (!found.causes[comm->cause]) found.causes[comm->cause] = leaves_node(r, comm->members.digits);
        if (found.causes[comm->cause]) found.may_be_simulated &= !dl_plan_always_prices(comm);
    }
    return found;
}

double dl_shared_nics_s(const struct dl_run_report *r)
{
    const struct dl_training_result *const result = &r->result;
    const double hidden_s = result->busy_s[DL_CAUSE_DATA] - result->exposed_s[DL_CAUSE_DATA];
    const struct dl_setting *const setting = &r->job->setting;
    double beside_s = 0;
    if (hidden_s <= 0 || !setting->exchanges_beside_work || !leaves_node(r, dl_along_replicas(setting))) return 0;
    const struct on_nics on_nics = find_on_nics(r);
    for (int cause = 0; cause < DL_N_CAUSES; cause++) beside_s += on_nics.causes[cause] ? result->busy_s[cause] : 0;
    return fmin(hidden_s, beside_s);
}

void dl_shared_nics_print(const struct dl_run_report *r)
{
    static const double worth_a_line = 0.01;
    const double seconds = dl_shared_nics_s(r), share = seconds / r->result.step_s;
    char more[DL_QUANTITY];
    if (share < worth_a_line) return;
    const char *const instead =
        r->is_alone && find_on_nics(r).may_be_simulated ? "; --engine simgrid simulates them" : "";
    printf("  up to %s more (%.0f %% of the step): collectives that overlap on NICs are priced without contention%s\n",
           dl_format_seconds(seconds, more), 100 * share, instead);
}
